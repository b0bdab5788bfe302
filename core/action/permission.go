package action

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"synthbot/core"
)

// Requester is who caused a turn, and where. Several people have the permissions that all of them have.
type Requester struct {
	Path      core.Path     `json:"path"`
	Private   bool          `json:"private,omitempty"`
	Authors   []core.Author `json:"authors,omitempty"`
	Scopes    []core.Path   `json:"scopes,omitempty"`    // further subtrees that the place belongs to
	Continued int           `json:"continued,omitempty"` // how often in a row the model asked to go on, up to this turn
	// Only holds patterns of the actions that the turn may use; empty: all. With Mute,
	// it may use none of an interface, so that it shows nothing to people.
	Only  []string    `json:"only,omitempty"`
	Mute  bool        `json:"mute,omitempty"`
	Sees  []core.Path `json:"-"` // the places whose history and memories the turn may read
	State core.State  `json:"-"` // of the conversation, before the turn
}

// Nobody is the Permission of a Rule that makes an action unavailable.
const Nobody core.Permission = "nobody"

// Policy is what the configuration says about actions. It overrides what an action declares.
type Policy struct {
	Rules  []Rule
	Only   []Only
	Grants []Grant
}

// Only limits a place and all below it to these actions and those of the place's interface. Of
// several, the one with the longest path counts.
type Only struct {
	Path    core.Path
	Actions []string
}

// Rule sets who may cause the actions whose names match one of the patterns ("web_*"), in a
// place and below it. Of several, the one with the longest path counts, of equals the last.
type Rule struct {
	Path       core.Path
	Actions    []string
	Permission core.Permission
}

// Grant lets turns of one subtree write to another one. It does not apply in private places.
type Grant struct{ From, To core.Path }

// With returns the same catalogue under another policy.
func (s *Snapshot) With(p Policy) *Snapshot {
	c := *s
	c.policy = p
	return &c
}

func (s *Snapshot) permission(d *Definition, w Requester) core.Permission {
	allowed, nearest := d.Allows(), core.Path{}
	for i := range s.policy.Rules {
		r := &s.policy.Rules[i]
		if w.within(r.Path) && MatchAny(r.Actions, d.Name) && w.Path.Nearer(r.Path, nearest) {
			allowed, nearest = r.Permission, r.Path
		}
	}
	return allowed
}

func (w Requester) within(root core.Path) bool {
	return w.Path.Within(root) || slices.ContainsFunc(w.Scopes, func(p core.Path) bool { return p.Within(root) })
}

// lists reports whether the policy's Only makes an action available in the place.
func (p *Policy) lists(d *Definition, w Requester) bool {
	open, nearest := true, core.Path{}
	for i := range p.Only {
		o := &p.Only[i]
		if w.within(o.Path) && w.Path.Nearer(o.Path, nearest) {
			open, nearest = MatchAny(o.Actions, d.Name), o.Path
		}
	}
	return open
}

// rank returns the lowest rank among those who caused the turn.
func (w Requester) rank() core.Rank {
	if len(w.Authors) == 0 {
		return core.RankMember
	}
	byRank := func(a, b core.Author) int { return cmp.Compare(a.Rank, b.Rank) }
	return slices.MinFunc(w.Authors, byRank).Rank
}

// Author returns the person who caused the turn. ok is false if nobody or several did.
func (w Requester) Author() (a core.Author, ok bool) {
	if len(w.Authors) != 1 {
		return core.Author{}, false
	}
	return w.Authors[0], true
}

// unconfirmable is why a step is refused that nobody can confirm.
const unconfirmable = "must be confirmed, and no single person asked for it"

// canConfirm reports whether one person caused the turn, who can be asked.
func (w Requester) canConfirm() bool {
	who, _ := w.Author()
	return who.ID != "" && who.Rank < core.RankBot
}

// refusal says why the action is not available to the requester; "" if it is. A nil payload stands for any.
func (s *Snapshot) refusal(d *Definition, w Requester, payload map[string]any) string {
	isHome := d.home == "" || d.home == w.Path.Interface()
	leads := func(to core.Path) bool { return to.IsZero() || to.Interface() == d.home }
	switch {
	case !isHome && !s.granted(w, leads):
		return "does not work in this place"
	case d.home == "" && !s.policy.lists(d, w):
		return "is not available here"
	case w.Mute && d.home != "", len(w.Only) > 0 && !MatchAny(w.Only, d.Name):
		return "is not allowed in a turn of this kind"
	case d.Confirm && !w.canConfirm():
		return unconfirmable
	}
	need, open := s.needs(d, w, payload)
	switch {
	case !open:
		return "is not available here"
	case w.rank() < need:
		return "is not open to the user who asked for it"
	}
	return ""
}

// needs returns the rank that a call needs here. open is false if no rank is enough.
func (s *Snapshot) needs(d *Definition, w Requester, payload map[string]any) (need core.Rank, open bool) {
	permission := s.permission(d, w)
	if permission != core.PermissionConcerned {
		return permission.Rank() // a permission without one closes an action
	}
	who, alone := w.Author()
	id, _ := payload[d.Concerns].(string)
	p, _ := w.Path.Person(who.ID)
	isThem := id != "" && (id == who.ID || id == p.String())
	if isThem || payload == nil && alone {
		return core.RankMember, true
	}
	return core.RankAdmin, true
}

// granted reports whether a grant lets turns of the place write to a subtree for which to is true.
func (s *Snapshot) granted(w Requester, to func(core.Path) bool) bool {
	return !w.Private && slices.ContainsFunc(s.policy.Grants, func(g Grant) bool {
		return w.Path.Within(g.From) && to(g.To)
	})
}

func (s *Snapshot) mayWrite(w Requester, target core.Path) bool {
	return target.Within(w.Path) || s.granted(w, target.Within)
}

// path reads an interface path as models and older configurations write it.
func (s *Snapshot) path(text string, w Requester) (core.Path, error) {
	text = strings.Trim(strings.TrimSpace(text), "/")
	p, err := core.ParsePath(text)
	if err != nil {
		if p, err = core.MakePath(strings.Split(text, "/")...); err != nil {
			return core.Path{}, err
		}
	}
	first := p.Interface()
	if _, ok := s.kinds[first]; ok {
		return p, nil
	}
	here := w.Path.Interface()
	for _, suffix := range []string{"_bot", "_interface"} {
		name, ok := strings.CutSuffix(first, suffix)
		if ok && name == s.kinds[here] {
			name = here
		}
		if _, ok := s.kinds[name]; ok {
			return core.MakePath(append([]string{name}, p.Elements()[1:]...)...)
		}
	}
	return core.Path{}, errors.New("no interface is called " + first)
}
