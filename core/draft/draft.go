// Package draft shows an answer while it is being written: as a message that is
// edited as the text grows, and that becomes the answer.
//
// It decides what is shown when, what is noted before and after a request whose
// outcome may stay unknown, and how what an earlier process left behind is cleaned
// up. A Platform only sends, edits and deletes; drafts are kept in any place that a
// string names.
//
// A note in the State says which message is a draft. It goes through these steps:
//
//   - Before the message is requested, a platform with a Reader gets a note with the
//     sum of its text. If the process dies now, the next one searches for the message,
//     also a while later: the request may still be on its way. So that it does not find
//     an answer, no answer may say what a draft says; see [Platform].
//   - Once the message exists, the note holds its id. From here on it can be deleted.
//   - Before the message is edited into an answer, the note holds the key of the part
//     that it becomes. From here on nothing but that part changes it, and only a Reader
//     that finds another text in it allows deleting it.
//   - Once it is the answer, or deleted, the note is removed.
//
// So nothing that was delivered as an answer is ever deleted. A note that cannot be
// written costs the draft, never the answer.
package draft

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"synthbot/core/driver"
)

const (
	patience     = 5 * time.Second        // for a request that shows a text
	withdrawTime = 30 * time.Second       // for deleting a draft
	enterAgain   = 500 * time.Millisecond // after a platform had no room
)

// Outcome is what became of a request that failed.
type Outcome int

const (
	NotDone Outcome = iota // nothing was done, and another try may work
	Refused                // nothing was done, and another try is useless
	Unknown                // it may have been done
)

// Post is the first message of a draft.
type Post struct {
	Place, Text string
	Nonce       string // the same for every request of this draft
	Silent      bool   // without a notification
}

// Platform carries out what drafts need. Safe for concurrent use.
type Platform interface {
	// Enter asks for room to show a text in a place, by a message that exists or, if
	// it is "", by a new one. ok is false if there is none now. leave gives it back.
	Enter(ctx context.Context, place, message string) (leave func(), ok bool)
	// Fit returns as much of a text as one message shows; "" shows nothing. With a Reader, what it
	// returns must never be a whole answer.
	Fit(text string) string
	// Post shows a text. It returns "" for what vanishes by itself and cannot be
	// edited.
	Post(ctx context.Context, p Post) (message string, err error)
	Edit(ctx context.Context, place, message, text string) error
	// Delete returns nil also if the message does not exist.
	Delete(ctx context.Context, place, message string) error
	Outcome(err error) Outcome
}

// Reader is the ability of a platform to look at messages, and to make a Post that
// is repeated with the same nonce only once.
type Reader interface {
	// Newest returns the newest message of a place, as far as it is known.
	Newest(place string) string
	// Search finds a message of the bot's own that was sent after a time and after a
	// message; "" if there is none.
	Search(ctx context.Context, place string, since time.Time, after string, fits func(text string) bool) (
		message string, err error)
	// Read returns a message's text; ok is false if it does not exist or cannot be
	// reached any more.
	Read(ctx context.Context, place, message string) (text string, ok bool, err error)
	// NonceAge is how long a Post may be repeated.
	NonceAge() time.Duration
}

// Options is what Drafts need. All but Reader are required.
type Options struct {
	Platform Platform
	Reader   Reader       // nil: the platform has none
	State    driver.State // keeps the notes
	Key      string       // of the notes
	Log      *slog.Logger
	Start    func(func(context.Context)) bool // runs a function beside; false if it does not
	First    time.Duration                    // before a text shows; what is whole by then needs no draft
	Every    func(place string) time.Duration // between two texts
	Left     time.Duration                    // after which what an earlier process left is deleted
}

// Drafts are the drafts of all places. Safe for concurrent use.
type Drafts struct {
	opt Options

	mu  sync.Mutex
	all map[string]*draft // by place

	notes sync.Mutex
	left  notes           // what may be left over, by the note's key; nil: not read yet
	own   map[string]bool // keys of notes that this process wrote
}

