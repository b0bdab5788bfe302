package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/llm"
)

// BudgetConfig is the [budget] table: limits per day. A limit of 0 means no limit.
type BudgetConfig struct {
	PersonTokens int64         `toml:"person_tokens" doc:"Tokens that one user may use in a day; 0 for no limit." default:"1000000" min:"0"`
	BotTokens    int64         `toml:"bot_tokens" doc:"Tokens that all users together may use in a day; 0 for no limit." default:"20000000" min:"0"`
	PersonCost   float64       `toml:"person_cost" doc:"What one user may cost in a day, in the currency of the engines' prices; 0 for no limit." default:"0" min:"0"`
	BotCost      float64       `toml:"bot_cost" doc:"What all users together may cost in a day; 0 for no limit." default:"0" min:"0"`
	Places       []PlaceBudget `toml:"place" doc:"The budget of a place and all places below it."`
}

// PlaceBudget is one [[budget.place]] table.
type PlaceBudget struct {
	Path   core.Path `toml:"path" kind:"place" required:"true" doc:"The place. All places below it share its budget." example:"console/kitchen"`
	Tokens int64     `toml:"tokens" doc:"Tokens in a day; 0 for no limit." default:"0" min:"0"`
	Cost   float64   `toml:"cost" doc:"Cost in a day; 0 for no limit." default:"0" min:"0"`
}

// Spending is an amount of tokens and money.
type Spending struct {
	Tokens int64   `json:"tokens"`
	Cost   float64 `json:"cost,omitempty"`
}

// Use is one call of an engine.
type Use struct {
	Time   time.Time   `json:"time"`
	Day    string      `json:"day"` // 2026-11-20, in the bot's zone
	Engine string      `json:"engine"`
	Place  core.Path   `json:"place"`
	People []core.Path `json:"people,omitempty"` // who are charged, in equal shares
	Usage  llm.Usage   `json:"usage"`
	Cost   float64     `json:"cost,omitempty"`
}

// Share returns what the i-th of the people is charged. The shares add up to the whole.
func (u *Use) Share(i int) (llm.Usage, float64) {
	n := len(u.People)
	part := func(of int) int { return (of + i) / n }
	return llm.Usage{In: part(u.Usage.In), Out: part(u.Usage.Out), Cached: part(u.Usage.Cached)}, u.Cost / float64(n)
}

// Ledger records usage. Safe for concurrent use.
type Ledger interface {
	// Spent sums the uses of a day whose place is within scope, or one of whose
	// people is scope. For the zero Path it sums all uses of the day.
	Spent(ctx context.Context, day string, scope core.Path) (Spending, error)
	// Record adds a use. Every later Spent includes it.
	Record(ctx context.Context, u Use) error
}

// SpentError says that a budget is used up. It wraps a *core.Error with a text for
// users, and is itself wrapped in a *llm.Error of the kind llm.ErrorRefused.
type SpentError struct {
	Scope  core.Path // the person or place; zero: the bot
	Limit  Spending
	Spent  Spending
	Wanted int64 // tokens that the question needs
	Resets time.Time
	After  time.Duration
}

func (e *SpentError) Error() string {
	who := e.Scope.String()
	if e.Scope.IsZero() {
		who = "the bot"
	}
	return fmt.Sprintf("budget of %s is spent: %d tokens (of %d), cost %.4f (of %.4f), until %s",
		who, e.Spent.Tokens, e.Limit.Tokens, e.Spent.Cost, e.Limit.Cost, e.Resets.Format(time.RFC3339))
}

// Unwrap returns the error for users.
func (e *SpentError) Unwrap() error {
	text := "I have used up what I may spend today. I can think again at %s."
	switch {
	case e.Limit.Tokens > 0 && e.Wanted > e.Limit.Tokens: // waiting until tomorrow will not help
		return core.Errorf(core.Occupied, "I cannot answer: the limit of %d tokens a day is less than one answer "+
			"takes. My admins can raise it.", e.Limit.Tokens)
	case e.Scope.IsPerson():
		text = "You have used up your share of my thinking for today. There is more at %s."
	}
	err := core.Errorf(core.Occupied, text, e.Resets.Format("15:04"))
	err.After = e.After
	return err
}

