package engine

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/llm"
)

// paidModel is a model that always answers and uses a fixed number of tokens.
type paidModel struct {
	usage llm.Usage
	calls int
	mu    sync.Mutex
	hold  chan struct{}
}

func (m *paidModel) Limits() llm.Limits { return llm.Limits{Engine: "paid"} }

func (m *paidModel) Generate(_ context.Context, r llm.Request) (llm.Answer, error) {
	m.mu.Lock()
	m.calls++
	m.mu.Unlock()
	if m.hold != nil {
		<-m.hold
	}
	r.Used(m.usage)
	return llm.Answer{Engine: "paid"}, nil
}

// chain returns a chain of this engine and the built-in one.
func (m *paidModel) chain() *Chain {
	c := chainOf(true)
	c.links = []*link{newLink("paid", m, 0, c.options)}
	return c
}

func from(place, person string) core.Question {
	q := plainQuestion()
	q.Path, q.People = core.MustPath(place), nil
	for _, p := range strings.Fields(person) {
		q.People = append(q.People, core.MustPath(p))
	}
	return q
}

func TestBudgets(t *testing.T) {
	price := func(_ string, u llm.Usage) float64 { return float64(u.In+u.Out) / 1000 }
	for name, tc := range map[string]struct {
		cfg   BudgetConfig
		asks  []core.Question
		spent string // the scope that refuses the last question, or "-" for none
	}{
		"no limits":      {BudgetConfig{}, []core.Question{from("a/1", "a/@user/1"), from("a/1", "a/@user/1"), from("a/1", "a/@user/1")}, "-"},
		"person":         {BudgetConfig{PersonTokens: 1500}, []core.Question{from("a/1", "a/@user/1"), from("a/2", "a/@user/1"), from("a/1", "a/@user/1")}, "a/@user/1"},
		"another person": {BudgetConfig{PersonTokens: 1500}, []core.Question{from("a/1", "a/@user/1"), from("a/2", "a/@user/1"), from("a/1", "a/@user/2")}, "-"},
		"a share":        {BudgetConfig{PersonTokens: 1500}, []core.Question{from("a/1", "a/@user/1"), from("a/1", "a/@user/1 a/@user/2"), from("a/1", "a/@user/1")}, "a/@user/1"},
		"no more":        {BudgetConfig{PersonTokens: 1000}, []core.Question{from("a/1", "a/@user/1 a/@user/2"), from("a/1", "a/@user/1"), from("a/1", "a/@user/2")}, "-"},
		"others bear it": {BudgetConfig{PersonTokens: 1000}, []core.Question{from("a/1", "a/@user/1"), from("a/1", "a/@user/1 a/@user/2")}, "-"},
		"nobody can":     {BudgetConfig{PersonTokens: 1000}, []core.Question{from("a/1", "a/@user/1"), from("a/1", "a/@user/1 a/@user/2"), from("a/1", "a/@user/1 a/@user/2")}, "a/@user/1"},
		"nobody's":       {BudgetConfig{PersonTokens: 1500}, []core.Question{from("a/1", ""), from("a/1", ""), from("a/1", "")}, "-"},
		"bot":            {BudgetConfig{BotTokens: 1500}, []core.Question{from("a/1", "a/@user/1"), from("b/2", "b/@user/1"), from("c/1", "")}, ""},
		"place":          {BudgetConfig{Places: []PlaceBudget{{core.MustPath("a/1"), 1500, 0}}}, []core.Question{from("a/1/5", "a/@user/1"), from("a/1", "a/@user/2"), from("a/1/7", "a/@user/3")}, "a/1"},
		"beside it":      {BudgetConfig{Places: []PlaceBudget{{core.MustPath("a/1"), 1500, 0}}}, []core.Question{from("a/1/5", "a/@user/1"), from("a/1", "a/@user/2"), from("a/12", "a/@user/3")}, "-"},
		"cost":           {BudgetConfig{BotCost: 1.5}, []core.Question{from("a/1", ""), from("a/1", ""), from("a/1", "")}, ""},
		"person's cost":  {BudgetConfig{PersonCost: 1.5}, []core.Question{from("a/1", "a/@user/1"), from("a/1", "a/@user/1"), from("a/1", "a/@user/1")}, "a/@user/1"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &paidModel{usage: llm.Usage{In: 900, Out: 100}}
			b := budgeted(m.chain(), tc.cfg, BudgetOptions{Cost: price})
			var err error
			for i, q := range tc.asks {
				if _, err = b.Ask(t.Context(), q); err != nil && i < len(tc.asks)-1 {
					t.Fatalf("question %d: %v", i, err)
				}
			}
			spent, isSpent := errors.AsType[*SpentError](err)
			if tc.spent == "-" {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if !isSpent || spent.Scope.String() != tc.spent || m.calls != len(tc.asks)-1 {
				t.Fatalf("%v after %d calls", err, m.calls)
			}
			failed, isModel := err.(*llm.Error)
			if said, forPeople := errors.AsType[*core.Error](err); !isModel || failed.Kind != llm.ErrorRefused || !forPeople || said.After <= 0 || !strings.Contains(said.Text, "00:00") {
				t.Errorf("got %#v", err)
			}
			if len(b.held) != 0 {
				t.Errorf("tokens are still reserved: %v", b.held)
			}
		})
	}
}

