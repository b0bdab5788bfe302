package action

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"

	"synthbot/core"
	"synthbot/core/recent"
	"synthbot/core/sorting"
	"synthbot/core/txt"
)

// Snapshot is one version of the catalogue. It never changes. A turn uses the same one from beginning to end.
type Snapshot struct {
	definitions []*Definition          // by name
	names       map[string]*Definition // names and similes, normalised
	messages    map[string]*Definition // the message actions, by the interface's name
	kinds       map[string]string      // the kind of each interface, by name
	resolvers   map[string]Resolver    // by the interface's name
	policy      Policy
	replies     *recent.Shared[string, json.RawMessage] // cache of ReplySchema
}

// Build makes a catalogue of the actions of the plugins, which [Lint] accepts. The error joins
// everything that is wrong with any of them as far as can be seen without compiling schemas.
func Build(plugins ...core.Plugin) (*Snapshot, error) { return build(false, plugins...) }

func build(linted bool, plugins ...core.Plugin) (*Snapshot, error) {
	s := &Snapshot{
		names:     make(map[string]*Definition),
		messages:  make(map[string]*Definition),
		kinds:     make(map[string]string),
		resolvers: make(map[string]Resolver),
		replies:   recent.NewShared[string, json.RawMessage](maxReplySchemas),
	}
	var errs []error
	var all []*Definition
	owners := make(map[string]bool)
	for _, p := range plugins {
		if owners[p.Name()] {
			errs = append(errs, fmt.Errorf("plugin %s: the name is taken by another one", p.Name()))
			continue
		}
		owners[p.Name()] = true
		own, err := s.add(p)
		if err != nil {
			errs = append(errs, fmt.Errorf("plugin %s: %w", p.Name(), err))
		}
		all = append(all, own...)
	}
	for _, d := range all {
		errs = append(errs, d.complete(linted))
	}
	for _, external := range []bool{false, true} { // external ones last, because their names give way
		for _, d := range all {
			switch {
			case d.External != external || d.input == nil:
				continue
			case external:
				s.makeUnique(d)
			}
			errs = append(errs, s.register(d))
		}
	}
	sorting.Sort(s.definitions, byName)
	errs = append(errs, s.lintDependencies())
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return s, nil
}

// add adds a plugin's abilities, and returns its actions, which are not complete yet.
func (s *Snapshot) add(p core.Plugin) (all []*Definition, err error) {
	defer catch(&err)
	actions, home := p.Actions(), ""
	if _, ok := p.(core.Interface); ok {
		home = p.Name()
		s.kinds[home] = home
		if t, ok := p.(interface{ Type() string }); ok { // which may differ from its name
			s.kinds[home] = t.Type()
		}
	}
	if r, ok := p.(Resolver); ok {
		s.resolvers[p.Name()] = r
	}
	for _, a := range actions {
		all = append(all, &Definition{Action: a, Owner: p.Name(), home: home})
	}
	return all, nil
}

// makeUnique appends the owner's name to an external definition's name if that is taken, and drops similes that are.
func (s *Snapshot) makeUnique(d *Definition) {
	taken := func(name string) bool { return s.names[Normal(name)] != nil }
	d.Similes = slices.DeleteFunc(d.Similes, taken)
	base, mark := d.Name, "_"+d.Owner
	for n := 2; taken(d.Name); n++ {
		d.Name = base[:min(len(base), maxName-len(mark))] + mark
		mark = fmt.Sprintf("_%s_%d", d.Owner, n)
	}
}

func (s *Snapshot) register(d *Definition) error {
	var errs []error
	for _, n := range append([]string{d.Name}, d.Similes...) {
		other := s.names[Normal(n)]
		if other != nil && other != d {
			errs = append(errs, fmt.Errorf("action %s of %s: the name %q is taken by %s of %s",
				d.Name, d.Owner, n, other.Name, other.Owner))
		} else {
			s.names[Normal(n)] = d
		}
	}
	s.definitions = append(s.definitions, d)
	if d.IsMessage() {
		d.home = d.Owner
		s.messages[d.Owner] = d
		if s.kinds[d.Owner] == "" {
			s.kinds[d.Owner] = d.Owner
		}
	}
	return errors.Join(errs...)
}

func (s *Snapshot) lintDependencies() error {
	var errs []error
	seen := make(map[*Definition]bool)
	for _, d := range s.definitions {
		for i, name := range d.DependsOn {
			if other, ok := s.Resolve(name); ok {
				d.DependsOn[i] = other.Name
			} else {
				errs = append(errs, fmt.Errorf("action %s of %s: depends on %s, which nobody offers",
					d.Name, d.Owner, name))
			}
		}
		circle := s.findCircle(d, nil, seen)
		if circle != "" {
			errs = append(errs, fmt.Errorf("actions depend on each other in a circle: %s", circle))
		}
	}
	return errors.Join(errs...)
}

