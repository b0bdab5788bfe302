package filter

import (
	"fmt"

	"synthbot/core"
)

// Config is a part of the table [plugins.moderation].
type Config struct {
	Notify []core.Path `toml:"tell" example:"telegram/-1001234567890" doc:"Places and people that are notified if a rule's action is tell; empty: the admins."`
	Rules  []Rule      `toml:"rule" doc:"Words and links that are not welcome."`
}

// Rule is about words and links. A message breaks it with one of the words or patterns, or
// with a link that it does not allow.
type Rule struct {
	Name     string      `toml:"name" required:"true" max:"60" example:"adverts" doc:"What it is called in the log."`
	Paths    []core.Path `toml:"paths" example:"telegram/-1001234567890" doc:"Where it holds, with all below; empty: in all groups."`
	Except   []core.Path `toml:"except" example:"telegram/-1001234567890/7" doc:"Where it does not hold all the same."`
	Private  bool        `toml:"private" default:"false" doc:"Whether it holds in private chats, too."`
	Words    []string    `toml:"words" example:"casino, free money" doc:"Words, or several in a row, of any script; they are found as whole words, whatever their case."`
	Patterns []string    `toml:"patterns" example:"\\bw[i1]n+ing\\b" doc:"Regular expressions (RE2), whatever the case."`
	Links    string      `toml:"links" default:"any" oneof:"any|none|listed" doc:"Which links are welcome: any but those to deny, none, or those to allow alone."`
	Allow    []string    `toml:"allow" example:"example.org" doc:"Hosts, with all below them, that links may lead to where links is listed."`
	Deny     []string    `toml:"deny" example:"example.com" doc:"Hosts, with all below them, that no link may lead to."`
	Action   string      `toml:"action" default:"quiet" oneof:"quiet|discard|tell" doc:"quiet: it is not answered; discard: nor kept; tell: moderators are told, and nothing else happens. The first two are logged, too."`
	Reply    string      `toml:"reply" max:"500" example:"No adverts here, please." doc:"What the person is told, at most every ten minutes; empty: nothing."`
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
