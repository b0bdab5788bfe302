// Package filter refuses messages with unwelcome words or links, as the rules of the configuration say.
//
// Messages of moderators and admins are not checked. Others' messages are checked when they are received, when they are
// edited, and again before they are answered. For a message that breaks several rules, the strictest action applies.
// Replies to its author, log entries and notices to moderators are made at most every ten minutes per author.
//
// # How text is read
//
// Words are runs of letters, digits and combining marks, regardless of case. In scripts without spaces between words
// each letter is a word, and so is each emoji. Invisible characters are ignored, and all others separate words. Text is
// not normalised: an accented letter differs from a letter followed by a combining accent.
//
// A link has a scheme, or it is a bare host that chat clients turn into a link: its ending is one of the Internet's
// common ones, or a rule names it. Hosts are read as browsers read them: user names before an @ are skipped, percent
// signs are decoded, full stops of other scripts are dots.
package filter

import (
	"fmt"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/gate"
	"synthbot/core/recent"
)

const (
	warnEvery    = 10 * time.Minute
	maxAuthors   = 4096
	maxDelivered = 1000
)

// Log is the moderation log. Its methods do not block.
type Log interface {
	// LogAuthor logs an event about the author of a message.
	LogAuthor(m *core.Message, what, detail string, until time.Time)
	// NotifyAbout sends a notice about a message to places, or to all admins if there are none.
	NotifyAbout(m *core.Message, text string, to ...core.Path)
}

// Filter checks messages. It is safe for concurrent use.
type Filter struct {
	clock  func() time.Time
	notify []core.Path
	rules  *ruleSet
	log    Log

	mu        sync.Mutex
	warned    recent.Cache[core.Path, time.Time] // when each author was warned last
	delivered recent.Cache[gate.Delivery, judgment]
}

// judgment is the verdict on a message, and the rule that it broke.
type judgment struct {
	gate.Verdict
	broken *rule
}

// New returns a filter. Its error names what is wrong with the rules.
func New(clock func() time.Time, c Config, log Log) (*Filter, error) {
	rules, err := newRuleSet(&c)
	if err != nil {
		return nil, fmt.Errorf("filter: %w", err)
	}
	return &Filter{
		clock: clock, notify: c.Notify, rules: rules, log: log,
		warned:    recent.NewCache[core.Path, time.Time](maxAuthors),
		delivered: recent.NewCache[gate.Delivery, judgment](maxDelivered),
	}, nil
}

// Judge implements gate.Gate.
func (f *Filter) Judge(m *core.Message, again bool) gate.Verdict {
	if len(f.rules.rules) == 0 {
		return gate.Verdict{}
	}
	var broken *rule
	if m.Author.Rank < core.RankModerator {
		broken = f.rules.judge(m)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	d := gate.DeliveryOf(m)
	before, known := f.delivered.Get(d)
	if again {
		if known && broken != nil && broken != before.broken { // it was edited
			f.verdict(m, broken)
			f.delivered.Put(d, judgment{before.Verdict, broken})
		}
		return gate.Verdict{Admission: broken.admission()}
	}
	if known {
		return before.Verdict
	}
	v := f.verdict(m, broken)
	if m.ID != "" {
		f.delivered.Put(d, judgment{v, broken})
	}
	return v
}

// verdict returns the verdict on a message that breaks a rule. It logs the message, and
// adds a reply, unless the author was warned lately. The caller holds f.mu.
func (f *Filter) verdict(m *core.Message, broken *rule) gate.Verdict {
	v := gate.Verdict{Admission: broken.admission()}
	author, err := m.Path.Person(m.Author.ID)
	if broken == nil || err != nil || !f.mayWarn(author) {
		return v
	}
	if v.Admission != gate.Admit && gate.CanReply(m) {
		v.Reply = broken.Reply
	}
	if broken.Action == ruleTell {
		f.log.NotifyAbout(m, fmt.Sprintf("it breaks the rule %q.", broken.Name), f.notify...)
	}
	f.log.LogAuthor(m, "rule", broken.Name, time.Time{})
	return v
}

// mayWarn returns whether an author was not warned lately. If so, it records a warning.
func (f *Filter) mayWarn(author core.Path) bool {
	now := f.clock()
	last, ok := f.warned.Get(author)
	since := now.Sub(last)
	if ok && since >= 0 && since < warnEvery {
		return false
	}
	f.warned.Put(author, now)
	return true
}

// Forget removes all that is remembered about a user.
func (f *Filter) Forget(user core.Path) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.warned.Delete(user)
}

