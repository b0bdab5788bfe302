package page

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/llm"
	"synthbot/core/sorting"
	"synthbot/core/values"
)

// recentEntries is how many of the latest entries of a place are searched for a user's message.
const recentEntries = 20

// privacyFilter keeps private conversations closed in one request, until the admin opens them and gives a reason.
type privacyFilter struct {
	v     *visit
	view  core.View
	known map[core.Path]bool // whether it is private
}

func (p *Page) withPrivacy(v *visit, f func(core.View, *privacyFilter) error) error {
	return p.Reader.View(v.Context(), func(view core.View) error {
		return f(view, &privacyFilter{v, view, make(map[core.Path]bool)})
	})
}

// isClosed reports whether the conversation at the path must not be shown.
func (e *privacyFilter) isClosed(path core.Path) bool {
	return e.isPrivate(path) && !e.v.session.opens(path, e.v.now)
}

// isPrivate reports whether the conversation at the path is private: it is unless it is known to be public.
func (e *privacyFilter) isPrivate(path core.Path) bool {
	if path.IsZero() {
		return false // applies to all places
	}
	known, ok := e.known[path]
	if !ok {
		known = e.lookUpPrivate(path)
		e.known[path] = known
	}
	return known
}

// mustBeOpen returns a userError if the conversation at the path is closed.
func (p *Page) mustBeOpen(v *visit, path core.Path) error {
	return p.withPrivacy(v, func(_ core.View, e *privacyFilter) error {
		if e.isClosed(path) {
			return userError{http.StatusForbidden, "This was said in private. Open the conversation first."}
		}
		return nil
	})
}

func (e *privacyFilter) lookUpPrivate(path core.Path) bool {
	if path.IsPerson() {
		return true
	}
	heads, err := e.view.Places(path)
	if err != nil || len(heads) == 0 {
		return true
	}
	public := false
	for _, h := range heads {
		if h.Private {
			return true
		}
		last, err := e.view.Last(h.Path, recentEntries)
		byUser := func(entry core.Entry) bool { return !entry.Self }
		public = public || err == nil && slices.ContainsFunc(last, byUser)
	}
	return !public
}

// omitted replaces a text that may quote a model's private thought.
const omitted = "(left out)"

// withoutThoughts returns indented JSON without the model's private thoughts, or omitted for invalid JSON.
func withoutThoughts(raw []byte) string {
	shown, err := llm.ThoughtlessJSON(raw, "  ", hideThought)
	if err != nil {
		return omitted
	}
	return string(shown)
}

// hideThought returns a text, or omitted if the text mentions a private thought, because it may quote it.
func hideThought(s string) string {
	if strings.Contains(strings.ToLower(s), llm.ThoughtKey) {
		return omitted
	}
	return s
}

// opening is the stored record of an opened private conversation.
type opening struct {
	Reason  string `json:"reason"`
	Session string `json:"session"`
}

const maxReason = 500 // characters, as in the form

// open opens a private place for openTime. The log and the page Sessions show that.
func (p *Page) open(v *visit, place core.Path) error {
	reason := strings.TrimSpace(v.PostFormValue("reason"))
	if len(reason) < 3 || utf8.RuneCountInString(reason) > maxReason {
		return badRequest("Say in a few words why you must read this private conversation.")
	}
	key := "opened " + v.now.UTC().Format("2006-01-02T15:04:05.000000000Z")
	if err := values.Put(v.Context(), p.Items, place, key, opening{reason, v.session.id}); err != nil {
		return err // never opened without a record
	}
	p.Log.Warn("private conversation opened by an admin", "path", place, "reason", reason, "session", v.session.id)
	v.session.locked(func() { v.session.opened[place] = v.now.Add(openTime) })
	if v.PostFormValue("seq") != "" { // it was opened from a turn
		return v.redirect("/turn", "place", place.String(), "seq", v.PostFormValue("seq"))
	}
	return v.redirect("/talk/place", "place", place.String())
}

func (p *Page) close(v *visit, place core.Path) error {
	v.session.locked(func() { delete(v.session.opened, place) })
	return v.redirect("/talk")
}

type opened struct {
	Place core.Path
	Time  string
	opening
}

func (p *Page) openings(ctx context.Context) ([]opened, error) {
	items, err := p.Items.List(ctx, core.Path{})
	if err != nil {
		return nil, err
	}
	var list []opened
	for _, i := range items {
		at, ok := strings.CutPrefix(i.Key, "opened ")
		var o opening
		if ok && json.Unmarshal(i.Value, &o) == nil {
			list = append(list, opened{i.Path, at[:min(len(at), 19)], o})
		}
	}
	sorting.SortStable(list, func(a, b opened) int { return strings.Compare(b.Time, a.Time) })
	return list, nil
}