// BudgetOptions are what a Budget needs besides its table. All but PersonTokens and Allot are required.
type BudgetOptions struct {
	Ledger Ledger // nil: nothing is limited or recorded
	Cost   func(engine string, u llm.Usage) float64
	Used   func(engine string, u llm.Usage) // called for every use
	Clock  func() time.Time
	Zone   *time.Location // where a day begins
	Log    *slog.Logger
	// PersonTokens returns how many tokens a day a person may use who asks in a place; nil: BudgetConfig.PersonTokens.
	PersonTokens func(place core.Path) int64
	// Allot returns how many more tokens this process may use on a day, out of the limit of a place or,
	// for the zero Path, of the bot. It lets several processes share a limit, and tries to provide the
	// wanted number of tokens. Nil: there is only one process.
	Allot func(ctx context.Context, day string, scope core.Path, limit, wanted int64) (int64, error)
}

// Budget admits a question only while no budget that applies to it is used up. The tokens of a prompt are held from
// before it is sent until it is answered, so that concurrent questions do not pass an almost empty budget together. A
// nil Budget limits and records nothing. Safe for concurrent use.
type Budget struct {
	cfg BudgetConfig
	o   BudgetOptions
	*holds
}

// holds counts the tokens that unanswered questions hold.
type holds struct {
	mu   sync.Mutex
	held map[core.Path]int64 // tokens
}

// NewBudget makes a Budget from a table. It returns nil without a Ledger. The holds of the former
// Budget, which may be nil, also count in the new one.
func NewBudget(cfg BudgetConfig, o BudgetOptions, former *Budget) *Budget {
	if o.Ledger == nil {
		return nil
	}
	b := &Budget{cfg, o, &holds{held: make(map[core.Path]int64)}}
	if former != nil {
		b.holds = former.holds
	}
	return b
}

// Meter does paid work other than asking an engine, if the budgets that apply to the question are not used
// up, and records the tokens that do returns as used by name.
func (b *Budget) Meter(
	ctx context.Context, q core.Question, name string, do func(context.Context) (tokens int, err error),
) error {
	q.Build = func(llm.Limits) (llm.Request, error) { return llm.Request{}, nil }
	held, err := b.reserve(ctx, &q)
	if err != nil {
		return err
	}
	defer held.release()
	r, err := q.Build(llm.Limits{Engine: name})
	if err != nil {
		return cmp.Or(held.spent, err)
	}
	tokens, err := do(ctx)
	if tokens > 0 && r.Used != nil {
		r.Used(llm.Usage{In: tokens})
	}
	return err
}

// allowance is a limit that applies to a question.
type allowance struct {
	scope core.Path
	limit Spending
	spent Spending
	left  *int64 // tokens left for this process; nil: limit minus spent

	wanted int64 // the tokens that Allot was asked for
}

// reserve opens a reservation for a question, unless a budget is used up. It replaces q.Build by one that
// holds tokens for the prompt and records what the call uses. The caller releases the reservation.
func (b *Budget) reserve(ctx context.Context, q *core.Question) (*reservation, error) {
	if b == nil {
		return new(reservation), nil
	}
	now := b.o.Clock().In(b.o.Zone)
	t := &reservation{budget: b, question: *q, now: now, day: now.Format(time.DateOnly)}
	if err := t.readAllowances(ctx); err != nil {
		return nil, &llm.Error{Kind: llm.ErrorRetryLater, Err: fmt.Errorf("budget: %w", err)}
	}
	if err := t.hold(0); err != nil {
		return nil, err
	}
	q.Build = func(l llm.Limits) (llm.Request, error) { return t.build(ctx, l) }
	return t, nil
}