// draft is a message that grows.
type draft struct {
	live   context.Context // until the text must not change any more
	end    context.CancelFunc
	nonce  string
	silent bool

	// Guarded by Drafts.mu.
	text    string // the newest
	shown   string
	last    time.Time // when it was shown
	refused bool      // nothing can be shown
	writing bool

	writer sync.WaitGroup // counts the goroutine that writes

	// Of the writer, then of who ended the draft.
	message   string // "" if none is known
	askedText string // of a Post that may have worked; "" if it is certain whether the message exists
	asked     note   // of that Post
}

// errGivenUp is the error of a draft that is not shown any more: a Post may have worked, or a note
// cannot be written, perhaps because another process speaks in the place by now.
var errGivenUp = errors.New("a draft is given up")

// New returns Drafts without any.
func New(o Options) *Drafts { return &Drafts{opt: o, all: map[string]*draft{}, own: map[string]bool{}} }

// Show shows a text that is being written, as often as the platform has room for it.
// It returns at once.
func (d *Drafts) Show(place, text string, silent bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.all[place]
	if a == nil {
		a = &draft{nonce: rand.Text()[:25], silent: silent}
		a.live, a.end = context.WithCancel(context.Background())
		d.all[place] = a
	}
	a.text = text
	if a.writing || a.refused {
		return
	}
	a.writer.Add(1)
	a.writing = d.opt.Start(func(ctx context.Context) {
		defer a.writer.Done()
		d.write(ctx, place, a)
	})
	if !a.writing {
		a.writer.Done()
	}
}

// Shown returns when the draft of a place last showed something new.
func (d *Drafts) Shown(place string) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.all[place]
	if a == nil {
		return time.Time{}
	}
	return a.last
}

// write shows new texts until there is none.
func (d *Drafts) write(ctx context.Context, place string, a *draft) {
	live, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.live, cancel)()
	for {
		text := d.next(live, place, a)
		if text == "" {
			return
		}
		if leave, ok := d.enter(live, place, a.message); ok {
			d.show(ctx, place, a, text)
			leave()
		}
	}
}

// next waits until another text may be shown, and returns it. "" ends the writer.
func (d *Drafts) next(live context.Context, place string, a *draft) string {
	pause := d.opt.First
	d.mu.Lock()
	if !a.last.IsZero() {
		pause = time.Until(a.last.Add(d.opt.Every(place)))
	}
	d.mu.Unlock()
	driver.Sleep(live, pause)
	d.mu.Lock()
	defer d.mu.Unlock()
	text := ""
	if live.Err() == nil && !a.refused { // else the text that was whole in time would be fitted for nothing
		text = d.opt.Platform.Fit(a.text)
	}
	if text == a.shown {
		text = ""
	}
	a.writing = text != ""
	return text
}

// enter waits for room; ok is false if ctx ended before.
func (d *Drafts) enter(ctx context.Context, place, message string) (leave func(), ok bool) {
	for ctx.Err() == nil {
		leave, ok = d.opt.Platform.Enter(ctx, place, message)
		if ok {
			return leave, true
		}
		driver.Sleep(ctx, enterAgain)
	}
	return nil, false
}

