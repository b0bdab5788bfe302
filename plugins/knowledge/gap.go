package knowledge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/sorting"
	"synthbot/core/txt"
)

// gap is a question that nothing answered. It lies under the path of the asker.
type gap struct {
	Question string    `json:"question"`
	Place    core.Path `json:"place"`
	Time     time.Time `json:"time"`
}

const (
	gapPrefix   = "gap "
	questionMax = 500 // characters
)

// noteGap keeps a question that nothing answered, and puts it to the people who may know, unless it
// was asked in private.
func (p *Plugin) noteGap(ctx context.Context, c *core.Call, query string) error {
	question := txt.ClipLine(p.asked(ctx, c, query), questionMax)
	owner, err := c.Person()
	if err != nil || owner.IsZero() {
		owner = c.Path // several people asked, or the bot itself
	}
	sum := sha256.Sum256([]byte(strings.ToLower(question)))
	isNew := false
	err = core.EditItem(ctx, p.host.Items, owner, gapPrefix+hex.EncodeToString(sum[:8]), func(g *gap) (bool, error) {
		isNew = g.Question == ""
		*g = gap{question, c.Path, p.host.Clock()}
		return true, nil
	})
	if err != nil || !isNew || !p.escalates(c) {
		return err
	}
	text := fmt.Sprintf("❓ No document answers this question from `%s`:\n%s", c.Path, txt.Literal(question))
	if err := p.host.Messenger.Tell(ctx, p.config.Escalate, text); err != nil {
		p.host.Log.Warn("a question could not be passed on", "path", p.config.Escalate, "err", err)
	}
	return nil
}

// escalates reports whether a question is put to others: what is said in private stays there.
func (p *Plugin) escalates(c *core.Call) bool { return !c.Private && !p.config.Escalate.IsZero() }

// asked is what was asked, in the asker's own words if they are known.
func (p *Plugin) asked(ctx context.Context, c *core.Call, query string) (text string) {
	err := p.host.Reader.View(ctx, func(v core.View) error {
		for _, id := range c.Answers {
			e, ok, err := v.Entry(c.Path, id)
			if err != nil {
				return err
			}
			if ok && e.Message.Text != "" {
				text += e.Message.Text + " "
			}
		}
		return nil
	})
	if err != nil || strings.TrimSpace(text) == "" {
		return query
	}
	return text
}

// Gaps prints the questions that nothing answered, the newest first.
func (p *Plugin) Gaps(ctx context.Context, out io.Writer) error {
	items, err := p.host.Items.List(ctx, core.Path{})
	if err != nil {
		return fmt.Errorf("gaps: %w", err)
	}
	var gaps []gap
	for i := range items {
		var g gap
		if strings.HasPrefix(items[i].Key, gapPrefix) && items[i].Decode(&g) == nil {
			gaps = append(gaps, g)
		}
	}
	sorting.SortStable(gaps, func(a, b gap) int { return b.Time.Compare(a.Time) })
	for _, g := range gaps {
		fmt.Fprintf(out, "%s  %s  %s\n", g.Time.Format(time.DateOnly), g.Place, txt.Line(g.Question))
	}
	if len(gaps) == 0 {
		fmt.Fprintln(out, "no question is open")
	}
	return nil
}