// TestBudgetCountsThePrompt checks that a prompt larger than the rest of the budget is not sent.
func TestBudgetCountsThePrompt(t *testing.T) {
	m := &paidModel{usage: llm.Usage{In: 1}}
	b := budgeted(m.chain(), BudgetConfig{PersonTokens: 10}, BudgetOptions{})
	_, err := b.Ask(t.Context(), from("a/1", "a/@user/1"))
	if err == nil || m.calls != 0 {
		t.Errorf("%v after %d calls", err, m.calls)
	}
	if e, ok := errors.AsType[*core.Error](err); !ok || !strings.Contains(e.Text, "the limit of 10 tokens a day is less than one answer takes") {
		t.Errorf("message: got %v", e)
	}
}

// TestBudgetSharesThePrompt checks that a prompt larger than the rest of one user's budget is sent if two users
// share it, unless one of them has nothing left.
func TestBudgetSharesThePrompt(t *testing.T) {
	r, _ := plainQuestion().Build(llm.Limits{})
	half := tokensOf(r)/2 + 1
	m := &paidModel{usage: llm.Usage{In: int(half)}}
	b := budgeted(m.chain(), BudgetConfig{PersonTokens: half}, BudgetOptions{})
	both := from("a/1", "a/@user/1 a/@user/2")
	if _, err := b.Ask(t.Context(), both); err != nil {
		t.Errorf("shared by both: got %v", err)
	}
	b = budgeted(m.chain(), BudgetConfig{PersonTokens: half}, BudgetOptions{})
	err := b.o.Ledger.Record(t.Context(), Use{
		Day: time.Now().Format(time.DateOnly), Place: core.MustPath("a/1"), People: []core.Path{core.MustPath("a/@user/1")}, Usage: llm.Usage{In: int(half)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Ask(t.Context(), both); err == nil || m.calls != 1 {
		t.Errorf("one user alone: got %v after %d calls", err, m.calls)
	}
}

// TestBudgetOfAPersonByPlace checks that a user's limit can depend on the place, and that usage in other places
// counts.
func TestBudgetOfAPersonByPlace(t *testing.T) {
	m := &paidModel{usage: llm.Usage{In: 900, Out: 100}}
	wide := core.MustPath("a/wide")
	b := budgeted(m.chain(), BudgetConfig{PersonTokens: 1}, BudgetOptions{PersonTokens: func(place core.Path) int64 {
		if place == wide {
			return 0 // no limit
		}
		return 900
	}})
	for i, c := range []struct {
		place string
		spent bool
	}{{"a/narrow", false}, {"a/narrow", true}, {"a/wide", false}, {"a/wide", false}} {
		if _, err := b.Ask(t.Context(), from(c.place, "a/@user/1")); (err != nil) != c.spent {
			t.Errorf("question %d: %v", i, err)
		}
	}
}

// TestBudgetHoldsAcrossCalls checks that concurrent questions do not exceed a budget together, although a new
// budget replaces it meanwhile.
func TestBudgetHoldsAcrossCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := plainQuestion().Build(llm.Limits{})
		one := tokensOf(r)
		m := &paidModel{usage: llm.Usage{In: int(one)}, hold: make(chan struct{})}
		b := budgeted(m.chain(), BudgetConfig{BotTokens: 3*one + one/2}, BudgetOptions{})
		later := limitedChain{Chain: b.Within(NewBudget(b.cfg, b.o, b.Budget), nil)}
		var wg sync.WaitGroup
		var mu sync.Mutex
		refused := 0
		for i := range 10 {
			wg.Go(func() {
				if _, err := []limitedChain{b, later}[i%2].Ask(t.Context(), from("a/1", "a/@user/1")); err != nil {
					mu.Lock()
					refused++
					mu.Unlock()
				}
			})
		}
		synctest.Wait()
		close(m.hold)
		wg.Wait()
		if m.calls != 3 || refused != 7 {
			t.Errorf("got %d calls, %d refused", m.calls, refused)
		}
		spent, _ := b.o.Ledger.Spent(t.Context(), time.Now().Format(time.DateOnly), core.Path{})
		if spent.Tokens != 3*one || len(b.held) != 0 {
			t.Errorf("got %+v, reserved %v", spent, b.held)
		}
	})
}

