package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/txt"
)

const (
	// After a restart, open questions are looked for in places with a message not older than questionAge, among
	// the last questionDepth entries. The bot may have been stopped for some days.
	questionAge   = 7 * 24 * time.Hour
	questionDepth = 50
	expirePause   = 100 * time.Millisecond // the first one after the expiry of a question could not be stored
	attachedName  = "question.txt"         // the file that holds a long question
)

// question identifies a message that asks for a confirmation, or for a value: which step waits for the
// answer, and how many questions the step had before. The log stores it with the message.
type question struct {
	turn  uint64
	round uint16
	step  uint16
	ask   int
}

func (q question) String() string {
	s := fmt.Sprintf("%s%d.%d.%d", core.QuestionMark, q.turn, q.round, q.step)
	if q.ask > 0 {
		s += fmt.Sprintf(".%d", q.ask)
	}
	return s
}

// Answers of buttons. The button of a choice answers with its number, from 1.
const (
	answerYes   = "y"
	answerNo    = "n"
	answerWords = "w" // the answer is the text of the press
)

// parseQuestion reads a question, and the answer behind it if there is one.
func parseQuestion(s string) (q question, answer string, ok bool) {
	rest, ok := strings.CutPrefix(s, core.QuestionMark)
	if !ok {
		return q, "", false
	}
	where, answer, _ := strings.Cut(rest, ":")
	n, _ := fmt.Sscanf(where, "%d.%d.%d.%d", &q.turn, &q.round, &q.step, &q.ask)
	return q, answer, n >= 3
}

// askUser asks the questions of all steps that wait for an answer.
func (t *turn) askUser(ctx context.Context) error {
	unsure := false // one may not have arrived
	for _, d := range t.results.all {
		if d.Progress != core.ProgressPending || d.Held.Question == "" {
			continue
		}
		q := question{d.Key.Turn.Seq, d.Key.Round, d.Key.Step, d.Held.Asks}
		err := t.sendQuestion(ctx, d.Key, d.Held, q)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, core.ErrAway) || errors.Is(err, core.ErrUnknownOutcome) {
			return fmt.Errorf("question: %w", err)
		}
		when := d.Held.Expires
		if err != nil {
			if e, ok := errors.AsType[*core.Error](err); ok && e.Kind == core.Unsure {
				unsure = true
			} else {
				when = t.journal.clock() // nobody can answer it
				_, d.Held.Unasked = action.UserText(err)
				t.journalWith(d.Key).Later(t.journal.record(d.Key, core.ProgressPending, d.Held))
			}
			t.log.Error("question not asked", "action", d.Action, "err", err)
		}
		t.turns.expireAt(when, t.path, t.who.Private, q)
	}
	if unsure && !t.unasked() {
		return t.say(ctx, doubtRound, doubtText)
	}
	return nil
}

// expireAt lets the question expire at that time, if nobody answers it.
func (t *Turns) expireAt(when time.Time, place core.Path, private bool, q question) {
	now := t.setup.Load().Clock()
	t.attention.with(place, now, func(e *placeAttention) {
		if when.After(e.asks) {
			e.asks = when
		}
	})
	time.AfterFunc(when.Sub(now), func() { t.expire(place, private, q, expirePause) })
}

// restoreExpiries lets the questions of an earlier process expire, too.
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
		for _, e := range entries {
			q, _, ok := parseQuestion(e.Data)
			if !ok || e.Kind != core.KindMessage {
				continue
			}
			held, err := q.waiting(v, e.Message.Path)
			if err != nil {
				return err
			}
			if held != nil {
				t.expireAt(held.Expires, e.Message.Path, e.Message.Private, q)
			}
		}
	}
	return nil
}

// key returns the key of the step in the place that waits for the question's answer.
func (q question) key(place core.Path) core.Key {
	return core.Key{Turn: core.TurnID{Path: place, Seq: q.turn}, Round: q.round, Step: q.step}
}

// waiting returns the step that waits for the question's answer; nil if none does.
func (q question) waiting(v core.View, place core.Path) (*action.Held, error) {
	key := q.key(place)
	known, err := v.Journal(key.Turn)
	i := slices.IndexFunc(known, func(r core.Record) bool {
		r.Key.Turn = key.Turn // which differs if the place moved
		return r.Key == key
	})
	if err != nil || i < 0 || known[i].Progress != core.ProgressPending {
		return nil, err
	}
	h, err := action.ReadHeld(known[i])
	if err != nil || h.Asks != q.ask {
		return nil, nil // a step that cannot be read does not wait
	}
	return h, nil
}

// expire lets a question expire that nobody answered in time. It tries until that is stored.
func (t *Turns) expire(place core.Path, private bool, q question, pause time.Duration) {
	if t.setup.Load().Places.Elsewhere(place) {
		return // it expires there
	}
	err := t.storeExpiry(place, private, q)
	if err == nil || errors.Is(err, core.ErrClosed) {
		return
	}
	t.setup.Load().Log.Warn("question not expired, trying again", "path", place, "retry_in", pause, "err", err)
	time.AfterFunc(pause, func() { t.expire(place, private, q, min(2*pause, maxPause)) })
}