// reservation is what one question holds of its budgets while it is being answered.
type reservation struct {
	budget   *Budget // nil: nothing is limited
	question core.Question
	now      time.Time
	day      string
	shared   []allowance // of the bot and the place
	personal []allowance // of the people who caused the question
	payers   []core.Path // those of them who have enough left; they are charged
	held     int64
	share    int64 // held for each payer
	spent    error // why an engine was not asked; nil once a later call used tokens
}

func (t *reservation) release() {
	if t.budget != nil {
		t.budget.mu.Lock()
		defer t.budget.mu.Unlock()
		t.count(-1)
	}
}

// readAllowances sets the allowances of the bot, the place and each person. For those with a limit, it
// reads what was already spent.
func (t *reservation) readAllowances(ctx context.Context) (err error) {
	cfg, o, q := &t.budget.cfg, &t.budget.o, &t.question
	tokens := cfg.PersonTokens
	if o.PersonTokens != nil {
		tokens = o.PersonTokens(q.Path)
	}
	for _, p := range q.People {
		t.personal = append(t.personal, allowance{scope: p, limit: Spending{tokens, cfg.PersonCost}})
	}
	for _, p := range cfg.Places {
		if q.Path.Within(p.Path) {
			t.shared = append(t.shared, allowance{scope: p.Path, limit: Spending{p.Tokens, p.Cost}})
		}
	}
	t.shared = append(t.shared, allowance{limit: Spending{cfg.BotTokens, cfg.BotCost}})
	for _, list := range [][]allowance{t.shared, t.personal} {
		for i := range list {
			if err == nil && list[i].limit != (Spending{}) {
				list[i].spent, err = o.Ledger.Spent(ctx, t.day, list[i].scope)
			}
		}
	}
	return err
}

// build builds a prompt, holds its tokens and sets its Used to record what the call uses.
func (t *reservation) build(ctx context.Context, l llm.Limits) (llm.Request, error) {
	r, err := t.question.Build(l)
	if err != nil {
		return r, err
	}
	tokens := tokensOf(r)
	var spent error
	for {
		if err := t.allot(ctx, tokens); err != nil {
			return llm.Request{}, &llm.Error{Kind: llm.ErrorRetryLater, Err: fmt.Errorf("budget: %w", err)}
		}
		spent = t.hold(tokens)
		t.budget.mu.Lock()
		isOvertaken := slices.ContainsFunc(t.shared, func(a allowance) bool { // since allot, by other questions
			return a.left != nil && *a.left >= a.wanted && t.budget.held[a.scope]+tokens > *a.left
		})
		t.budget.mu.Unlock()
		if spent == nil || !isOvertaken {
			break
		}
	}
	if spent != nil {
		t.spent = spent
		return llm.Request{}, &llm.Error{Kind: llm.ErrorRefused, Err: errSpent}
	}
	r.Used = func(used llm.Usage) { t.record(context.WithoutCancel(ctx), l.Engine, used) }
	return r, nil
}

func (t *reservation) record(ctx context.Context, engine string, used llm.Usage) {
	o := t.budget.o
	t.spent = nil
	o.Used(engine, used)
	u := Use{Time: t.now, Day: t.day, Engine: engine, Place: t.question.Path, People: t.payers, Usage: used}
	u.Cost = o.Cost(engine, used)
	if err := o.Ledger.Record(ctx, u); err != nil {
		o.Log.Error("use not recorded", "err", err, "path", t.question.Path)
	}
}

// allot asks how much of the budgets of the bot and the place is left for this process.
func (t *reservation) allot(ctx context.Context, tokens int64) error {
	b := t.budget
	for i := range t.shared {
		a := &t.shared[i]
		if b.o.Allot == nil || a.limit.Tokens == 0 {
			continue
		}
		b.mu.Lock()
		a.wanted = b.held[a.scope] - t.held + tokens
		b.mu.Unlock()
		left, err := b.o.Allot(ctx, t.day, a.scope, a.limit.Tokens, a.wanted)
		if err != nil {
			return err
		}
		a.left = &left
	}
	return nil
}

