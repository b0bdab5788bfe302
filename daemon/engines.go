package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	adminpage "synthbot/admin/page"
	"synthbot/core"
	"synthbot/core/engine"
	"synthbot/core/llm"
	"synthbot/core/recon"
	"synthbot/core/turn"
	"synthbot/core/txt"
	"synthbot/core/values"
	"synthbot/daemon/logs"
	"synthbot/memory"
)

func (b *Bot) engineOptions(p *parts) engine.Options {
	clock := p.Config.Clock(b.env.Clock)
	return engine.Options{
		Log: logs.Room(b.log, "core/engine"), Clock: clock, Zone: clock().Location(),
		Prefer: func(place core.Path) string { return p.settings.At(place).Engine },
		Health: b.alerts.engineHealth, Failed: func(name string, failed *llm.Error) {
			b.monitor.metrics.ModelFailed(name, failed.Kind)
			text := cmp.Or(failureCause(failed), string(failed.Kind))
			b.monitor.failures.Store(name, adminpage.Part{Text: text, Since: clock()})
		},
	}
}

func (b *Bot) newChain(p *parts) (*engine.Chain, error) {
	chain, err := engine.New(p.Config.Engines, b.engineOptions(p))
	if err != nil {
		return nil, UsageError{err}
	}
	b.monitor.metrics.Engines(chain.Names()...)
	return chain, nil
}

// newBudget makes the budget of places, users and the whole bot; nil without a database.
func (b *Bot) newBudget(p *parts) *engine.Budget {
	if b.Data.usage == nil {
		return nil
	}
	all, clock := p.Config.Budget, p.Config.Clock(b.env.Clock)
	all.Places = p.placeBudgets()
	o := engine.BudgetOptions{
		Ledger: b.Data.usage, Cost: p.Config.Cost, Used: b.monitor.metrics.Used,
		Clock: clock, Zone: clock().Location(), Log: logs.Room(b.log, "core/engine"),
		PersonTokens: func(place core.Path) int64 { return *p.settings.At(place).PersonTokens },
	}
	if b.workers.sharing.database() != nil {
		o.Allot = b.Data.usage.allot
	}
	return engine.NewBudget(all, o, b.InForce().budget)
}

// smallRecon makes the recon by a small model, if the configuration names an engine for it; nil otherwise.
func (b *Bot) smallRecon(p *parts) (*recon.Small, error) {
	for _, e := range p.Config.Engines {
		name := cmp.Or(e.Name, e.Provider)
		if name == "" || name != p.Config.Prompt.Recon {
			continue
		}
		o := b.engineOptions(p)
		o.Prefer, o.Health = nil, nil
		chain, err := engine.New([]engine.Config{e}, o)
		if err != nil {
			return nil, UsageError{err}
		}
		return recon.NewSmall(budgeted{b, chain}), nil
	}
	return nil, nil
}

// budgeted asks a chain within the budget in force.
type budgeted struct {
	bot   *Bot
	chain *engine.Chain
}

func (a budgeted) Ask(ctx context.Context, q core.Question) (llm.Answer, error) {
	return a.chain.Within(a.bot.InForce().budget, nil).Ask(ctx, q)
}

// setEmbedder sets the model for semantic search in memories: that of the first engine with an embedding model.
func (b *Bot) setEmbedder(p *parts) {
	if b.Data.DB == nil {
		return
	}
	b.Data.DB.SetConfig(p.Config.Memory)
	var by memory.Embedder
	embeds := func(e engine.Config) bool { return !e.Disabled && e.EmbeddingModel != "" }
	i := slices.IndexFunc(p.Config.Engines, embeds)
	if i >= 0 {
		embedder, err := engine.NewEmbedder(p.Config.Engines[i], b.engineOptions(p))
		if err != nil {
			b.log.Error("memories are not found by meaning", "err", err)
		} else {
			by = memory.Embedder{Model: p.Config.Engines[i].EmbeddingModel, Embed: embedder.Embed}
		}
	}
	b.Data.DB.SetEmbedder(by)
}

// usageStore implements engine.Ledger on the database. Each use counts for the place, and in shares for its users. The
// sums of the day are held in memory. Uses are written with the commits that turns make anyway.
type usageStore struct {
	bot *Bot
	db  *memory.DB

	mu      sync.Mutex
	day     string
	sums    map[core.Path]engine.Spending // of the day, by place and by user; nil: not read yet
	writing sync.WaitGroup

	// If several processes share the budgets: how many tokens this one used on the day, by place, and how many
	// of each limit it has taken for itself, by the limit's scope.
	used, allotted map[core.Path]int64
}

