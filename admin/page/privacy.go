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

// lastLooked is how many of the latest entries of a place are searched for a user.
const recentEntries = 20

// privacyFilter decides within one request what is shown: a private conversation is closed until an
// admin opens it with a reason.
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

// closed reports whether the conversation at the path is not shown.
func (e *privacyFilter) isClosed(path core.Path) bool {
	return e.isPrivate(path) && !e.v.session.opens(path, e.v.now)
}

// private reports whether the conversation at the path is private. It counts as private unless
// it is known to be public.
func (e *privacyFilter) isPrivate(path core.Path) bool {
	if path.IsZero() {
		return false // for all places
	}
	known, ok := e.known[path]
	if !ok {
		known = e.lookUpPrivate(path)
		e.known[path] = known
	}
	return known
}

// mustBeOpen returns an error for the admin if the conversation at the path is closed.
func mustBeOpen(p *Page, v *visit, path core.Path) error {
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

// leftOut replaces a text that may quote a thought.
const omitted = "(left out)"

// bare returns indented JSON without thoughts. Invalid JSON is left out.
func withoutThoughts(raw []byte) string {
	shown, err := llm.ThoughtlessJSON(raw, "  ", hideThought)
	if err != nil {
		return omitted
	}
	return string(shown)
}

// quoteless leaves out a text that mentions a thought, because it may quote it.
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

// maxReason is the size limit of a reason in characters, as in the form.
const maxReason = 500

// open opens a private place for a while. The log and the page of sessions show that.
func (p *Page) open(v *visit) error {
	place, err := v.place(v.PostFormValue("place"))
	if err != nil {
		return err
	}
	reason := strings.TrimSpace(v.PostFormValue("reason"))
	if len(reason) < 3 || utf8.RuneCountInString(reason) > maxReason {
		return badRequest("Say in a few words why you must read what was said in private.")
	}
	key := "opened " + v.now.UTC().Format("2006-01-02T15:04:05.000000000Z")
	if err := values.Put(v.Context(), p.Items, place, key, opening{reason, v.session.id}); err != nil {
		return err // without a record, it is not opened
	}
	p.Log.Warn("private conversation opened by an admin", "path", place, "reason", reason, "session", v.session.id)
	v.session.setOpen(place, v.now.Add(openTime))
	seq := v.PostFormValue("seq")
	if seq != "" { // it was opened from a turn
		return v.redirect("/turn", "place", place.String(), "seq", seq)
	}
	return v.redirect("/talk/place", "place", place.String())
}

func (p *Page) close(v *visit) error {
	place, err := v.place(v.PostFormValue("place"))
	if err != nil {
		return err
	}
	v.session.setOpen(place, v.now)
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
