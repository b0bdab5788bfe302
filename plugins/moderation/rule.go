package moderation

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"synthbot/core"
)

// Links of a Rule.
const (
	linksNone   = "none"
	linksListed = "listed"
)

// Actions of a Rule.
const (
	ruleQuiet   = "quiet"
	ruleDiscard = "discard"
	ruleTell    = "tell"
)

// maxScan is how many bytes of a message patterns look at.
const maxScan = 16 << 10

// compile reads a pattern of a rule.
func compile(pattern string) (*regexp.Regexp, error) {
	if pattern == "" || len(pattern) > maxPattern {
		return nil, fmt.Errorf("has %d bytes; a pattern has 1 to %d", len(pattern), maxPattern)
	}
	re, err := regexp.Compile("(?i)" + pattern)
	if err != nil {
		return nil, fmt.Errorf("%q is no regular expression: %w", pattern, err)
	}
	return re, nil
}

// policy is all rules, ready for use. It does not change, and is safe for
// concurrent use.
type policy struct {
	rules    []rule
	words    dictionary
	patterns uint64 // the rules that have any; each rule is a bit
	links    uint64
	scratch  sync.Pool
}

// rule is a Rule, ready for use.
type rule struct {
	*Rule
	patterns    []*regexp.Regexp
	allow, deny hosts
}

// newPolicy makes a policy. Its error names what is wrong with the rules.
func newPolicy(c *Config) (*policy, error) {
	var faults []error
	fault := func(text string, at ...any) { faults = append(faults, fmt.Errorf("rule: %v: %s", at, text)) }
	c.Check(fault)
	for i := range c.Rules {
		c.Rules[i].Check(fault)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	p := &policy{scratch: sync.Pool{New: func() any { return new(words) }}}
	for i := range c.Rules {
		if err := p.add(&c.Rules[i]); err != nil {
			return nil, fmt.Errorf("rule %q: %w", c.Rules[i].Name, err)
		}
	}
	return p, nil
}

func (p *policy) add(from *Rule) (err error) {
	r := rule{Rule: from}
	bit := uint64(1) << len(p.rules)
	for _, w := range from.Words {
		p.words.add(bit, w)
	}
	for _, text := range from.Patterns {
		re, err := compile(text)
		if err != nil {
			return err
		}
		r.patterns = append(r.patterns, re)
		p.patterns |= bit
	}
	if r.allow, err = newHosts(from.Allow); err != nil {
		return err
	}
	if r.deny, err = newHosts(from.Deny); err != nil {
		return err
	}
	if len(r.deny) > 0 || from.Links == linksNone || from.Links == linksListed {
		p.links |= bit
	}
	p.rules = append(p.rules, r)
	return nil
}

// judge returns the rule that a message breaks; nil for none. Of several it is
// the strictest, and of equals the first.
func (p *policy) judge(m *core.Message) *rule {
	text := m.AllText() // what somebody passes on counts like what they write
	if len(p.rules) == 0 || text == "" {
		return nil
	}
	var here uint64
	for i := range p.rules {
		if p.rules[i].covers(m) {
			here |= 1 << i
		}
	}
	if here == 0 {
		return nil
	}
	return p.strictest(p.broken(text, here))
}

// broken are those of the rules that the text breaks.
func (p *policy) broken(text string, here uint64) (found uint64) {
	if here&p.words.rules != 0 {
		w := p.scratch.Get().(*words)
		w.cut(text)
		found = p.words.find(w, here)
		if cap(w.text) <= maxScan {
			p.scratch.Put(w)
		}
	}
	if left := here & p.links &^ found; left != 0 {
		found |= p.linkBroken(text, left)
	}
	for i := range p.rules {
		if here&p.patterns&^found&(1<<i) != 0 && p.rules[i].matches(text) {
			found |= 1 << i
		}
	}
	return found
}

func (r *rule) matches(text string) bool {
	text = text[:min(len(text), maxScan)]
	return slices.ContainsFunc(r.patterns, func(re *regexp.Regexp) bool { return re.MatchString(text) })
}

// linkBroken are those of the rules that a link of the text breaks.
func (p *policy) linkBroken(text string, wanted uint64) (found uint64) {
	if !strings.ContainsFunc(text, isDot) && !strings.Contains(text, "://") {
		return 0
	}
	each := func(holds func(r *rule) bool) (some uint64) {
		for i := range p.rules {
			if wanted&(1<<i) != 0 && holds(&p.rules[i]) {
				some |= 1 << i
			}
		}
		return some
	}
	known := func(host string) bool {
		return each(func(r *rule) bool { return r.allow.hold(host) || r.deny.hold(host) }) != 0
	}
	hostsIn(text, known, func(host string) bool {
		found |= each(func(r *rule) bool { return r.refuses(host) })
		return found != wanted
	})
	return found
}

// refuses reports whether the rule lets no link to the host pass.
func (r *rule) refuses(host string) bool {
	switch {
	case r.deny.hold(host):
		return true
	case r.Links == linksListed:
		return !r.allow.hold(host)
	}
	return r.Links == linksNone
}

// strictest chooses among rules.
func (p *policy) strictest(found uint64) (worst *rule) {
	for i := range p.rules {
		if r := &p.rules[i]; found&(1<<i) != 0 && (worst == nil || r.weight() > worst.weight()) {
			worst = r
		}
	}
	return worst
}

func (r *rule) weight() int {
	return slices.Index([]string{ruleTell, "", ruleQuiet, ruleDiscard}, r.Action)
}

// covers reports whether the rule holds where the message was written.
func (r *rule) covers(m *core.Message) bool {
	if m.Private && !r.Private {
		return false
	}
	return (len(r.Paths) == 0 || lies(m, r.Paths)) && !lies(m, r.Except)
}

// lies reports whether the message belongs to one of the places.
func lies(m *core.Message, places []core.Path) bool {
	for _, p := range places {
		if m.Path.Within(p) || slices.ContainsFunc(m.Scopes, func(s core.Path) bool { return s.Within(p) }) {
			return true
		}
	}
	return false
}