func TestBudgetIsNewEachDay(t *testing.T) {
	zone := time.FixedZone("x", 5*3600)
	now := time.Date(2026, 11, 20, 18, 50, 0, 0, time.UTC) // 23:50 in the budget's zone
	m := &paidModel{usage: llm.Usage{In: 1000}}
	o := BudgetOptions{Zone: zone, Clock: func() time.Time { return now }}
	b := budgeted(m.chain(), BudgetConfig{BotTokens: 900}, o)
	b.Ask(t.Context(), from("a/1", ""))
	_, err := b.Ask(t.Context(), from("a/1", ""))
	if spent, ok := errors.AsType[*SpentError](err); !ok || spent.After != 10*time.Minute {
		t.Errorf("got %v", err)
	}
	now = now.Add(11 * time.Minute)
	if _, err := b.Ask(t.Context(), from("a/1", "")); err != nil {
		t.Errorf("the next day: got %v", err)
	}
}

// brokenLedger fails on reads.
type brokenLedger struct{ memoryLedger }

func (*brokenLedger) Spent(context.Context, string, core.Path) (Spending, error) {
	return Spending{}, errors.New("disk")
}

func TestLedgerThatFails(t *testing.T) {
	m := &paidModel{}
	_, err := budgeted(m.chain(), BudgetConfig{BotTokens: 900}, BudgetOptions{Ledger: &brokenLedger{}}).Ask(t.Context(), from("a/1", ""))
	if failed, ok := err.(*llm.Error); !ok || failed.Kind != llm.ErrorRetryLater || m.calls != 0 {
		t.Errorf("got %v", err)
	}
}

