package action

import (
	"errors"
	"path"
	"slices"
	"strings"

	"synthbot/core"
)

// Requester says who caused a turn, and where. Several people have the rights that
// all of them have.
type Requester struct {
	Path      core.Path     `json:"path"`
	Private   bool          `json:"private,omitempty"`
	Authors   []core.Author `json:"authors,omitempty"`
	Scopes    []core.Path   `json:"scopes,omitempty"`    // further subtrees that the place belongs to
	Continued int           `json:"continued,omitempty"` // how often in a row the model asked to go on, up to this turn
	// Only, where not empty, are patterns of the only actions of the turn; with
	// Mute it has none that shows anything to people.
	Only  []string    `json:"only,omitempty"`
	Mute  bool        `json:"mute,omitempty"`
	Sees  []core.Path `json:"-"` // the places that the turn sees
	State core.State  `json:"-"` // of the conversation, before the turn
}

// Nobody is the permission of a Rule that closes an action.
const Nobody core.Permission = "nobody"

// Policy is what the configuration says about actions: it goes before what an
// action declares.
type Policy struct {
	Rules  []Rule
	Only   []Only
	Grants []Grant
}

// Only names the only actions that are to be had in a place and below it, besides
// what an interface does in its own places. Of several, the one with the longest
// path counts.
type Only struct {
	Path    core.Path
	Actions []string
}

// Rule sets who may cause the actions whose names match one of the patterns
// ("web_*"), in a place and below it. Of several that match, the one with the
// longest path counts, and of equals the last.
type Rule struct {
	Path       core.Path
	Actions    []string
	Permission core.Permission
}

// Grant lets turns of one subtree write to another one. What is said in a
// private place goes nowhere in spite of any grant.
type Grant struct{ From, To core.Path }

// With returns the same catalogue under another policy.
func (s *Snapshot) With(p Policy) *Snapshot {
	c := *s
	c.policy = p
	return &c
}

// permission is who may cause the action in this place.
func (s *Snapshot) permission(d *Definition, w Requester) core.Permission {
	allowed, nearest := d.Allows(), core.Path{}
	for i := range s.policy.Rules {
		r := &s.policy.Rules[i]
		if r.covers(w) && r.matches(d) && w.Path.Nearer(r.Path, nearest) {
			allowed, nearest = r.Permission, r.Path
		}
	}
	return allowed
}

func (r *Rule) covers(w Requester) bool { return w.within(r.Path) }

// within reports whether the turn takes place there.
func (w Requester) within(root core.Path) bool {
	return w.Path.Within(root) || slices.ContainsFunc(w.Scopes, func(p core.Path) bool { return p.Within(root) })
}

// lists reports whether the action is among those that are to be had.
func (p *Policy) lists(d *Definition, w Requester) bool {
	open, nearest := true, core.Path{}
	for i := range p.Only {
		o := &p.Only[i]
		if d.home == "" && w.within(o.Path) && w.Path.Nearer(o.Path, nearest) {
			open, nearest = slices.ContainsFunc(o.Actions, d.named), o.Path
		}
	}
	return open
}

func (r *Rule) matches(d *Definition) bool { return slices.ContainsFunc(r.Actions, d.named) }

// named reports whether the action's name matches the pattern.
func (d *Definition) named(pattern string) bool {
	ok, _ := path.Match(pattern, d.Name) // one that is malformed matches nothing
	return ok
}

// rank is the lowest one among those who caused the turn.
func (w Requester) rank() core.Rank {
	if len(w.Authors) == 0 {
		return core.RankMember
	}
	lowest := core.RankBot
	for i := range w.Authors {
		lowest = min(lowest, w.Authors[i].Rank)
	}
	return lowest
}

// person is who caused the turn, where that is one alone.
func (w Requester) person() (core.Author, bool) {
	if len(w.Authors) != 1 {
		return core.Author{}, false
	}
	return w.Authors[0], true
}

// unconfirmable is why what must be confirmed is refused.
const unconfirmable = "must be confirmed, and nobody alone asked for it"

// canConfirm reports whether there is one person to be asked.
func (w Requester) canConfirm() bool {
	who, _ := w.person()
	return who.ID != "" && who.Rank < core.RankBot
}

// refusal says why the action is closed to them here, "" where it is open.
// Without a payload it tells whether there could be one with which it is open.
func (s *Snapshot) refusal(d *Definition, w Requester, payload map[string]any) string {
	if !s.present(d, w) {
		return "does not work in this place"
	}
	if !s.policy.lists(d, w) {
		return "is closed here"
	}
	if w.Mute && d.home != "" || len(w.Only) > 0 && !slices.ContainsFunc(w.Only, d.named) {
		return "is not for a turn of this kind"
	}
	if d.Confirm && !w.canConfirm() {
		return unconfirmable
	}
	need, open := s.needs(d, w, payload)
	switch {
	case !open:
		return "is closed here"
	case w.rank() < need:
		return "is not open to who asked for it"
	}
	return ""
}

// needs returns the rank that a call needs here; open is false where no rank is
// enough.
func (s *Snapshot) needs(d *Definition, w Requester, payload map[string]any) (need core.Rank, open bool) {
	switch s.permission(d, w) {
	case core.PermissionEveryone:
		return core.RankMember, true
	case core.PermissionConcerned:
		if concerned(d, w, payload) {
			return core.RankMember, true
		}
		return core.RankAdmin, true
	case core.PermissionModerators:
		return core.RankModerator, true
	case core.PermissionAdmins:
		return core.RankAdmin, true
	case core.PermissionBot:
		return core.RankBot, true
	}
	return 0, false
}

// present reports whether the action works where the turn takes place.
func (s *Snapshot) present(d *Definition, w Requester) bool {
	if d.home == "" || d.home == w.Path.Interface() {
		return true
	}
	return !w.Private && slices.ContainsFunc(s.policy.Grants, func(g Grant) bool {
		return w.Path.Within(g.From) && (g.To.IsZero() || g.To.Interface() == d.home)
	})
}

// concerned reports whether the payload names the one person who caused the
// turn, by id or by path.
func concerned(d *Definition, w Requester, payload map[string]any) bool {
	who, ok := w.person()
	if payload == nil {
		return ok
	}
	id, _ := payload[d.Concerns].(string)
	p, _ := w.Path.Person(who.ID)
	return id != "" && (id == who.ID || id == p.String())
}

// mayWrite reports whether turns of the place may write to the target.
func (s *Snapshot) mayWrite(w Requester, target core.Path) bool {
	if target.Within(w.Path) {
		return true
	}
	return !w.Private && slices.ContainsFunc(s.policy.Grants, func(g Grant) bool {
		return w.Path.Within(g.From) && target.Within(g.To)
	})
}

// path reads an interface path as models and old files write it.
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
		stem, ok := strings.CutSuffix(first, suffix)
		if ok && stem == s.kinds[here] {
			return core.MakePath(append([]string{here}, p.Elements()[1:]...)...)
		}
		if _, known := s.kinds[stem]; known {
			return core.MakePath(append([]string{stem}, p.Elements()[1:]...)...)
		}
	}
	return core.Path{}, errors.New("no interface is called " + first)
}