// Config is a part of the table [plugins.moderation].
type Config struct {
	Notify []core.Path `toml:"tell" example:"telegram/-1001234567890" doc:"Places and users that are notified if a rule's action is tell; empty: the admins."`
	Rules  []Rule      `toml:"rule" doc:"Words and links that are not allowed."`
}

// Rule is about words and links. A message breaks it with one of the words or patterns, or
// with a link that it does not allow.
type Rule struct {
	Name     string      `toml:"name" required:"true" max:"60" example:"adverts" doc:"The rule's name in the log."`
	Paths    []core.Path `toml:"paths" kind:"place" example:"telegram/-1001234567890" doc:"The places where it applies, with all places below them; empty: all groups."`
	Except   []core.Path `toml:"except" kind:"place" example:"telegram/-1001234567890/7" doc:"Places where it does not apply, with all places below them."`
	Private  bool        `toml:"private" default:"false" doc:"Whether it also applies in private chats."`
	Words    []string    `toml:"words" example:"casino, free money" doc:"Words or phrases in any script. They match whole words, regardless of case."`
	Patterns []string    `toml:"patterns" example:"\\bw[i1]n+ing\\b" doc:"Regular expressions (RE2), regardless of case."`
	Links    string      `toml:"links" default:"any" oneof:"any|none|listed" doc:"Which links are allowed. any: all but those to hosts in deny; none: none; listed: only those to hosts in allow."`
	Allow    []string    `toml:"allow" example:"example.org" doc:"Hosts, with their subdomains, that links may point to if links is listed."`
	Deny     []string    `toml:"deny" example:"example.com" doc:"Hosts, with their subdomains, that no link may point to."`
	Action   string      `toml:"action" default:"quiet" oneof:"quiet|discard|tell" doc:"What happens to a message that breaks the rule. quiet: it is not answered; discard: it is not stored either; tell: only those in tell are notified. Each is logged."`
	Reply    string      `toml:"reply" max:"500" example:"No adverts here, please." doc:"The reply to the user, at most every ten minutes; empty: none."`
}

// Limits of the rules, which are checked for each message.
const (
	maxRules    = 64
	maxWords    = 5000 // of all rules together
	maxPatterns = 100  // of all rules together
	maxPattern  = 500  // bytes of one
	maxWord     = 200  // bytes of one
	maxHosts    = 5000 // of one rule
)

func (c *Config) Check(fault func(text string, at ...any)) {
	words, patterns := 0, 0
	for i := range c.Rules {
		words, patterns = words+len(c.Rules[i].Words), patterns+len(c.Rules[i].Patterns)
	}
	switch {
	case len(c.Rules) > maxRules:
		fault(fmt.Sprintf("there are %d rules; at most %d are taken", len(c.Rules), maxRules), "rule")
	case words > maxWords:
		fault(fmt.Sprintf("the rules have %d words; at most %d are taken", words, maxWords), "rule")
	case patterns > maxPatterns:
		fault(fmt.Sprintf("the rules have %d patterns; at most %d are taken", patterns, maxPatterns), "rule")
	}
}

func (r *Rule) Check(fault func(text string, at ...any)) {
	for i, w := range r.Words {
		if err := checkWord(w); err != nil {
			fault(err.Error(), "words", i)
		}
	}
	for i, p := range r.Patterns {
		if _, err := compile(p); err != nil {
			fault(err.Error(), "patterns", i)
		}
	}
	for key, list := range map[string][]string{"allow": r.Allow, "deny": r.Deny} {
		if len(list) > maxHosts {
			fault(fmt.Sprintf("there are %d hosts; at most %d are taken", len(list), maxHosts), key)
		}
		for i, host := range list {
			if _, err := parseHost(host); err != nil {
				fault(err.Error(), key, i)
			}
		}
	}
	if len(r.Words)+len(r.Patterns)+len(r.Deny) == 0 && r.Links != linksNone && r.Links != linksListed {
		fault("the rule matches nothing; give it words, patterns, deny, or links")
	}
}
