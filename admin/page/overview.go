package page

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"synthbot/core"
)

// named is a place or a user as they are shown: by name, with the path behind it.
type named struct{ Path, Name string }

// names returns a function that names places and users.
func (p *Page) names(ctx context.Context, paths ...core.Path) func(core.Path) named {
	known := p.Bot.Names(ctx, paths...)
	return func(path core.Path) named { return named{path.String(), known[path]} }
}

// part is an engine or an interface, as it is shown.
type part struct {
	Part
	At string
}

type overviewPage struct{ *Page }

// worded is what is shown as the bot words it.
type worded struct{ Workers, Failing []string }

// overview is how the bot is, as it is shown.
type overview struct {
	Version, Began      string
	Engines, Interfaces []part
	Lines               worded
	Guests, Asleep      []named
	Tokens, Cost        string
	TokensOf, CostOf    string // the limits; "" for none
	Spent               bool   // a limit is reached
	Errors              int
	Used, Free          string
}

func (p overviewPage) overview(ctx context.Context) (o overview, err error) {
	s, err := p.Bot.State(ctx)
	if err != nil {
		return o, err
	}
	o = overview{
		Version: s.Version, Began: p.date(s.Began), Lines: worded{s.Workers, s.Failing}, Errors: s.Errors,
		Engines: p.parts(s.Engines), Interfaces: p.parts(s.Interfaces),
		Tokens: grouped(s.Spent.Tokens), Cost: fmt.Sprintf("%.2f", s.Spent.Cost),
		Used: size(s.Used), Free: size(s.Free),
	}
	if s.Spent.TokensLimit > 0 {
		o.TokensOf = grouped(s.Spent.TokensLimit)
		o.Spent = s.Spent.Tokens >= s.Spent.TokensLimit
	}
	if s.Spent.CostLimit > 0 {
		o.CostOf = fmt.Sprintf("%.2f", s.Spent.CostLimit)
		o.Spent = o.Spent || s.Spent.Cost >= s.Spent.CostLimit
	}
	for _, g := range s.Guests {
		o.Guests = append(o.Guests, named{g.Person.String(), g.Name})
	}
	name := p.names(ctx, s.Asleep...)
	for _, place := range s.Asleep {
		o.Asleep = append(o.Asleep, name(place))
	}
	return o, nil
}

func (p overviewPage) parts(all []Part) (list []part) {
	for _, one := range all {
		at := ""
		if !one.Since.IsZero() {
			at = p.date(one.Since)
		}
		list = append(list, part{one, at})
	}
	return list
}

// grouped writes a number with its thousands apart.
func grouped(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

// size writes a number of bytes; "" for 0.
func size(bytes uint64) string {
	switch {
	case bytes == 0:
		return ""
	case bytes < 1e9:
		return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(bytes)/1e9)
}

// commands are the chat commands that buttons carry out.
func commands() []string {
	return []string{
		"activation", "engine", "knowledge", "log", "mute", "pair", "persona", "reload", "remind", "set", "sleep",
		"switch", "unmute", "unteach", "wake",
	}
}

// telling are those of them that may show what users wrote in the place.
func telling() []string { return []string{"knowledge", "remind", "unteach"} }

// do carries out a chat command, as an admin would. Its answer, or why it is refused, is shown on the next page.
func (p overviewPage) do(v *visit) error {
	name := v.PostFormValue("command")
	if !slices.Contains(commands(), name) {
		return wrong("No button does that.")
	}
	var place core.Path
	text := v.PostFormValue("place")
	if text != "" {
		var err error
		if place, err = v.place(text); err != nil {
			return err
		}
	}
	if slices.Contains(telling(), name) {
		if err := mustBeOpen(p.Page, v, place); err != nil {
			return err
		}
	}
	args := make(map[string]string)
	for key := range v.PostForm {
		arg, ok := strings.CutPrefix(key, "arg-")
		if ok {
			args[arg] = lines(v.PostFormValue(key))
		}
	}
	answer, err := p.Bot.Do(v.Context(), place, name, args)
	var said *core.Error
	switch {
	case errors.As(err, &said):
		answer = "Not done: " + said.Text
	case err != nil:
		return err
	default:
		p.Log.Info("command by an admin on the page", "command", name, "path", place, "session", v.session.id)
	}
	v.note(answer)
	return v.back(v.PostFormValue("back"))
}

// note keeps a text for the next page of the session.
func (v *visit) note(text string) {
	v.session.locked(func() { v.session.note = strings.ReplaceAll(text, "`", "") })
}

// back redirects the browser to a part of this page.
func (v *visit) back(to string) error {
	u, err := url.Parse(to)
	if err != nil {
		return v.to("/")
	}
	local := url.URL{Path: path.Clean("/" + u.Path), RawQuery: u.RawQuery}
	return v.to(local.String())
}

// stateEvery is how often an open stream looks how the bot is.
const stateEvery = 5 * time.Second
