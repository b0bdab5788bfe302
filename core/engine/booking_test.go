package engine

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/llm"
)

// memoryLedger is a Ledger in memory.
type memoryLedger struct {
	mu   sync.Mutex
	uses []Use
}

func newMemoryLedger() *memoryLedger { return new(memoryLedger) }

func (a *memoryLedger) Record(_ context.Context, u Use) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.uses = append(a.uses, u)
	return nil
}

func (a *memoryLedger) Spent(_ context.Context, day string, scope core.Path) (s Spending, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, u := range a.uses {
		usage, cost := u.Usage, u.Cost
		i := slices.Index(u.People, scope)
		if i >= 0 {
			usage, cost = u.Share(i)
		}
		if u.Day == day && (i >= 0 || u.Place.Within(scope)) {
			s.Tokens += int64(usage.In + usage.Out)
			s.Cost += cost
		}
	}
	return s, nil
}

// prices returns the costs of calls by the prices in the tables.
func prices(tables []Config) func(string, llm.Usage) float64 {
	return func(engine string, u llm.Usage) float64 {
		i := slices.IndexFunc(tables, func(c Config) bool { return c.Name == engine })
		return tables[i].Cost(u)
	}
}

// limitedChain is a chain with a budget.
type limitedChain struct {
	*Chain
	*Budget
}

// budgeted returns a chain with a budget and, unless the options have one, a memoryLedger.
func budgeted(c *Chain, cfg BudgetConfig, o BudgetOptions) limitedChain {
	if o.Ledger == nil {
		o.Ledger = newMemoryLedger()
	}
	if o.Cost == nil {
		o.Cost = func(string, llm.Usage) float64 { return 0 }
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.Used, o.Zone, o.Log = func(string, llm.Usage) {}, cmp.Or(o.Zone, time.Local), slog.New(slog.DiscardHandler)
	b := NewBudget(cfg, o, nil)
	return limitedChain{c.Within(b, nil), b}
}

// stalls writes the beginning of a stream, sends to begun, and then waits until its caller has gone.
func stalls(begun chan<- struct{}, lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if len(lines) > 0 {
			events(lines...)(w, r)
		}
		select {
		case begun <- struct{}{}:
			<-r.Context().Done()
		case <-r.Context().Done():
		}
	}
}

// breaks writes the beginning of a stream and breaks the connection.
func breaks(lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		events(lines...)(w, r)
		panic(http.ErrAbortHandler)
	}
}

// counted is an answer of three words with what the server counted.
func counted(usage string) string {
	return `{"choices":[{"message":{"content":"one two three"},"finish_reason":"stop"}],"usage":` + usage + `}`
}

