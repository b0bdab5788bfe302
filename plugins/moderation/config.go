package moderation

import (
	"fmt"
	"time"

	"synthbot/core"
)

// Config is the table [plugins.moderation].
type Config struct {
	Private Limit `toml:"private" default:"60/1h" doc:"How many messages of one person are answered in private, like 60/1h; off: any number. Admins have no limits."`
	Group   Limit `toml:"group" default:"30/1h" doc:"How many messages of one person are answered in groups, in all of them together."`
	Place   Limit `toml:"place" default:"300/1h" doc:"How many messages of all people together are answered in one place of a group."`
	// CountAll is for what no Gate can know: where talk among others is answered, too.
	CountAll []core.Path `toml:"count_all" example:"discord/81384788765712384/2" doc:"Places of groups, with all below them, where every message counts and not only those that speak to the bot: where activation is always."`

	Repeat int   `toml:"repeat" default:"4" min:"0" max:"1000" doc:"The same text so many times in a row is not answered any more; 0: always."`
	Flood  Limit `toml:"flood" default:"10/10s" doc:"How fast one person may write to the bot; five times as much is not even kept."`
	Wall   int   `toml:"wall" default:"16000" min:"0" max:"1048576" doc:"How many characters one person may write to the bot within ten seconds; 0: any number."`

	MuteFor time.Duration `toml:"mute_for" default:"1h" min:"1m" max:"744h" doc:"How long the bot is quiet where nobody says how long."`
	Keep    time.Duration `toml:"keep" default:"2160h" min:"24h" max:"87600h" doc:"How long the log of what happened, and appeals, are kept."`
	Tell    []core.Path   `toml:"tell" example:"telegram/-1001234567890" doc:"Places and people that are told where a rule says tell; empty: the admins."`
	Rules   []Rule        `toml:"rule" doc:"Words and links that are not welcome."`
}

// Rule is about words and links. It hits a message that holds one of the words or
// patterns, or a link that it does not let pass.
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

// Bounds of the rules: they are looked at for each message.
const (
	maxRules    = 64
	maxWords    = 5000 // of all rules together
	maxPatterns = 100  // likewise
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
