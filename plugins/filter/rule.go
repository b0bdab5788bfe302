package filter

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"synthbot/core"
	"synthbot/core/gate"
)

const (
	linksNone   = "none"
	linksListed = "listed"
)

const (
	ruleQuiet   = "quiet"
	ruleDiscard = "discard"
	ruleTell    = "tell"
)

const maxScan = 16 << 10 // how many bytes of a message are matched with patterns

func compile(pattern string) (*regexp.Regexp, error) {
	if pattern == "" || len(pattern) > maxPattern {
		return nil, fmt.Errorf("has %d bytes; a pattern has 1 to %d", len(pattern), maxPattern)
	}
	re, err := regexp.Compile("(?i)" + pattern)
	if err != nil {
		return nil, fmt.Errorf("%q is not a regular expression: %w", pattern, err)
	}
	return re, nil
}

// ruleSet contains all compiled rules. It is immutable and safe for concurrent use.
type ruleSet struct {
	rules    []rule
	words    dictionary
	patterns uint64 // the rules that have patterns; each rule is a bit
	links    uint64 // the rules about links
	scratch  sync.Pool
}

type rule struct {
	*Rule
	patterns    []*regexp.Regexp
	allow, deny hosts
}

// newRuleSet returns a ruleSet. Its error names what is wrong with the rules.
func newRuleSet(c *Config) (*ruleSet, error) {
	var faults []error
	fault := func(text string, at ...any) { faults = append(faults, fmt.Errorf("rule: %v: %s", at, text)) }
	c.Check(fault)
	for i := range c.Rules {
		c.Rules[i].Check(fault)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	s := &ruleSet{scratch: sync.Pool{New: func() any { return new(words) }}}
	for i := range c.Rules {
		s.add(&c.Rules[i])
	}
	return s, nil
}

// add adds a rule that was checked.
func (s *ruleSet) add(from *Rule) {
	r := rule{Rule: from, allow: newHosts(from.Allow), deny: newHosts(from.Deny)}
	bit := uint64(1) << len(s.rules)
	for _, w := range from.Words {
		s.words.add(bit, w)
	}
	for _, text := range from.Patterns {
		re, _ := compile(text)
		r.patterns = append(r.patterns, re)
		s.patterns |= bit
	}
	if len(r.deny) > 0 || from.Links == linksNone || from.Links == linksListed {
		s.links |= bit
	}
	s.rules = append(s.rules, r)
}

// judge returns the rule that a message breaks, or nil. Of several it is the strictest,
// and of equally strict ones the first.
func (s *ruleSet) judge(m *core.Message) (strictest *rule) {
	text := m.AllText() // with what the author forwards
	if len(s.rules) == 0 || text == "" {
		return nil
	}
	var here uint64
	for i := range s.rules {
		if s.rules[i].covers(m) {
			here |= 1 << i
		}
	}
	broken := s.broken(text, here)
	for i := range s.rules {
		r := &s.rules[i]
		if broken&(1<<i) != 0 && (strictest == nil || r.weight() > strictest.weight()) {
			strictest = r
		}
	}
	return strictest
}

func (s *ruleSet) broken(text string, here uint64) (found uint64) {
	if here&s.words.rules != 0 {
		w := s.scratch.Get().(*words)
		w.cut(text)
		found = s.words.find(w, here)
		if cap(w.text) <= maxScan {
			s.scratch.Put(w)
		}
	}
	found |= s.linkBroken(text, here&s.links&^found)
	matches := func(re *regexp.Regexp) bool { return re.MatchString(text[:min(len(text), maxScan)]) }
	for i := range s.rules {
		if here&s.patterns&^found&(1<<i) != 0 && slices.ContainsFunc(s.rules[i].patterns, matches) {
			found |= 1 << i
		}
	}
	return found
}

// linkBroken returns which of the wanted rules a link of the text breaks.
func (s *ruleSet) linkBroken(text string, wanted uint64) (found uint64) {
	if wanted == 0 || !strings.ContainsFunc(text, isDot) && !strings.Contains(text, "://") {
		return 0
	}
	each := func(is func(r *rule) bool) (some uint64) {
		for i := range s.rules {
			if wanted&(1<<i) != 0 && is(&s.rules[i]) {
				some |= 1 << i
			}
		}
		return some
	}
	known := func(host string) bool {
		return each(func(r *rule) bool { return r.allow.contain(host) || r.deny.contain(host) }) != 0
	}
	hostsIn(text, known, func(host string) bool {
		found |= each(func(r *rule) bool { return r.refuses(host) })
		return found != wanted
	})
	return found
}

func (r *rule) refuses(host string) bool {
	switch {
	case r.deny.contain(host):
		return true
	case r.Links == linksListed:
		return !r.allow.contain(host)
	}
	return r.Links == linksNone
}

func (r *rule) weight() int {
	return slices.Index([]string{ruleTell, "", ruleQuiet, ruleDiscard}, r.Action)
}

func (r *rule) covers(m *core.Message) bool {
	if m.Private && !r.Private {
		return false
	}
	return (len(r.Paths) == 0 || slices.ContainsFunc(r.Paths, m.In)) && !slices.ContainsFunc(r.Except, m.In)
}

// admission returns how to treat a message that breaks the rule, or no rule if nil.
func (r *rule) admission() gate.Admission {
	switch {
	case r == nil || r.Action == ruleTell:
		return gate.Admit
	case r.Action == ruleDiscard:
		return gate.Discard
	}
	return gate.Quiet
}
