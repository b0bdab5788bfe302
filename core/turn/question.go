package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/txt"
)

// question is what the log keeps with a message that asks for a confirmation:
// which step waits for it.
type question struct {
	turn  uint64
	round uint16
	step  uint16
}

const questionMark = "confirm:"

func (q question) String() string {
	return fmt.Sprintf("%s%d.%d.%d", questionMark, q.turn, q.round, q.step)
}

// parseQuestion reads a question, and the answer behind it if there is one.
func parseQuestion(s string) (q question, answer string, ok bool) {
	rest, ok := strings.CutPrefix(s, questionMark)
	if !ok {
		return q, "", false
	}
	where, answer, _ := strings.Cut(rest, ":")
	_, err := fmt.Sscanf(where, "%d.%d.%d", &q.turn, &q.round, &q.step)
	return q, answer, err == nil
}

// askUser asks about all steps that wait to be confirmed.
func (t *turn) askUser(ctx context.Context, done []action.StepResult) error {
	for _, d := range done {
		if d.Progress != core.ProgressPending || d.Held.Question == "" {
			continue
		}
		q := question{d.Key.Turn.Seq, d.Key.Round, d.Key.Step}
		err := t.sendQuestion(ctx, d.Key, d.Held.Question, q)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, core.ErrAway) || errors.Is(err, core.ErrUnknownOutcome) {
			return fmt.Errorf("question: %w", err)
		}
		when := d.Held.Expires
		if err != nil {
			var e *core.Error
			if errors.As(err, &e) && e.Kind == core.Unsure {
				t.results.unsure = true
			} else {
				when = t.journal.clock() // nobody can answer it
				d.Held.Refused(err)
				t.journalWith(d.Key).Later(t.journal.record(d.Key, core.ProgressPending, d.Held))
			}
			t.log.Error("question not asked", "action", d.Action, "err", err)
		}
		t.turns.expireAt(when, t.path, t.who.Private, q)
	}
	return nil
}

// expirePause is the first pause between two tries to let a question go.
const expirePause = 100 * time.Millisecond

// expireAt lets the question go at that time, if nobody answered it.
func (t *Turns) expireAt(when time.Time, place core.Path, private bool, q question) {
	time.AfterFunc(when.Sub(t.setup.Load().Clock()), func() { t.expire(place, private, q, expirePause) })
}

// Where questions of a former life are looked for: in places where something
// was said not long ago, among what was said last. A bot may have been stopped for
// some days.
const (
	questionAge   = 7 * 24 * time.Hour
	questionDepth = 50
)

// restoreExpiries lets the questions of a former life expire, too.
func (t *Turns) restoreExpiries(v core.View) error {
	heads, err := v.Places(core.Path{})
	if err != nil {
		return err
	}
	now := t.setup.Load().Clock()
	for _, h := range heads {
		if now.Sub(h.Time) > questionAge {
			continue
		}
		entries, err := v.Last(h.Path, questionDepth)
		if err != nil {
			return err
		}
		for i := range entries {
			m := &entries[i].Message
			q, _, ok := parseQuestion(entries[i].Data)
			if !ok || entries[i].Kind != core.KindMessage {
				continue
			}
			r, err := q.record(v, m.Path)
			if err != nil {
				return err
			}
			held, err := action.ReadHeld(r)
			if err == nil && r.Progress == core.ProgressPending {
				t.expireAt(held.Expires, m.Path, m.Private, q)
			}
		}
	}
	return nil
}

// record returns the record of the step that the question is about; the zero Record if the
// journal has none.
func (q question) record(v core.View, place core.Path) (core.Record, error) {
	records, err := v.Journal(core.TurnID{Path: place, Seq: q.turn})
	for _, r := range records {
		if r.Key.Round == q.round && r.Key.Step == q.step && r.Key.Part == 0 {
			return r, err
		}
	}
	return core.Record{}, err
}

// expire lets a question go that nobody answered in time, and tries until that is
// written. Where it was decided, or forgotten with who was asked, nothing is left to
// be written of it.
func (t *Turns) expire(place core.Path, private bool, q question, pause time.Duration) {
	err := t.expired(place, private, q)
	if err == nil || errors.Is(err, core.ErrClosed) {
		return
	}
	t.setup.Load().Log.Warn("question not expired, trying again", "path", place, "retry_in", pause, "err", err)
	time.AfterFunc(pause, func() { t.expire(place, private, q, min(2*pause, maxPause)) })
}

// expired writes that the time of a question is over.
func (t *Turns) expired(place core.Path, private bool, q question) error {
	ctx := context.Background()
	r, err := view(ctx, t.store, func(v core.View) (core.Record, error) { return q.record(v, place) })
	if err != nil || r.Progress != core.ProgressPending {
		return err
	}
	b := core.Batch{Append: []core.Entry{{Due: true, Self: true, Event: core.Event{
		Kind: core.KindPress, Data: q.String() + ":n", Message: core.Message{
			Path: place, ID: "expired-" + q.String(), Time: t.setup.Load().Clock(), Private: private,
		},
	}}}}
	if err := t.store.Commit(ctx, &b); err != nil {
		return err
	}
	t.wake(queue{path: place})
	return nil
}