// errSpent is Build's error if a budget is used up. Ask then returns the reservation's spent.
var errSpent = errors.New("a budget is spent")

// hold holds tokens in every budget, in place of those held before.
func (t *reservation) hold(tokens int64) error {
	b := t.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	t.count(-1)
	t.held, t.share = 0, 0
	for _, a := range t.shared {
		if b.isFull(a, tokens) {
			return t.spentError(a, tokens)
		}
	}
	t.payers, t.share = b.payers(t.personal, tokens)
	if len(t.payers) == 0 && len(t.personal) > 0 {
		return t.spentError(t.personal[0], tokens/int64(len(t.personal)))
	}
	t.held = tokens
	t.count(1)
	return nil
}

// count adds what this question holds to the totals for 1, and subtracts it for -1. The caller holds budget.mu.
func (t *reservation) count(sign int64) {
	add := func(scope core.Path, tokens int64) {
		held := t.budget.held
		held[scope] += sign * tokens
		if held[scope] == 0 {
			delete(held, scope)
		}
	}
	for _, a := range t.shared {
		add(a.scope, t.held)
	}
	for _, p := range t.payers {
		add(p, t.share)
	}
}

// isFull reports whether an allowance is too small for tokens or, for 0 tokens, whether it is
// used up. The caller holds b.mu.
func (b *Budget) isFull(a allowance, tokens int64) bool {
	wanted := a.spent.Tokens + b.held[a.scope] + tokens
	if a.left != nil {
		wanted = max(wanted, a.limit.Tokens-*a.left+b.held[a.scope]+tokens)
	}
	full := a.limit.Tokens > 0 && (wanted > a.limit.Tokens || wanted == a.limit.Tokens && tokens == 0)
	return full || a.limit.Cost > 0 && a.spent.Cost >= a.limit.Cost
}

// payers returns who is charged for tokens, and how many each. Nobody is charged more than they
// have left, so a person without budget does not keep the others from an answer. The caller holds b.mu.
func (b *Budget) payers(each []allowance, tokens int64) (people []core.Path, share int64) {
	for n := -1; len(each) != n && len(each) > 0; {
		n = len(each)
		share = (tokens + int64(n) - 1) / int64(n)
		each = slices.DeleteFunc(slices.Clone(each), func(a allowance) bool { return b.isFull(a, share) })
	}
	for _, a := range each {
		people = append(people, a.scope)
	}
	return people, share
}

func (t *reservation) spentError(a allowance, tokens int64) error {
	y, m, d := t.now.Date()
	resets := time.Date(y, m, d+1, 0, 0, 0, 0, t.now.Location())
	after := resets.Sub(t.now)
	spent := &SpentError{Scope: a.scope, Limit: a.limit, Spent: a.spent, Wanted: tokens, Resets: resets, After: after}
	return &llm.Error{Kind: llm.ErrorRefused, After: after, Err: spent}
}

// tokensOf estimates the size of a prompt, rather too high than too low.
func tokensOf(r llm.Request) int64 {
	const picture = 1000 // tokens that providers count for one, roughly
	pictures := 0
	for _, u := range r.Messages {
		pictures += len(u.Pictures)
	}
	return int64(textTokens(r) + pictures*picture)
}

// textTokens estimates the size of a prompt without its files.
func textTokens(r llm.Request) int {
	texts := slices.Clone(r.System)
	for _, u := range r.Messages {
		texts = append(texts, u.Text)
		for _, c := range u.Calls {
			texts = append(texts, string(c.Arguments))
		}
	}
	for _, tool := range r.Tools {
		texts = append(texts, tool.Brief, string(tool.Schema))
	}
	return llm.Tokens(texts...)
}
