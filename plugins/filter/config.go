package filter

import (
	"fmt"

	"synthbot/core"
)

// Config is a part of the table [plugins.moderation].
type Config struct {
	Notify []core.Path `toml:"tell" example:"telegram/-1001234567890" doc:"Places and users that are notified if a rule's action is tell; empty: the admins."`
	Rules  []Rule      `toml:"rule" doc:"Words and links that are not allowed."`
}

// Rule is about words and links. A message breaks it with one of the words or patterns, or
// with a link that it does not allow.
type Rule struct {
	Name     string      `toml:"name" required:"true" max:"60" example:"adverts" doc:"The rule's name in the log."`
	Paths    []core.Path `toml:"paths" example:"telegram/-1001234567890" doc:"The places where it applies, with all places below them; empty: all groups."`
	Except   []core.Path `toml:"except" example:"telegram/-1001234567890/7" doc:"Places where it does not apply, with all places below them."`
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

// Check implements the configuration's own check.
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

// Check implements the configuration's own check.
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
		fault("the rule hits nothing; give it words, patterns, deny, or links")
	}
}
