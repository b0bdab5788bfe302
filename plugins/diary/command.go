package diary

import (
	"context"
	"fmt"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/command"
)

// Commands implements command.Commander.
func (p *Plugin) Commands() []command.Command {
	return []command.Command{{Spec: command.Spec{
		Name: "diary", Idempotent: true, Brief: "Read what I wrote about a day here",
		Args: []command.Arg{{Name: "day",
			Brief: "YYYY-MM-DD, today or yesterday; leave it out for the latest"}},
	}, Do: p.read}}
}

func (p *Plugin) read(ctx context.Context, c command.Call) (string, error) {
	day, err := p.day(ctx, c.Path, strings.ToLower(c.Args["day"]))
	if err != nil || day == "" {
		return "I have not written anything here yet.", err
	}
	v, err := p.view(ctx, c.Path, day)
	if err != nil {
		return "", err
	}
	if v.Digest == nil && len(v.Entries) == 0 {
		return "I wrote nothing that day.", nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**\n", day)
	d := v.Digest
	if d != nil {
		fmt.Fprintf(&b, "%s\n", d.Text)
	}
	for _, e := range v.Entries {
		fmt.Fprintf(&b, "- %s %s", e.Time.In(p.host.Clock().Location()).Format("15:04"), e.Summary)
		if len(e.Feelings) > 0 {
			fmt.Fprintf(&b, " *(%s)*", strings.Join(e.Feelings, ", "))
		}
		b.WriteByte('\n')
	}
	return strings.TrimSpace(b.String()), nil
}

// day parses a day; "" is the latest with an entry. It returns "" if there is none.
func (p *Plugin) day(ctx context.Context, place core.Path, text string) (string, error) {
	switch text {
	case "today":
		return p.today(), nil
	case "yesterday":
		return p.host.Clock().AddDate(0, 0, -1).Format(time.DateOnly), nil
	case "":
		days, err := p.days(ctx, place)
		if err != nil || len(days) == 0 {
			return "", err
		}
		return days[len(days)-1], nil
	}
	if _, err := time.Parse(time.DateOnly, text); err != nil {
		return "", core.Errorf(core.Invalid, "Write the day as YYYY-MM-DD, today or yesterday.")
	}
	return text, nil
}
