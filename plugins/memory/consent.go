package memory

import (
	"context"

	"synthbot/core"
	"synthbot/core/command"
)

// consent is what a user said about the reading of their talk. It is kept under their path.
type consent struct {
	On bool `json:"on"`
}

const consentKey = "extract"

// readable reports whether a user's messages may be read: in private if they agreed,
// elsewhere unless they refused.
func readable(ctx context.Context, items core.Items, person core.Path, private bool) (bool, error) {
	c, ok, err := core.GetItem[consent](ctx, items, person, consentKey)
	if err == nil && !ok {
		return !private, nil
	}
	return c.On, err
}

// agree keeps what the person says, if anything, and tells how it is.
func (p *Plugin) agree(ctx context.Context, c command.Call) (string, error) {
	person := c.Person
	if answer, ok := c.Args["answer"]; ok {
		if err := core.PutItem(ctx, p.host.Items, person, consentKey, consent{On: answer == "on"}); err != nil {
			return "", err
		}
	}
	private, err := readable(ctx, p.host.Items, person, true)
	if err != nil {
		return "", err
	}
	public, err := readable(ctx, p.host.Items, person, false)
	switch {
	case err != nil:
		return "", err
	case private:
		return "I note by myself what is worth remembering of your talk, in groups and in private. What you say in" +
			" private stays there. `/extract off` ends it.", nil
	case public:
		return "In groups I note by myself what is worth remembering; in private only what you ask me to. `/extract" +
			" on` lets me do so in private, `/extract off` ends it everywhere.", nil
	}
	return "I note nothing of your talk by myself, anywhere; only what you ask me to. `/extract on` changes that.", nil
}
