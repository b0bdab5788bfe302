// Package console lets users talk to the bot through a terminal or a pipe. A place is
// NAME/SESSION ("console/main"), the action is message_NAME.
//
// On a terminal, the console has a line editor with a history, renders Markdown, and shows when the bot is thinking. On
// a pipe, every line is a message. The next line is sent when the turn of the previous one has ended, so replies have
// the order of the lines. A reply on a pipe is the model's text without control characters, and a newline.
package console

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"synthbot/core"
	"synthbot/core/txt"
	"synthbot/core/watch"
)

// Options configure a console. In and Out are required.
type Options struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer // for notices that are not part of the conversation; may be a *Rows; nil: dropped

	Name        string    // of the interface; "": "console"
	Session     string    // the last element of the place; "": "main"
	User        string    // the user's name; "": "user"
	Rank        core.Rank // of the user
	Locale      string    // of the user, BCP 47
	PersonaName string    // shown before replies on a terminal; "": "bot"

	Terminal bool   // whether In and Out are a terminal
	NoColor  bool   // no colours and styles; $NO_COLOR does the same
	Greeting string // Markdown, shown when a conversation begins on a terminal
	Editing         // for the line editor of a terminal
	// Attached is called by Server.Attach, when messages can be sent to the place and before any is received. Optional.
	Attached func(place core.Path)

	Now func() time.Time // nil: time.Now
}

// Rows is a writer for lines that are not part of the conversation, such as log lines. While a console with this Rows
// as Options.Err uses a terminal, they appear above the edited line. Otherwise they go to Out. Each Write must hold
// complete lines. Safe for concurrent use.
type Rows struct {
	Out io.Writer

	mu     sync.Mutex
	screen *screen
}

// Write implements io.Writer.
func (r *Rows) Write(rows []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.screen == nil {
		return r.Out.Write(rows)
	}
	return len(rows), r.screen.print(strings.TrimSuffix(string(rows), "\n"))
}

