package page

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"synthbot/core"
)

type overviewPage struct{ *Page }

type overview struct {
	State
	OverBudget bool // a limit is reached
}

func (p overviewPage) overview(ctx context.Context) (overview, error) {
	s, err := p.Bot.State(ctx)
	used := &s.Spent
	over := used.TokensLimit > 0 && used.Tokens >= used.TokensLimit || used.CostLimit > 0 && used.Cost >= used.CostLimit
	return overview{s, over}, err
}

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
	place, err := v.someOrAll(v.PostFormValue("place"))
	if err != nil {
		return err
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

func (v *visit) note(text string) {
	v.session.locked(func() { v.session.note = strings.ReplaceAll(text, "`", "") })
}

func (v *visit) back(to string) error {
	u, err := url.Parse(to)
	if err != nil {
		return v.to("/")
	}
	local := url.URL{Path: path.Clean("/" + u.Path), RawQuery: u.RawQuery}
	return v.to(local.String())
}