// allotted is how many tokens of a limit all processes together have taken for themselves on a day.
type allotted struct {
	Day    string `json:"day"`
	Tokens int64  `json:"tokens"`
}

const (
	allottedKey = "allotted"
	allotments  = 50 // a process takes at least 1/allotments of a limit at once
)

// allot returns how many tokens this process may use of a limit. If it has taken fewer than wanted, it takes more.
func (l *usageStore) allot(ctx context.Context, day string, scope core.Path, limit, wanted int64) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.loadDay(ctx, day); err != nil {
		return 0, err
	}
	left := l.left(scope)
	if left >= wanted {
		return left, nil
	}
	before := l.spent(scope).Tokens // by all processes, as this one read it last
	var taken int64
	err := values.Edit(ctx, l.db.Items("budget"), scope, allottedKey, func(all *allotted) (keep bool, err error) {
		if all.Day != day {
			*all = allotted{day, before}
		}
		taken = max(0, min(max(wanted-left, limit/allotments), limit-all.Tokens))
		all.Tokens += taken
		return true, nil
	})
	if err != nil {
		return 0, err
	}
	l.allotted[scope] += taken
	return left + taken, nil
}

// left returns how many of the tokens that this process took of a limit it has not used yet. l.mu is held.
func (l *usageStore) left(scope core.Path) int64 {
	left := l.allotted[scope]
	for place, tokens := range l.used {
		if place.Within(scope) {
			left -= tokens
		}
	}
	return left
}

// returnUnused returns the unused tokens that this process took, so that others can use them.
func (l *usageStore) returnUnused(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for scope := range l.allotted {
		tokens := l.left(scope)
		back := func(all *allotted) (keep bool, err error) {
			if all.Day == l.day {
				all.Tokens -= tokens
			}
			return true, nil
		}
		errs = append(errs, values.Edit(ctx, l.db.Items("budget"), scope, allottedKey, back))
	}
	clear(l.allotted)
	return errors.Join(errs...)
}

// invalidate drops the sums, so that the usage of all processes is read again.
func (l *usageStore) invalidate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sums = nil
}

func (l *usageStore) Record(ctx context.Context, u engine.Use) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.loadDay(ctx, u.Day); err != nil {
		return err
	}
	use := memory.Use{Day: u.Day, Person: u.Place, Engine: u.Engine, Calls: 1, Usage: u.Usage, Cost: &u.Cost}
	uses := []memory.Use{use}
	l.used[u.Place] += int64(u.Usage.In + u.Usage.Out)
	for i, person := range u.People {
		share, cost := u.Share(i)
		use.Person, use.Usage, use.Cost = person, share, &cost
		uses = append(uses, use)
	}
	for _, use := range uses {
		l.addToSums(use)
	}
	written := l.db.AddUse(uses...)
	l.writing.Go(func() {
		if err := <-written; err != nil {
			l.bot.log.Error("usage not written", "err", err)
		}
	})
	return nil
}

func (l *usageStore) addToSums(u memory.Use) {
	s := l.sums[u.Person]
	s.Tokens += int64(u.In + u.Out)
	s.Cost += l.bot.InForce().Config.CostOf(u)
	l.sums[u.Person] = s
}

// loadDay reads the sums of a day, unless they are loaded. l.mu is held.
func (l *usageStore) loadDay(ctx context.Context, day string) error {
	if l.day == day && l.sums != nil {
		return nil
	}
	l.writing.Wait() // so that the database has every use
	uses, err := l.db.Uses(ctx, day, day)
	if err != nil {
		return fmt.Errorf("usage: %w", err)
	}
	if l.day != day {
		l.used, l.allotted = make(map[core.Path]int64), make(map[core.Path]int64)
	}
	l.day, l.sums = day, make(map[core.Path]engine.Spending)
	for _, u := range uses {
		l.addToSums(u)
	}
	return nil
}

func (l *usageStore) Spent(ctx context.Context, day string, scope core.Path) (engine.Spending, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.loadDay(ctx, day); err != nil {
		return engine.Spending{}, err
	}
	return l.spent(scope), nil
}

// spent is Spent for the loaded day. l.mu is held.
func (l *usageStore) spent(scope core.Path) (all engine.Spending) {
	if scope.IsPerson() {
		return l.sums[scope]
	}
	for whose, s := range l.sums {
		if !whose.IsPerson() && whose.Within(scope) {
			all.Tokens += s.Tokens
			all.Cost += s.Cost
		}
	}
	return all
}

// Cost returns the cost of a use of an engine or of speech, by the prices of the configuration.
func (c *Config) Cost(name string, u llm.Usage) float64 {
	for _, e := range c.Engines {
		if e.Name == name || e.Name == "" && e.Provider == name {
			return e.Cost(u)
		}
	}
	switch name {
	case speechIn:
		return float64(u.In) * c.Speech.In.Price / 60
	case speechOut:
		return float64(u.In) * c.Speech.Out.Price / 1e6
	}
	return 0
}

