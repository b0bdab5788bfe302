package action

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"synthbot/core"
)

// Snapshot is the catalogue at one moment. It is immutable; a turn keeps the one
// that it began with.
type Snapshot struct {
	definitions []*Definition          // by name
	names       map[string]*Definition // names and similes, normalised
	messages    map[string]*Definition // by the interface's name
	kinds       map[string]string      // the kind of each interface, by name
	resolvers   map[string]Resolver    // by the interface's name
	reviewers   []named
	policy      Policy
}

// Build asks each plugin for its actions and makes a catalogue of them. The
// error joins everything that is wrong with any of them; then there is no
// catalogue.
func Build(plugins ...core.Plugin) (*Snapshot, error) {
	s := &Snapshot{
		names:     make(map[string]*Definition),
		messages:  make(map[string]*Definition),
		kinds:     make(map[string]string),
		resolvers: make(map[string]Resolver),
	}
	var errs []error
	owners := make(map[string]bool)
	for _, p := range plugins {
		if owners[p.Name()] {
			errs = append(errs, fmt.Errorf("plugin %s: the name is taken by another one", p.Name()))
			continue
		}
		owners[p.Name()] = true
		errs = append(errs, s.add(p))
	}
	slices.SortFunc(s.definitions, func(a, b *Definition) int { return strings.Compare(a.Name, b.Name) })
	errs = append(errs, s.lintDependencies())
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return s, nil
}

// add takes a plugin's actions and abilities.
func (s *Snapshot) add(p core.Plugin) error {
	actions, err := ask(p)
	if err != nil {
		return err
	}
	home := ""
	if _, ok := p.(core.Interface); ok {
		home = p.Name()
		s.kinds[home] = kind(p)
	}
	if r, ok := p.(Resolver); ok {
		s.resolvers[p.Name()] = r
	}
	if r, ok := p.(Reviewer); ok {
		s.reviewers = append(s.reviewers, named{p.Name(), r})
	}
	var errs []error
	for _, a := range actions {
		d, err := define(p.Name(), a)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		d.home = home
		errs = append(errs, s.register(d))
	}
	return errors.Join(errs...)
}

// ask gets a plugin's actions; a panic in it is an error.
func ask(p core.Plugin) (actions []core.Action, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("plugin %s: panic: %v", p.Name(), r)
		}
	}()
	return p.Actions(), nil
}

// kind is what an interface is, as against what it is called here.
func kind(p core.Plugin) string {
	if t, ok := p.(interface{ Type() string }); ok {
		return t.Type()
	}
	return p.Name()
}

// register gives the definition its names.
func (s *Snapshot) register(d *Definition) error {
	var errs []error
	for _, n := range append([]string{d.Name}, d.Similes...) {
		other := s.names[normal(n)]
		if other != nil && other != d {
			errs = append(errs, fmt.Errorf("action %s of %s: the name %q is taken by %s of %s", d.Name, d.Owner, n, other.Name, other.Owner))
			continue
		}
		s.names[normal(n)] = d
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

// lintDependencies refuses dependencies that are unknown or go in circles.
func (s *Snapshot) lintDependencies() error {
	var errs []error
	seen := make(map[*Definition]bool)
	for _, d := range s.definitions {
		for i, name := range d.DependsOn {
			if other, ok := s.Resolve(name); ok {
				d.DependsOn[i] = other.Name
			} else {
				errs = append(errs, fmt.Errorf("action %s of %s: depends on %s, which nobody offers", d.Name, d.Owner, name))
			}
		}
		if circle := s.circle(d, nil, seen); circle != "" {
			errs = append(errs, fmt.Errorf("actions depend on each other in a circle: %s", circle))
		}
	}
	return errors.Join(errs...)
}

// circle names the circle that dependencies from here lead into; "": none.
func (s *Snapshot) circle(d *Definition, way []*Definition, seen map[*Definition]bool) string {
	if i := slices.Index(way, d); i >= 0 {
		var names []string
		for _, w := range append(way[i:], d) {
			names = append(names, w.Name)
		}
		return strings.Join(names, " → ")
	}
	if seen[d] {
		return ""
	}
	seen[d] = true
	for _, name := range d.DependsOn {
		if other, ok := s.Resolve(name); ok {
			if found := s.circle(other, append(way, d), seen); found != "" {
				return found
			}
		}
	}
	return ""
}

// All returns every action, sorted by name.
func (s *Snapshot) All() []*Definition { return slices.Clone(s.definitions) }

// Resolve finds an action by its name or a simile, however it is written.
func (s *Snapshot) Resolve(name string) (*Definition, bool) {
	var b [80]byte
	d, ok := s.names[string(appendNormal(b[:0], name))]
	return d, ok
}

// Message returns the message action that the interface owns.
func (s *Snapshot) Message(iface string) (*Definition, bool) {
	d, ok := s.messages[iface]
	return d, ok
}

// Offer returns what is open here, now, to these people: first what is open to
// everyone, then what their rank opens, each sorted by name.
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

// suggest returns the action on offer that an unknown name most likely means.
func (s *Snapshot) suggest(name string, w Requester) *Definition {
	var open []string
	for n, d := range s.names {
		if s.refusal(d, w, nil) == "" {
			open = append(open, n)
		}
	}
	return s.names[nearest(normal(name), open)]
}

// Concerned returns the actions that faults are about, sorted by name: what a
// correction has to show.
func (s *Snapshot) Concerned(faults []core.Fault) []*Definition {
	concerned := make(map[string]*Definition)
	for _, f := range faults {
		if d, ok := s.Resolve(f.Action); ok {
			concerned[d.Name] = d
		}
	}
	list := make([]*Definition, 0, len(concerned))
	for _, name := range slices.Sorted(maps.Keys(concerned)) {
		list = append(list, concerned[name])
	}
	return list
}

// Catalogue holds the current Snapshot. Its zero value is empty. Safe for
// concurrent use.
type Catalogue struct{ current atomic.Pointer[Snapshot] }

// Load returns the current snapshot, never nil.
func (c *Catalogue) Load() *Snapshot {
	if s := c.current.Load(); s != nil {
		return s
	}
	return &Snapshot{}
}

// Swap puts a new snapshot into force; turns that run keep theirs.
func (c *Catalogue) Swap(s *Snapshot) { c.current.Store(s) }