// TestEveryCallIsBooked checks that the usage of a call is booked, as counted by the server or estimated,
// although its caller may not wait for the answer. Only calls that the model did not process are free.
func TestEveryCallIsBooked(t *testing.T) {
	begun := make(chan struct{})
	word := `{"choices":[{"delta":{"content":"word "}}]}`
	prompt := int(tokensOf(hello()))
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		change func(*Config)
		leave  int  // the caller leaves after so many pieces, or with -1 once the server works
		fails  bool // the model refuses, so that nobody answers
		want   *llm.Usage
	}{
		"counted":     {answer: respondOpenAI("yo"), want: &llm.Usage{In: 30, Out: 4, Cached: 20}},
		"not counted": {answer: body(200, `{"choices":[{"message":{"content":"one two three"},"finish_reason":"stop"}]}`), want: &llm.Usage{In: prompt, Out: 5}},
		"below zero":  {answer: body(200, counted(`{"prompt_tokens":-5000000,"completion_tokens":-1}`)), want: &llm.Usage{In: prompt, Out: 5}},
		"too many":    {answer: body(200, counted(`{"prompt_tokens":9223372036854775807,"completion_tokens":9223372036854775807}`)), want: &llm.Usage{In: prompt, Out: 5}},
		"more cached": {answer: body(200, counted(`{"prompt_tokens":7,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":9}}`)), want: &llm.Usage{In: 7, Out: 5, Cached: 7}},
		"other types": {answer: body(200, counted(`{"prompt_tokens":"12","completion_tokens":1.5}`)), want: &llm.Usage{In: prompt, Out: 5}},
		"no object":   {answer: body(200, counted(`[1]`)), want: &llm.Usage{In: prompt, Out: 5}},
		"overflow": {answer: body(200, `{"content":[{"type":"text","text":"one two three"}],"stop_reason":"end_turn","usage":`+
			`{"input_tokens":9223372036854775807,"cache_read_input_tokens":9223372036854775807,"output_tokens":-3}}`),
			change: anthropicTable, want: &llm.Usage{In: prompt, Out: 5}},
		"empty":             {answer: body(200, `{"choices":[{"message":{"content":""},"finish_reason":"length"}],"usage":{"prompt_tokens":50,"completion_tokens":100}}`), want: &llm.Usage{In: 50, Out: 100}},
		"filtered":          {answer: body(200, `{"choices":[{"message":{"content":""},"finish_reason":"content_filter"}],"usage":{"prompt_tokens":50,"completion_tokens":3}}`), fails: true, want: &llm.Usage{In: 50, Out: 3}},
		"refused":           {answer: body(400, `{"error":{"code":"content_policy_violation","message":"no"}}`), fails: true, want: &llm.Usage{In: prompt}},
		"gone at once":      {answer: stalls(begun), leave: -1, want: &llm.Usage{In: prompt}},
		"gone later":        {answer: stalls(begun, word, word, word), leave: 3, want: &llm.Usage{In: prompt, Out: 5}},
		"thought, and gone": {answer: stalls(begun, `{"choices":[{"delta":{"reasoning_content":"hm"}}]}`, word), leave: 1, want: &llm.Usage{In: prompt, Out: 2}},
		"gone, anthropic":   {answer: stalls(begun, `{"type":"message_start","message":{"usage":{"input_tokens":30,"output_tokens":1}}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"one two"}}`), change: anthropicTable, leave: 1, want: &llm.Usage{In: 30, Out: 3}},
		"too slow":          {answer: stalls(nil, word, word), change: func(c *Config) { c.Timeout = time.Second }, want: &llm.Usage{In: prompt, Out: 4}},
		"cut":               {answer: breaks(word, word), want: &llm.Usage{In: prompt, Out: 4}},
		"broken":            {answer: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, want: &llm.Usage{In: prompt}},
		"half a body":       {answer: halfABody, want: &llm.Usage{In: prompt}},
		"limited":           {answer: body(429, `{}`, "Retry-After", "60")},
		"down":              {answer: body(503, ``)},
		"wrong key":         {answer: body(401, ``)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, tc.answer)
			change := func(c *Config) { c.Structure = "off" }
			if tc.change == nil {
				tc.change = change
			}
			c, err := New([]Config{s.table(change, tc.change)}, Options{Patience: -1})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			ledger := newMemoryLedger()
			b := budgeted(c, BudgetConfig{}, BudgetOptions{Ledger: ledger})
			ctx, cancel := context.WithCancelCause(bounded(t))
			pieces := 0
			stream := func(string) {
				if pieces++; pieces == tc.leave {
					cancel(errors.New("withdrawn"))
				}
			}
			go func() {
				select {
				case <-begun:
				case <-ctx.Done():
				}
				if tc.leave < 0 {
					cancel(errors.New("withdrawn"))
				}
			}()
			q := plainQuestion()
			q.Build = func(llm.Limits) (llm.Request, error) {
				r := hello()
				r.Stream = stream
				return r, nil
			}
			if _, err := b.Ask(ctx, q); (err != nil) != (tc.leave != 0 || tc.fails) {
				t.Error(err)
			}
			var want []Use
			if tc.want != nil {
				want = []Use{{Engine: "test", Place: q.Path, People: q.People, Usage: *tc.want}}
			}
			same := func(a, b Use) bool {
				same := a.Engine == b.Engine && a.Place == b.Place && a.Usage == b.Usage
				return same && slices.Equal(a.People, b.People)
			}
			if !slices.EqualFunc(ledger.uses, want, same) {
				t.Errorf("booked %+v, want %+v", ledger.uses, want)
			}
		})
	}
}

// TestUnsentIsFree checks that a call that never reached the server is not booked.
func TestUnsentIsFree(t *testing.T) {
	s := newServer(t, respondOpenAI("yo"))
	table := s.table()
	s.Close()
	c, err := New([]Config{table}, Options{Patience: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ledger := newMemoryLedger()
	if a, err := budgeted(c, BudgetConfig{}, BudgetOptions{Ledger: ledger}).Ask(bounded(t), plainQuestion()); err != nil || a.Engine != "offline" {
		t.Errorf("got %+v, %v", a, err)
	}
	if len(ledger.uses) != 0 {
		t.Errorf("booked %+v, want two uses", ledger.uses)
	}
}

// TestEachEngineIsBooked checks that both engines are booked, each with its own price, if the first one fails
// during its answer and the second one answers.
func TestEachEngineIsBooked(t *testing.T) {
	first, second := newServer(t, breaks(`{"choices":[{"delta":{"content":"hal"}}]}`)), newServer(t, respondOpenAI("yo"))
	tables := []Config{
		first.table(func(c *Config) { c.Name, c.PriceIn = "first", 1 }),
		second.table(func(c *Config) { c.Name, c.PriceIn = "second", 1000 }),
	}
	c, err := New(tables, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ledger := newMemoryLedger()
	o := BudgetOptions{Ledger: ledger, Cost: prices(tables)}
	a, err := budgeted(c, BudgetConfig{}, o).Ask(bounded(t), plainQuestion())
	if err != nil || a.Engine != "second" || a.Usage.In != 30 {
		t.Fatalf("got %+v, %v", a, err)
	}
	if len(ledger.uses) != 2 || ledger.uses[0].Engine != "first" || ledger.uses[1].Engine != "second" {
		t.Fatalf("booked %+v, want two uses", ledger.uses)
	}
	if in := float64(ledger.uses[0].Usage.In); ledger.uses[0].Cost != in/1e6 || ledger.uses[1].Cost != 0.03 {
		t.Errorf("the first use costs %v for %v tokens, the second %v", ledger.uses[0].Cost, in, ledger.uses[1].Cost)
	}
}