// show makes one request. The end of the process does not cut it short: its outcome
// must be noted.
func (d *Drafts) show(ctx context.Context, place string, a *draft, text string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	var err error
	if a.message == "" {
		d.Clear(ctx, place)
		text, err = d.post(ctx, place, a, text)
	} else {
		err = d.opt.Platform.Edit(ctx, place, a.message, text)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	a.shown, a.last = text, time.Now() // what failed is not worth another try
	a.refused = errors.Is(err, errGivenUp) || err != nil && d.opt.Platform.Outcome(err) == Refused
}

// post requests the draft's message, or requests it again, and returns the text that
// it shows then.
func (d *Drafts) post(ctx context.Context, place string, a *draft, text string) (string, error) {
	if a.askedText == "" {
		a.askedText = text
		a.asked = note{Place: place, Nonce: a.nonce, Sum: sumOf(text), At: time.Now()}
		if d.opt.Reader != nil {
			a.asked.After = d.opt.Reader.Newest(place)
		}
	}
	text = a.askedText
	if d.opt.Reader != nil && time.Since(a.asked.At) > d.opt.Reader.NonceAge() {
		a.askedText = "" // it may exist
		d.leave(a.asked)
		return text, errGivenUp
	}
	if d.opt.Reader != nil && !d.note(ctx, a.asked) {
		a.askedText = ""
		return text, errGivenUp
	}
	message, err := d.opt.Platform.Post(ctx, Post{place, text, a.nonce, a.silent})
	unknown := err != nil && d.opt.Platform.Outcome(err) == Unknown
	switch {
	case unknown && d.opt.Reader != nil:
		return text, err
	case err == nil && message != "":
		a.message = message
		ok := d.note(ctx, note{Place: place, ID: message}, a.asked)
		if !ok {
			d.erase(ctx, note{Place: place, ID: message})
			a.message, err = "", errGivenUp
		}
	case d.opt.Reader != nil:
		d.forget(ctx, a.asked)
	}
	a.askedText = ""
	if unknown {
		err = errGivenUp // a repeated request might make another message
	}
	return text, err
}

// remove ends the draft of a place; nil if there is none. Its writer may still make
// one request.
func (d *Drafts) remove(place string) *draft {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.all[place]
	if a != nil {
		delete(d.all, place)
		a.end()
	}
	return a
}

// Withdraw deletes the draft of a place, in the background. The next Show begins
// another one.
func (d *Drafts) Withdraw(place string) {
	a := d.remove(place)
	if a == nil {
		return
	}
	d.opt.Start(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, withdrawTime)
		defer cancel()
		a.writer.Wait()
		if a.askedText != "" {
			leave, ok := d.enter(ctx, place, "")
			if !ok {
				return
			}
			_, _ = d.post(ctx, place, a, "")
			leave()
		}
		if a.message != "" {
			d.erase(ctx, note{Place: place, ID: a.message})
		}
	})
}

// Answer is a message that a draft can become.
type Answer struct {
	Key  string // of the part, the same in every try
	Text string
	Edit func(ctx context.Context, message string) error // changes the draft into it; nil: it must be a new message
}

// Finish makes the draft of a place the answer, and returns its id. done is false if
// there is no draft, or if it cannot become the answer and was deleted: then the answer
// is to be sent.
func (d *Drafts) Finish(ctx context.Context, place string, m Answer) (message string, done bool, err error) {
	a := d.remove(place)
	if a == nil {
		return "", false, nil
	}
	a.writer.Wait()
	if a.askedText != "" {
		_, _ = d.post(ctx, place, a, "")
	}
	if a.message == "" {
		return "", false, nil
	}
	n := note{Place: place, ID: a.message, Key: m.Key, At: time.Now(), Final: sumOf(m.Text)}
	if m.Edit == nil || !d.note(ctx, n) {
		d.erase(ctx, n)
		return "", false, nil
	}
	return d.become(ctx, n, m)
}

// Resume goes on with the draft that an earlier try of this part began to make the
// answer; done is false if there is none.
func (d *Drafts) Resume(ctx context.Context, place string, m Answer) (message string, done bool, err error) {
	d.notes.Lock()
	all, _ := d.read(ctx)
	d.notes.Unlock()
	for _, n := range all {
		if n.Place == place && n.Key != "" && n.Key == m.Key && m.Edit != nil {
			return d.become(ctx, n, m)
		}
	}
	return "", false, nil
}

// become makes a draft the answer that its note names. While the outcome is unknown,
// another try of the same part does the same again.
func (d *Drafts) become(ctx context.Context, n note, m Answer) (message string, done bool, err error) {
	err = m.Edit(ctx, n.ID)
	switch {
	case err == nil:
		d.forget(ctx, n)
		return n.ID, true, nil
	case d.opt.Platform.Outcome(err) == Refused:
		d.erase(ctx, n)
		return "", false, nil
	}
	d.leave(n)
	return "", true, err
}
