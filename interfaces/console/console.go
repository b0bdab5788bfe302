package console

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"synthbot/core"
	"synthbot/core/watch"
)

// Options says who talks to whom, and through what. In and Out are required.
type Options struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer // notices that are no part of the conversation; nil: dropped

	Name        string    // the interface's name; empty: "console"
	Session     string    // the place's last element; empty: "main"
	User        string    // who talks; empty: "user"
	Rank        core.Rank // of the user
	Locale      string    // of the user, BCP 47
	PersonaName string    // stands before replies on a terminal; empty: "bot"

	// Terminal says that In and Out are a terminal.
	Terminal bool
	// NoColor leaves colours and styles out, as does the environment's NO_COLOR.
	NoColor bool
	// Greeting is shown, as Markdown, when a conversation opens on a terminal.
	Greeting string
	// History gives what the user said before, oldest first, for the arrow
	// keys. Optional; called once, by Listen.
	History func(context.Context) []string
	// Seated is told when messages can be sent to the place, before anything is
	// said there. Optional; called by a Hall.
	Seated func(place core.Path)

	Now func() time.Time // nil: time.Now
}

// Console is an interface with one place. Safe for concurrent use; Listen is
// called once.
type Console struct {
	opt    Options
	place  core.Path
	err    error // the place's
	epoch  string
	number atomic.Uint64

	mu      sync.Mutex
	broken  error                    // of the output; nothing more can be said
	waiting map[string]chan struct{} // by message id; closed when its turn is over
	screen  *screen                  // the terminal, while Listen has it
}

var (
	_ core.Interface       = (*Console)(nil)
	_ core.TypingIndicator = (*Console)(nil)
	_ core.Reachable       = (*Console)(nil)
	_ watch.Observer       = (*Console)(nil)
)

// New makes a console; a name or session that cannot be part of a path is
// Listen's error.
func New(o Options) *Console {
	for value, fallback := range map[*string]string{
		&o.Name: "console", &o.Session: "main", &o.User: "user", &o.PersonaName: "bot",
	} {
		if *value = trim(clean(*value, false), core.MaxName); *value == "" {
			*value = fallback
		}
	}
	if o.Err == nil {
		o.Err = io.Discard
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.NoColor = o.NoColor || os.Getenv("NO_COLOR") != ""
	c := &Console{opt: o, waiting: map[string]chan struct{}{}}
	c.place, c.err = core.MakePath(o.Name, o.Session)
	// Ids must differ from those of every earlier run: the clock may have been
	// set back since, so that it alone is not enough.
	c.epoch = strconv.FormatInt(o.Now().UnixMilli(), 36) + rand.Text()[:8]
	return c
}

// Name is the interface's name.
func (c *Console) Name() string { return c.opt.Name }

// Place is where the conversation takes place.
func (c *Console) Place() core.Path { return c.place }

// Reaches implements core.Reachable: other sessions are not held here.
func (c *Console) Reaches(place core.Path) bool { return place == c.place }

// Listen takes lines in until the input ends, ctx ends, or the user leaves; all
// three are no error.
func (c *Console) Listen(ctx context.Context, in core.Inbox) error {
	if c.err != nil {
		return fmt.Errorf("%s: session: %w", c.opt.Name, c.err)
	}
	if c.opt.Terminal {
		return c.converse(ctx, in)
	}
	return c.script(ctx, in)
}

// receive hands one message in.
func (c *Console) receive(ctx context.Context, in core.Inbox, id, text string) error {
	e := core.Event{Kind: core.KindMessage, Message: core.Message{
		Path: c.place, ID: id, Text: text, Time: c.opt.Now(), Private: true, Addressed: core.AddressedDirect, Locale: c.opt.Locale,
		Author: core.Author{ID: c.opt.User, Name: c.opt.User, Rank: c.opt.Rank},
	}}
	if words := strings.Fields(text); len(words) > 0 && commandName.MatchString(words[0]) {
		e.Kind, e.Command = core.KindCommand, &core.Command{Name: words[0][1:], Args: words[1:]}
	}
	err := in.Receive(ctx, e)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%s: inbox: %w", c.opt.Name, err)
	}
	return nil
}

// commandName is what a line begins with that may be a chat command. One that the
// bot does not know is talk like any other.
var commandName = regexp.MustCompile(`^/[a-z0-9_]{1,32}$`)

// nextID is unique among all messages of this and every other run.
func (c *Console) nextID() string {
	return c.epoch + "-" + strconv.FormatUint(c.number.Add(1), 10)
}

// Observe lets the pipe go on when the turn of its last line is over, with what the
// bot adds by itself.
func (c *Console) Observe(end watch.TurnEnd) {
	if end.Turn.Path != c.place {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range end.Messages {
		if done, ok := c.waiting[id]; ok {
			if delete(c.waiting, id); end.GoesOn != "" {
				c.waiting[end.GoesOn] = done
				continue
			}
			close(done)
		}
	}
	if end.Aside {
		c.notice("no answer: given up after too many tries")
	}
}

// expect returns a channel that is closed when the turn of a message is over.
func (c *Console) expect(id string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	done := make(chan struct{})
	c.waiting[id] = done
	return done
}

// ShowTyping shows on a terminal that the bot is at work, until ctx ends.
func (c *Console) ShowTyping(ctx context.Context, place core.Path) {
	if place != c.place {
		<-ctx.Done()
		return
	}
	c.mu.Lock()
	s := c.screen
	c.mu.Unlock()
	if s == nil {
		<-ctx.Done()
		return
	}
	s.think(ctx)
}

// say shows one message of the bot.
func (c *Console) say(text string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.show(text)
	if err != nil {
		c.broken = fmt.Errorf("%s: output: %w", c.opt.Name, err)
	}
	return err
}

// show puts a message where the user sees it; c.mu is held.
func (c *Console) show(text string) error {
	switch {
	case c.screen != nil:
		return c.screen.print(c.spoken(text, c.screen.width()))
	case c.opt.Terminal:
		return write(c.opt.Out, c.spoken(text, defaultWidth))
	}
	return write(c.opt.Out, clean(text, true))
}

// spoiled returns the error of an output that cannot be written to.
func (c *Console) spoiled() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// notice tells the user what is no part of the conversation; c.mu is held.
func (c *Console) notice(text string) {
	line := c.opt.Name + ": " + text
	if c.screen != nil {
		_ = c.screen.print(line)
		return
	}
	_ = write(c.opt.Err, line)
}

func write(w io.Writer, text string) error {
	_, err := io.WriteString(w, text+"\n")
	return err
}

// owns reports whether a path is where this console can write to.
func (c *Console) owns(p core.Path) bool { return !p.IsZero() && p == c.place }