// setScreen sets the screen, also that of Options.Err; nil: none.
func (c *Console) setScreen(s *screen) {
	rows, ok := c.opt.Err.(*Rows)
	if ok {
		rows.mu.Lock()
		rows.screen = s
		rows.mu.Unlock()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.screen = s
}

// Editing supplies the line editor. Its fields are optional.
type Editing struct {
	// History returns earlier lines of the user, oldest first, for the arrow keys. Listen calls it once.
	History func(context.Context) []string
	// Complete returns the completions of the last word of a line with a chat command, for the Tab key.
	// It should be fast: the terminal does not react to keys meanwhile.
	Complete func(ctx context.Context, line string) []string
}

// Console is an interface with one place. Safe for concurrent use; Listen may be called once.
type Console struct {
	opt   Options
	text  renderer
	place core.Path
	err   error // why Name or Session cannot be part of a path

	mu            sync.Mutex
	writeErr      error                    // of the output
	waiting       map[string]chan struct{} // by message id; closed when its turn is over
	screen        *screen                  // nil unless Listen uses a terminal
	choices       []string                 // suggested replies of the last message
	failedEngines string                   // in the last turn
}

var (
	_ core.Interface       = (*Console)(nil)
	_ core.TypingIndicator = (*Console)(nil)
	_ core.Reachable       = (*Console)(nil)
	_ watch.Observer       = (*Console)(nil)
)

// New makes a console. Listen returns the error of a name or session that cannot be part of a path.
func New(o Options) *Console {
	for value, fallback := range map[*string]string{
		&o.Name: "console", &o.Session: "main", &o.User: "user", &o.PersonaName: "bot",
	} {
		oneLine := strings.ReplaceAll(clean(*value), "\n", " ")
		*value = cmp.Or(clip(oneLine, core.MaxName), fallback)
	}
	if o.Err == nil {
		o.Err = io.Discard
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.NoColor = o.NoColor || os.Getenv("NO_COLOR") != ""
	c := &Console{opt: o, text: renderer{o.NoColor}, waiting: map[string]chan struct{}{}}
	c.place, c.err = core.MakePath(o.Name, o.Session)
	return c
}

// Name implements core.Interface.
func (c *Console) Name() string { return c.opt.Name }

// Reaches implements core.Reachable.
func (c *Console) Reaches(place core.Path) bool { return place == c.place }

// Listen receives lines until the input ends, ctx ends, or the user leaves; none of these is an error.
func (c *Console) Listen(ctx context.Context, in core.Inbox) error {
	if c.err != nil {
		return fmt.Errorf("%s: session: %w", c.opt.Name, c.err)
	}
	if c.opt.Terminal {
		return c.listenTerminal(ctx, in)
	}
	return c.listenPipe(ctx, in)
}

func (c *Console) receive(ctx context.Context, in core.Inbox, id, text string) error {
	o := &c.opt
	text = c.resolveChoice(text)
	e := core.Event{Kind: core.KindMessage, Message: core.Message{
		Path: c.place, ID: id, Text: text, Time: o.Now(), Locale: o.Locale,
		Private: true, Addressed: core.AddressedDirect,
		Author: core.Author{ID: o.User, Name: o.User, Rank: o.Rank},
	}}
	words := strings.Fields(text)
	if len(words) > 0 && commandName().MatchString(words[0]) {
		e.Kind, e.Command = core.KindCommand, &core.Command{Name: words[0][1:], Args: words[1:]}
	}
	if err := in.Receive(ctx, e); err != nil && ctx.Err() == nil {
		return fmt.Errorf("%s: inbox: %w", c.opt.Name, err)
	}
	return nil
}

// listChoices returns a numbered list of suggested replies, and stores them for resolveChoice. On a pipe it returns "".
func (c *Console) listChoices(choices []string) (list string) {
	if !c.opt.Terminal {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.choices = choices
	for i, choice := range choices {
		list += fmt.Sprintf("\n%d. %s", i+1, choice)
	}
	if list != "" {
		list = "\n" + list
	}
	return list
}

// resolveChoice returns the suggested reply with the number in text, or text if there is none.
func (c *Console) resolveChoice(text string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 1 || n > len(c.choices) {
		return text
	}
	return c.choices[n-1]
}

// commandName matches the first word of a line that may be a chat command.
var commandName = txt.Pattern(`^/[a-z0-9_]{1,32}$`)

// Observe implements watch.Observer. It lets a pipe read its next line when the turn of the previous
// line has ended, and all turns that continued it. It also shows failures to the user.
func (c *Console) Observe(end watch.TurnEnd) {
	if end.Turn.Path != c.place {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range end.Messages {
		done, ok := c.waiting[id]
		if !ok {
			continue
		}
		delete(c.waiting, id)
		if end.GoesOn != "" {
			c.waiting[end.GoesOn] = done
		} else {
			close(done)
		}
	}
	if end.Aside {
		c.showNotice("no answer: given up after too many tries")
	}
	c.showFailedEngines(end.Trace)
}

// showFailedEngines tells an admin which engines failed in a turn, unless the same ones failed in the previous turn.
// c.mu is held.
func (c *Console) showFailedEngines(t *watch.Trace) {
	if t == nil || len(t.Asks) == 0 || c.opt.Rank < core.RankAdmin {
		return
	}
	before := c.failedEngines
	c.failedEngines = strings.Join(slices.Compact(slices.Clone(t.Asks[len(t.Asks)-1].Failed)), "; ")
	if c.failedEngines != "" && c.failedEngines != before {
		c.showNotice(txt.Line(c.failedEngines))
	}
}

// ShowTyping implements core.TypingIndicator. A terminal shows that the bot is thinking.
func (c *Console) ShowTyping(ctx context.Context, place core.Path) {
	c.mu.Lock()
	s := c.screen
	c.mu.Unlock()
	if place == c.place && s != nil {
		s.think(ctx)
	}
	<-ctx.Done()
}

func (c *Console) say(text string) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opt.Terminal {
		text = c.render(text, c.width())
	} else {
		text = clean(text)
	}
	err = c.print(c.opt.Out, text)
	if err != nil {
		c.writeErr = c.outputError(err)
	}
	return err
}

// showNotice shows a text that is not part of the conversation. c.mu is held.
func (c *Console) showNotice(text string) { _ = c.print(c.opt.Err, c.opt.Name+": "+text) }

// print writes a text above the edited line or, if there is none, to w. c.mu is held.
func (c *Console) print(w io.Writer, text string) error {
	if c.screen != nil {
		return c.screen.print(text)
	}
	_, err := io.WriteString(w, text+"\n")
	return err
}

// clean removes control characters and trailing white space.
func clean(s string) string { return strings.TrimRightFunc(txt.Lines(s), unicode.IsSpace) }

// clip returns at most max bytes of a text, without a partial character and surrounding white space.
func clip(s string, max int) string {
	if len(s) > max {
		s = strings.ToValidUTF8(s[:max], "")
	}
	return strings.TrimSpace(s)
}

const schema = `{
	"type": "object",
	"title": "Send a message",
	"properties": {
		"text": {"type": "string", "minLength": 1, "title": "text", "description": "What to say, as Markdown."},
		"interface_path": {"type": "string", "title": "place", "description": "Where to say it; default: here."},
		"suggestions": {"type": "array", "items": {"type": "string"}, "deprecated": true},
		"priority": {"type": "string", "enum": ["low", "normal", "high"], "default": "normal", "title": "priority"}
	},
	"required": ["text"],
	"additionalProperties": false
}`

// Actions implements core.Interface. The only action sends a message.
func (c *Console) Actions() []core.Action {
	return c.actions(func(core.Path) (*Console, error) { return c, nil })
}

// actions returns the message action. find returns the console at the turn's place.
func (c *Console) actions(find func(place core.Path) (*Console, error)) []core.Action {
	const answer = `{"text":"Sure. Which one do you mean?"}`
	elsewhere := `{"text":"Here is the list:\n- one\n- two","interface_path":` + string(core.JSON(c.place)) + `}`
	return []core.Action{{
		Name:   core.MessagePrefix + c.opt.Name,
		Brief:  "Send a message to the person at the console",
		Schema: json.RawMessage(schema),
		Examples: core.Examples{
			Description: "Sends a message to the person at this terminal.",
			Instructions: core.Instructions{
				WhenToUse: "To answer, ask or tell: anything that the person should read.",
				CommonPitfalls: []string{
					"Put the words into text, and into no other key.", "A path of another interface is refused.",
				},
				Notes: []string{
					"Markdown is shown: emphasis, lists, quotes, code.", "Several messages are several actions.",
				},
			},
			Examples: []core.Example{
				{Scenario: "Answering the message at hand", Payload: json.RawMessage(answer)},
				{Scenario: "The same, with the place named", Payload: json.RawMessage(elsewhere)},
			},
		},
		Essential: true,
		Effects:   core.EffectWrites, Permission: core.PermissionEveryone,
		Idempotent: true, // the journal says whether the message was sent
		Check: func(_ context.Context, call core.Call) error {
			to, err := find(call.Path)
			if err != nil {
				return nil // Do returns it
			}
			_, _, err = to.parsePayload(call)
			return err
		},
		Do: func(ctx context.Context, call core.Call) (core.Result, error) {
			to, err := find(call.Path)
			if err == nil {
				err = to.send(ctx, call)
			}
			return core.Result{}, err
		},
	}}
}

// parsePayload returns the message that a call sends, and its suggested replies.
func (c *Console) parsePayload(call core.Call) (sent core.Sent, choices []string, err error) {
	var p struct {
		Text        string    `json:"text"`
		Path        core.Path `json:"interface_path"`
		Suggestions []string  `json:"suggestions"`
	}
	if err := json.Unmarshal(call.Payload, &p); err != nil {
		text := "the payload must be an object with text; interface_path, if any, is " + c.place.String()
		return sent, nil, &core.Error{Kind: core.Invalid, Text: text, Err: err}
	}
	to := cmp.Or(p.Path, call.Path)
	if to.IsZero() || to != c.place {
		const text = "%s%s writes to %s only, not to %q: correct or leave out interface_path"
		return sent, nil, core.Errorf(core.Invalid, text, core.MessagePrefix, c.opt.Name, c.place, to)
	}
	text := clean(p.Text)
	if strings.TrimSpace(text) == "" {
		return sent, nil, core.Errorf(core.Invalid, "text is empty: say something, or leave the action out")
	}
	for _, s := range p.Suggestions {
		choices = append(choices, strings.Join(strings.Fields(clean(s)), " "))
	}
	return core.Sent{Path: to, Text: text}, choices, nil
}

func (c *Console) send(ctx context.Context, call core.Call) error {
	sent, choices, err := c.parsePayload(call)
	if err != nil {
		return err
	}
	return call.Deliveries.Send(ctx, 1, sent, func(context.Context, string) (string, error) {
		if err := c.say(sent.Text + c.listChoices(choices)); err != nil {
			return "", &core.Error{Kind: core.Broken, Text: "cannot write to the console", Err: err}
		}
		return rand.Text(), nil
	})
}