// findCircle returns the names of a circle that dependencies lead into; "" if there is none.
func (s *Snapshot) findCircle(d *Definition, way []string, seen map[*Definition]bool) (found string) {
	i := slices.Index(way, d.Name)
	if i >= 0 {
		return strings.Join(append(way[i:], d.Name), " → ")
	}
	if seen[d] {
		return ""
	}
	seen[d] = true
	for _, name := range d.DependsOn {
		if other, ok := s.Resolve(name); ok && found == "" {
			found = s.findCircle(other, append(way, d.Name), seen)
		}
	}
	return found
}

// All returns every action, sorted by name.
func (s *Snapshot) All() []*Definition { return slices.Clone(s.definitions) }

// Names returns the names of all definitions.
func (s *Snapshot) Names() (names []string) {
	for _, d := range s.definitions {
		names = append(names, d.Name)
	}
	return names
}

// Resolve finds an action by its name or a simile, in any spelling.
func (s *Snapshot) Resolve(name string) (*Definition, bool) {
	d, ok := s.names[Normal(name)]
	return d, ok
}

// Message returns the message action that the interface owns.
func (s *Snapshot) Message(iface string) (*Definition, bool) {
	d, ok := s.messages[iface]
	return d, ok
}

// Offer returns the actions that are available to the requester: first those open to everyone,
// then those that need a rank or a confirmation, each sorted by name.
func (s *Snapshot) Offer(w Requester) []*Definition {
	var everyone, ranked []*Definition
	for _, d := range s.definitions {
		switch {
		case s.refusal(d, w, nil) != "":
		case s.permission(d, w) == core.PermissionEveryone && !d.Confirm:
			everyone = append(everyone, d)
		default:
			ranked = append(ranked, d)
		}
	}
	return append(everyone, ranked...)
}

// suggest returns the available action that an unknown name most likely means; nil if none.
func (s *Snapshot) suggest(name string, w Requester) *Definition {
	var open []string
	for n, d := range s.names {
		if s.refusal(d, w, nil) == "" {
			open = append(open, n)
		}
	}
	return s.names[nearest(Normal(name), open)]
}

// Concerned returns the actions that faults are about, sorted by name.
func (s *Snapshot) Concerned(faults []core.Fault) []*Definition {
	concerned := make(map[string]*Definition)
	for _, f := range faults {
		if d, ok := s.Resolve(f.Action); ok {
			concerned[d.Name] = d
		}
	}
	return sorting.Sorted(maps.Values(concerned), byName)
}

func byName(a, b *Definition) int { return strings.Compare(a.Name, b.Name) }

const maxName = 64 // bytes

// Normal returns the form in which names are compared: lower case, without '_', '-', '.' and spaces.
func Normal(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("_-. ", r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// MarkName makes a name unique among actions with the same Normal name: it appends a short hash of the
// owner's name and of the name that the owner gave the action.
func MarkName(name, owner, given string) string {
	sum := sha256.Sum256([]byte(owner + "\x00" + given))
	end := "_" + hex.EncodeToString(sum[:3])
	return name[:min(len(name), maxName-len(end))] + end
}

// Names of the built-in actions, which control the conversation: see the package comment. No catalogue holds them.
const (
	None     = "NONE"     // there is nothing to do
	Continue = "CONTINUE" // the model wants to go on after this turn
	Ignore   = "IGNORE"   // the exchange is over, until the bot is addressed again
)

var controls = []string{None, Continue, Ignore}

// MaxContinue is how often in a row a model may ask to go on.
const MaxContinue = 3

// Control returns the built-in action that a name means.
func Control(name string) (string, bool) {
	switch Normal(name) {
	case "none", "noaction", "donothing":
		return None, true
	case "continue", "elaborate", "keeptalking":
		return Continue, true
	case "ignore", "stoptalking", "stopchatting":
		return Ignore, true
	}
	return "", false
}

// nearest returns the candidate that a name most likely means, both normalised; "" if none is near, or two equally.
func nearest(name string, candidates []string) string {
	limit := max(1, len(name)/3)
	best, at, tie := "", limit+1, false
	for _, c := range candidates {
		d := limit + 1
		if len(name) <= maxName {
			d = txt.Distance(name, c)
		}
		if len(name) >= 4 && len(c) >= 4 && (strings.HasPrefix(c, name) || strings.HasPrefix(name, c)) {
			d = min(d, 1)
		}
		if d < at {
			best, at, tie = c, d, false
		} else if d == at {
			tie = true
		}
	}
	if tie {
		return ""
	}
	return best
}

// MatchAny reports whether a name matches one of the patterns, in which * stands for any letters.
func MatchAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if pattern == name || !strings.ContainsAny(pattern, `*?[\`) { // most patterns are names
			return pattern == name
		}
		ok, _ := path.Match(pattern, name)
		return ok
	})
}

// CheckPatterns reports invalid patterns; at is their key in the configuration.
func CheckPatterns(patterns []string, fault func(text string, at ...any), at string) {
	for i, pattern := range patterns {
		CheckPattern(pattern, fault, at, i)
	}
}

// CheckPattern reports a fault if a pattern is invalid.
func CheckPattern(pattern string, fault func(text string, at ...any), at ...any) {
	if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
		fault(fmt.Sprintf("%q is not a pattern; write a name, or a part of one with *", pattern), at...)
	}
}