// TestBudgetOverAChain checks that a spent budget is reported: the built-in engine must not answer instead.
func TestBudgetOverAChain(t *testing.T) {
	s := newServer(t, respondOpenAI("yo"))
	tables := []Config{s.table(func(c *Config) { c.PriceIn, c.PriceOut, c.PriceCached = 2, 10, 0.5 })}
	c, err := New(tables, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ledger := newMemoryLedger()
	o := BudgetOptions{Ledger: ledger, Cost: prices(tables)}
	b := budgeted(c, BudgetConfig{BotTokens: 1000, PersonCost: 0.00001}, o)
	if a, err := b.Ask(bounded(t), plainQuestion()); err != nil || a.Engine != "test" {
		t.Fatalf("got %+v, %v", a, err)
	}
	spent, _ := ledger.Spent(t.Context(), time.Now().Format(time.DateOnly), core.MustPath("console"))
	if want := (10*2 + 20*0.5 + 4*10) / 1e6; spent.Tokens != 34 || spent.Cost < want*0.99 || spent.Cost > want*1.01 {
		t.Errorf("got %+v, want cost %v", spent, want)
	}
	if a, err := b.Ask(bounded(t), plainQuestion()); err == nil || len(s.got()) != 1 {
		t.Errorf("got %+v", a)
	}
}

// TestBudgetSparesTheEngine checks that prompts above one user's budget do not disable the engine for the next
// user.
func TestBudgetSparesTheEngine(t *testing.T) {
	m := &script{name: "paid", steps: []func(context.Context) (llm.Answer, error){says("paid")}}
	chain := chainOf(false, m)
	poor := budgeted(chain, BudgetConfig{PersonTokens: 10}, BudgetOptions{})
	for range 2 * tripAfter {
		if _, err := poor.Ask(t.Context(), from("a/1", "a/@user/1")); err == nil {
			t.Fatal("the user above the budget was answered")
		}
	}
	if a, err := poor.Ask(t.Context(), from("a/1", "")); err != nil || a.Engine != "paid" {
		t.Errorf("the next user: %q answers, %v", a.Engine, err)
	}
}

// TestSharesMakeUpTheWhole checks that the shares of several users add up to the usage.
func TestSharesMakeUpTheWhole(t *testing.T) {
	whole := llm.Usage{In: 1000, Out: 101, Cached: 7}
	for n := 1; n <= 7; n++ {
		u := Use{People: make([]core.Path, n), Usage: whole, Cost: 3}
		var sum llm.Usage
		cost := 0.0
		for i := range n {
			share, price := u.Share(i)
			if share.In < whole.In/n || share.In > whole.In/n+1 {
				t.Errorf("share %d of %d: got %+v", i, n, share)
			}
			sum = llm.Usage{In: sum.In + share.In, Out: sum.Out + share.Out, Cached: sum.Cached + share.Cached}
			cost += price
		}
		if sum != whole || cost < 2.999 || cost > 3.001 {
			t.Errorf("%d shares add up to %+v, %v", n, sum, cost)
		}
	}
}

// TestBudgetIsAllottedToAll checks that concurrent questions in several processes do not refuse each other
// while the limit has room for them.
func TestBudgetIsAllottedToAll(t *testing.T) {
	for limit, want := range map[int64]int{1 << 40: 3, 1: 0} {
		synctest.Test(t, func(t *testing.T) {
			m := &paidModel{hold: make(chan struct{})}
			allot := func(_ context.Context, _ string, _ core.Path, limit, wanted int64) (int64, error) {
				time.Sleep(time.Second) // all of them read the budget before one reserves anything
				return min(wanted, limit), nil
			}
			b := budgeted(m.chain(), BudgetConfig{BotTokens: limit}, BudgetOptions{Allot: allot})
			var asking sync.WaitGroup
			for range 3 {
				asking.Go(func() { _, _ = b.Ask(t.Context(), from("a/1", "a/@user/1")) })
			}
			time.Sleep(time.Minute)
			close(m.hold)
			asking.Wait()
			if m.calls != want || len(b.held) != 0 {
				t.Errorf("%d of 3 questions were asked with a limit of %d, reserved: %v", m.calls, limit, b.held)
			}
		})
	}
}

// TestBudgetIsTheReason checks that the built-in engine does not answer if the budget has room only for its
// short prompt, because its answer would give another reason. A paid engine with a short prompt answers.
func TestBudgetIsTheReason(t *testing.T) {
	long, short := llm.Utterance{Text: strings.Repeat("word ", 5000)}, llm.Utterance{Text: "word"}
	c := (&paidModel{}).chain()
	b := budgeted(c, BudgetConfig{BotTokens: 1000}, BudgetOptions{})
	q := from("a/1", "")
	q.Build = func(l llm.Limits) (llm.Request, error) {
		if l.Chars > 0 {
			r := hello()
			r.System, r.Messages = nil, append(r.Messages, short)
			return r, nil
		}
		return llm.Request{Messages: []llm.Utterance{long}}, nil
	}
	_, err := b.Ask(t.Context(), q)
	if _, ok := errors.AsType[*SpentError](err); !ok {
		t.Error(err)
	}
	small := &script{name: "small", limits: llm.Limits{Chars: 1}}
	small.steps = []func(context.Context) (llm.Answer, error){says("small")}
	b.links = append(b.links, newLink("small", paidScript{small}, 0, c.options))
	if a, err := b.Ask(t.Context(), q); err != nil || a.Engine != "small" {
		t.Errorf("%q answers, %v", a.Engine, err)
	}
	small.steps = []func(context.Context) (llm.Answer, error){fails(llm.ErrorFatal, 0)}
	if a, err := b.Ask(t.Context(), q); err != nil || a.Engine != "offline" { // the engine failed after it was paid
		t.Errorf("%q answers, %v", a.Engine, err)
	}
}

// paidScript is a script whose calls cost something.
type paidScript struct{ *script }

func (p paidScript) Generate(ctx context.Context, r llm.Request) (llm.Answer, error) {
	r.Used(llm.Usage{In: 1})
	return p.script.Generate(ctx, r)
}

// TestMeter checks that work besides engines is booked, although it fails, and that it is not started with a
// spent budget.
func TestMeter(t *testing.T) {
	b := budgeted(chainOf(true), BudgetConfig{PersonTokens: 100}, BudgetOptions{})
	q, broken := from("a/1", "a/@user/1"), errors.New("broken")
	did := 0
	work := func(context.Context) (int, error) { did++; return 60, broken }
	for range 2 {
		if err := b.Meter(t.Context(), q, "speech.in", work); !errors.Is(err, broken) {
			t.Error(err)
		}
	}
	err := b.Meter(t.Context(), q, "speech.in", work)
	if _, ok := errors.AsType[*SpentError](err); !ok || did != 2 || len(b.held) != 0 {
		t.Errorf("got %v after %d runs, reserved: %v", err, did, b.held)
	}
	uses := b.o.Ledger.(*memoryLedger).uses
	if len(uses) != 2 || uses[1].Engine != "speech.in" || uses[1].Usage.In != 60 || uses[1].Place != q.Path {
		t.Errorf("booked %+v", uses)
	}
	var none *Budget
	if err := none.Meter(t.Context(), q, "speech.in", work); !errors.Is(err, broken) || did != 3 {
		t.Errorf("without a budget: got %v", err)
	}
}