// sendQuestion asks a question, with buttons where the interface has them. One that is too
// long for a message is attached whole, before it is asked.
func (t *turn) sendQuestion(ctx context.Context, step core.Key, text string, q question) error {
	parts := questionParts{t.journalWith(step).Parts(step), q.String()}
	if len(text) > action.MaxQuestion {
		file := core.Upload{
			Name: attachedName, MIME: "text/plain; charset=utf-8", Data: []byte(text + "\n"), Kind: core.MediaFile,
		}
		if err := t.setup.carrier(t.path).SendFile(ctx, parts, 2, core.Sent{Path: t.path}, file); err != nil {
			return err
		}
		text = brief(text)
	}
	what := core.Sent{Path: t.path, Text: text, Data: q.String()}
	c := t.setup.chooser(t.path)
	if c != nil {
		return c.Choose(ctx, parts, what, []core.Choice{
			{Label: "Confirm", Data: q.String() + ":y"}, {Label: "Cancel", Data: q.String() + ":n"},
		})
	}
	d, ok := t.snapshot.Message(t.path.Interface())
	if !ok {
		return core.Errorf(core.Broken, "%s has no message action", t.path.Interface())
	}
	payload, err := json.Marshal(map[string]string{"text": txt.Literal(text) + " (yes/no)"})
	if err != nil {
		return err
	}
	_, err = d.Do(ctx, core.Call{
		Key: step, Path: t.path, Private: t.who.Private, Author: t.who.Authors[0], Answers: t.ids(),
		Payload: payload, Deliveries: parts,
	})
	return err
}

// attachedName is what the file is called that holds a long question.
const attachedName = "question.txt"

// brief is a question whose whole text is attached: its first lines, and where the
// rest is.
func brief(text string) string {
	const most = 300
	var b strings.Builder
	for line := range strings.Lines(text) {
		if b.Len()+len(line) > most {
			break
		}
		b.WriteString(line)
	}
	return b.String() + "…\nWhat will be done is too long for a message. The file " + attachedName + " shows all of it."
}

// journalWith returns the journal that holds the step: this turn's, or that of a turn
// whose question it decides.
func (t *turn) journalWith(step core.Key) *journal {
	for _, o := range t.decided {
		if o.id == step.Turn {
			return o
		}
	}
	return t.journal
}

// questionParts are the parts of a question. Their numbers differ from those of the step
// that it is about. The log keeps data with them.
type questionParts struct {
	core.Deliveries
	data string
}

// Send implements core.Deliveries.
func (p questionParts) Send(
	ctx context.Context, n int, what core.Sent, do func(context.Context, string) (string, error),
) error {
	what.Data = p.data
	return p.Deliveries.Send(ctx, questionPart+n, what, do)
}

// Since implements core.Deliveries.
func (p questionParts) Since(n int) time.Time { return p.Deliveries.Since(questionPart + n) }

func (s *setup) carrier(place core.Path) core.FileSender {
	if s.Places.Carrier == nil {
		return nil
	}
	return s.Places.Carrier(place)
}

func (s *setup) chooser(place core.Path) core.Chooser {
	if s.Places.Chooser == nil {
		return nil
	}
	return s.Places.Chooser(place)
}

// toUs reports whether a message is meant for the bot and nobody else.
func toUs(m *core.Message) bool {
	return m.Private || m.Addressed != "" && m.Addressed != core.AddressedOverheard
}

// What a plain yes or no is, in the languages of the house, and what may be around it.
var (
	yesWords = strings.Fields("yes y ok okay confirm ja sì si sí oui sim да так tak はい")
	noWords  = strings.Fields("no n cancel nein non não нет ні nie いいえ annulla cancelar annuler abbrechen")
	mention  = regexp.MustCompile(`^<?@\S+ | <?@\S+$`)
	polite   = regexp.MustCompile(`^(please|bitte) | (please|thanks|thank you|bitte|danke|per favore|grazie|` +
		`por favor|gracias|obrigad[oa]|merci|пожалуйста|спасибо|будь ласка|proszę)$| ?お願いします$`)
)

// yesOrNo reads an answer that is nothing else but an address of the bot and polite words.
func (s *setup) yesOrNo(m *core.Message) (yes, plain bool) {
	isMark := func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",.!:。！、", r) }
	text := strings.Join(strings.FieldsFunc(folded(m.Text), isMark), " ")
	at := mention.FindStringIndex(text)
	if at != nil && m.Addressed == core.AddressedMention {
		text = text[:at[0]] + text[at[1]:]
	}
	for _, name := range newNames(s.Names(m.Path)) {
		text = strings.TrimSuffix(strings.TrimPrefix(text, name+" "), " "+name)
	}
	text = polite.ReplaceAllString(text, "")
	yes = slices.Contains(yesWords, text)
	return yes, yes || slices.Contains(noWords, text)
}