// CostOf returns what a use cost when it arose; by the prices of the configuration if that is not stored.
func (c *Config) CostOf(u memory.Use) float64 {
	if u.Cost != nil {
		return *u.Cost
	}
	return c.Cost(u.Engine, u.Usage)
}

// Spending adds up uses by day and engine. Each row has a cost.
func (c *Config) Spending(uses []memory.Use) (rows []memory.Use) {
	for _, u := range uses {
		if u.Person.IsPerson() {
			continue // the row of the place has the same use
		}
		u.Cost = new(c.CostOf(u))
		i := slices.IndexFunc(rows, func(s memory.Use) bool { return s.Day == u.Day && s.Engine == u.Engine })
		if i < 0 {
			u.Person = core.Path{}
			rows = append(rows, u)
			continue
		}
		rows[i].Add(u)
	}
	return rows
}

// EnginesTooSmall finds engines whose limits are too small for any prompt in some place. Turns never ask them there.
func (b *Bot) EnginesTooSmall(ctx context.Context) (found []core.Finding) {
	o, c := b.turnOptions(b.InForce()), b.InForce().Config
	o.Plugins.Injectors, o.Plugins.Recons, o.Plugins.Bios = nil, nil, nil // a check connects to nothing
	turns := turn.New(o)
	for _, e := range c.Engines {
		for _, place := range c.samplePlaces() {
			if e.Disabled {
				continue
			}
			hello := core.Message{
				Path: place, ID: "check", Text: "hello", Time: o.Clock(),
				Private: true, Addressed: core.AddressedDirect,
			}
			_, err := turns.Preview(ctx, hello, e.Limits())
			if tooLong, ok := errors.AsType[*llm.Error](err); ok {
				text := fmt.Sprintf("%s is passed over in %s, where no prompt fits: %v", e.Name, place, tooLong.Err)
				found = append(found, core.Finding{Fix: text})
				break
			}
		}
	}
	return found
}

// samplePlaces returns places whose smallest prompts differ: one for each interface and for each persona.
func (c *Config) samplePlaces() (places []core.Path) {
	for _, e := range c.Enabled {
		if p, err := core.MakePath(e.Name, "1"); err == nil {
			places = append(places, p)
		}
	}
	for i := range c.Overrides {
		o := &c.Overrides[i]
		if o.personaFile() != "" {
			places = append(places, o.Path)
		}
	}
	return places
}

// ProbeEngines asks each engine a short question.
func ProbeEngines(ctx context.Context, chain *engine.Chain) (list []core.Finding) {
	for _, probe := range chain.Probe(ctx) {
		f := core.Finding{What: probe.Engine, Found: "answers"}
		if probe.Err != nil {
			f = core.Finding{What: probe.Engine, Found: "cannot be used", Fix: engineFix(probe.Err), Fatal: true}
		}
		list = append(list, f)
	}
	if len(list) == 0 {
		list = append(list, core.Finding{
			What: "none", Found: "only the built-in engine answers", Fix: "add an [[engine]] for real conversations",
		})
	}
	return list
}

// PrintFinding prints a finding on one line.
func PrintFinding(out io.Writer, group string, f core.Finding) {
	mark := "ok"
	switch {
	case f.Fix != "" && f.Fatal:
		mark = "FAIL"
	case f.Fix != "":
		mark = "!"
	}
	text := f.Found
	if f.Found != "" && f.Fix != "" {
		text += ": "
	}
	text = txt.Line(text + f.Fix)
	if f.What == "" {
		fmt.Fprintf(out, "%-3s %-14s %s\n", mark, group, text)
		return
	}
	fmt.Fprintf(out, "%-4s %-10s %-12s %s\n", mark, group, f.What, text)
}

func engineFix(err error) string {
	m, ok := errors.AsType[*llm.Error](err)
	switch {
	case !ok || failureCause(m) == "":
		return txt.Line(err.Error())
	case m.Status == 401 || m.Status == 403:
		return failureCause(m)
	}
	return failureCause(m) + ": " + txt.Line(fmt.Sprint(m.Err))
}

// failureCause describes why an engine failed, without the error, which may quote messages; "" if unknown.
func failureCause(e *llm.Error) string {
	switch {
	case e.Status == 401 || e.Status == 403:
		return "the key is refused; check api_key"
	case e.Status == 404:
		return "it knows no such address or model; check base_url and model"
	case e.Kind == llm.ErrorRetryLater:
		return "it cannot be reached, or is busy"
	}
	return ""
}