// storeExpiry stores that a question expired, as a press of Cancel by the bot, if a step still waits for it.
func (t *Turns) storeExpiry(place core.Path, private bool, q question) error {
	ctx := context.Background()
	var now core.Head // the place may have moved since
	held, err := core.Read(ctx, t.store, func(v core.View) (held *action.Held, err error) {
		now, err = v.Head(place)
		if err == nil {
			held, err = q.waiting(v, place)
		}
		return held, err
	})
	if err != nil || held == nil {
		return err
	}
	b := core.Batch{Append: []core.Entry{{Due: true, Self: true, Event: core.Event{
		Kind: core.KindPress, Data: q.String() + ":" + answerNo, Message: core.Message{
			Path: place, ID: "expired-" + q.String(), Time: t.setup.Load().Clock(), Private: private,
		},
	}}}}
	if err := t.store.Commit(ctx, &b); err != nil {
		return err
	}
	t.wake(queue{path: now.Path}, 0, core.Path{})
	return nil
}

// sendQuestion sends a question, with buttons if the interface has them. The whole text of one that
// is too long for a message is sent as a file first.
func (t *turn) sendQuestion(ctx context.Context, step core.Key, h *action.Held, q question) error {
	parts := &parts{t.journalWith(step), step, q.part(0), q.String()}
	text := h.Question
	if len(text) > action.MaxQuestion {
		carrier := t.setup.Places.Carrier(t.path)
		if carrier == nil { // it could send files when the step was held
			return core.Errorf(core.Broken, "%s can no longer send files", t.path.Interface())
		}
		file := core.Upload{
			Name: attachedName, MIME: "text/plain; charset=utf-8", Data: []byte(text + "\n"), Kind: core.MediaFile,
		}
		if err := carrier.SendFile(ctx, parts, 2, core.Sent{Path: t.path}, file); err != nil {
			return err
		}
		text = brief(text)
	}
	c := t.setup.Places.Chooser(t.path)
	if c != nil {
		return c.Choose(ctx, parts, core.Sent{Path: t.path, Text: text, Data: q.String()}, q.choices(h))
	}
	d, ok := t.snapshot.Message(t.path.Interface())
	if !ok {
		return core.Errorf(core.Broken, "%s has no message action", t.path.Interface())
	}
	_, err := d.Do(ctx, core.Call{
		Key: step, Path: t.path, Private: t.who.Private, Author: t.who.Authors[0], Answers: t.ids(),
		Payload: core.JSON(map[string]string{"text": txt.Literal(text) + answerHint(h)}), Deliveries: parts,
	})
	return err
}

func (q question) choices(h *action.Held) (list []core.Choice) {
	add := func(label, answer string, writes bool) {
		list = append(list, core.Choice{Label: label, Data: q.String() + ":" + answer, Writes: writes})
	}
	switch {
	case h.Form == nil:
		add("Confirm", answerYes, false)
	case len(h.Form.Choices) == 0:
		add("Answer", answerWords, true)
	default:
		for i, label := range h.Form.Choices {
			add(label, strconv.Itoa(i+1), false)
		}
	}
	add("Cancel", answerNo, false)
	return list
}

// answerHint says how a question is answered where there are no buttons.
func answerHint(h *action.Held) string {
	if h.Form == nil {
		return " (yes/no)"
	}
	var b strings.Builder
	for i, label := range h.Form.Choices {
		fmt.Fprintf(&b, "\n%d. %s", i+1, txt.Literal(label))
	}
	return b.String() + "\n(“cancel” ends this)"
}

// brief returns the first lines of a question that is sent as a file, and the name of the file.
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

// journalWith returns the journal that holds the step: this turn's, or that of a turn whose question it decides.
func (t *turn) journalWith(step core.Key) *journal {
	for _, o := range t.decided {
		if o.id == step.Turn {
			return o
		}
	}
	return t.journal
}

// part returns the number of the question's n-th part in the journal of its step.
func (q question) part(n int) int { return questionPart + questionParted*q.ask + n }

// The words of a plain yes or no in the supported languages, and the words that may be around them.
var (
	yesWords = strings.Fields("yes y ok okay confirm ja sì si sí oui sim да так tak はい")
	noWords  = strings.Fields("no n nein non não нет ні nie いいえ")
	// These cancel a form even if its question is answered by yes or no.
	cancelWords = strings.Fields("cancel annulla cancelar annuler abbrechen отмена скасувати anuluj キャンセル")

	mention = txt.Pattern(`^<?@\S+\s|\s<?@\S+$`)
	polite  = txt.Pattern(`^(please|bitte) | (please|thanks|thank you|bitte|danke|per favore|grazie|` +
		`por favor|gracias|obrigad[oa]|merci|пожалуйста|спасибо|будь ласка|proszę)$| ?お願いします$`)
)

// yesOrNo reads a yes or no. plain means that the message is nothing else, but for polite words and the bot's name.
func (s *setup) yesOrNo(m *core.Message) (yes, plain bool) {
	text := s.bareText(m)
	yes = slices.Contains(yesWords, text)
	return yes, yes || slices.Contains(noWords, text) || slices.Contains(cancelWords, text)
}

// bareText returns a message's text in lower case, without punctuation, the bot's names and polite words.
func (s *setup) bareText(m *core.Message) string {
	isMark := func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",.!:。！、", r) }
	text := strings.Join(strings.FieldsFunc(folded(unmentioned(m)), isMark), " ")
	for _, name := range s.Names(m.Path) {
		name = folded(name)
		text = strings.TrimSuffix(strings.TrimPrefix(text, name+" "), " "+name)
	}
	return polite().ReplaceAllString(text, "")
}

// unmentioned returns a message's text without the mention that addresses the bot.
func unmentioned(m *core.Message) string {
	at := mention().FindStringIndex(m.Text)
	if at == nil || m.Addressed != core.AddressedMention {
		return m.Text
	}
	return m.Text[:at[0]] + m.Text[at[1]:]
}
