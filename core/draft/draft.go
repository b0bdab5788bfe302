// Package draft shows an answer while it is being written, as a message that is edited as the text grows
// and finally becomes the answer.
//
// It decides when to show which text, and cleans up drafts that an earlier process left behind. A Platform
// only sends, edits and deletes messages. A place is any string that the Platform understands.
//
// A note in the State says which message is a draft. It goes through these steps:
//
//   - If the Platform has a Reader, the note is stored before the message is sent, with a hash of its
//     text. If the process dies now, the next one searches for a message with that text. It repeats the
//     search for a while, because the request may still be on its way. For this reason no answer may have
//     the same text as a draft; see [Platform].
//   - Once the message exists, the note holds its id. From now on the draft can be deleted.
//   - Before the message is edited into an answer, the note holds the key of the part that it becomes. From
//     now on only that part changes the message. It is deleted only if a Reader finds that its text is not
//     the answer.
//   - Before another driver deletes a left-over draft, it marks the note. From now on the message cannot become
//     an answer, which is sent as a new message instead.
//   - Once the message is the answer, or deleted, the note is removed.
//
// So a delivered answer is never deleted. If a note cannot be stored, there is no draft, but the answer is still sent.
package draft

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"synthbot/core/driver"
	"synthbot/core/loop"
)

const (
	patience     = 5 * time.Second        // limit for a request that shows a text
	withdrawTime = 30 * time.Second       // limit for deleting a draft
	enterAgain   = 500 * time.Millisecond // pause before Enter is called again
)

// Outcome is the effect of a request that failed.
type Outcome int

const (
	NotDone Outcome = iota // it had no effect; a retry may succeed
	Refused                // it had no effect; a retry would fail again
	Unknown                // it may have taken effect
)

// Post is the first message of a draft.
type Post struct {
	Place, Text string
	Nonce       string // the same for every request of this draft
	Silent      bool   // without a notification
}

// Platform sends, edits and deletes messages, which it identifies by ids. Safe for concurrent use.
type Platform interface {
	// Enter asks for permission to edit a message in a place or, if message is "", to send one. It may block until
	// ctx ends. ok is false if the rate limits leave no room now. The caller calls leave after the request.
	Enter(ctx context.Context, place, message string) (leave func(), ok bool)
	// Fit returns as much of a text as fits into one message; "" if there is nothing to show yet. If
	// there is a Reader, the result must differ from every complete answer.
	Fit(text string) string
	// Post sends a message. It returns "" for one that disappears by itself and cannot be edited.
	Post(ctx context.Context, p Post) (message string, err error)
	// Edit replaces the text of a message.
	Edit(ctx context.Context, place, message, text string) error
	// Delete deletes a message. It returns nil if the message does not exist.
	Delete(ctx context.Context, place, message string) error
	// Outcome classifies an error of Post, Edit, Delete or [Answer.Edit].
	Outcome(err error) Outcome
}

// Reader is implemented by platforms that can read messages, and that send repeated Posts with the same
// nonce only once.
type Reader interface {
	// Newest returns the newest known message of a place; "" if none is known.
	Newest(place string) string
	// Search returns the bot's first message that was sent after a time and after another message, and
	// whose text fits; "" if there is none.
	Search(ctx context.Context, place string, since time.Time, after string, fits func(text string) bool) (
		message string, err error)
	// Read returns a message's text. ok is false if it does not exist.
	Read(ctx context.Context, place, message string) (text string, ok bool, err error)
	// NonceAge returns the minimum time for which the platform remembers a nonce.
	NonceAge() time.Duration
}

// Options configure Drafts. All but Reader are required.
type Options struct {
	Platform Platform
	Reader   Reader       // nil: the platform has none
	State    driver.State // stores the notes
	Key      string       // of the notes in State
	Log      *slog.Logger
	Start    func(func(context.Context)) bool // runs a function in a goroutine; false if it will not run
	First    time.Duration                    // delay of the first text; an answer finished by then needs no draft
	Every    func(place string) time.Duration // pause between two texts
	Left     time.Duration                    // how long after the start drafts of an earlier process are deleted
}

// Drafts are the drafts of all places. Safe for concurrent use.
type Drafts struct {
	opt Options

	mu  sync.Mutex
	all map[string]*draft // by place

	notesMu  sync.Mutex
	leftover notes           // of drafts that may be left over; nil: not read yet
	own      map[string]bool // keys of notes that this process wrote
}

// draft is a message that grows.
type draft struct {
	live   context.Context // ends when the text must no longer change
	end    context.CancelFunc
	first  *time.Timer // starts the first writer
	nonce  string
	silent bool

	// Guarded by Drafts.mu.
	text    string // the newest
	shown   string
	last    time.Time // when it was shown
	refused bool      // nothing more can be shown
	writing bool      // a writer runs, or first will start one

	writer sync.WaitGroup // counts the goroutine that writes

	// Owned by the writer, then by the function that ends the draft.
	message     string // its id; "" if unknown
	pendingText string // text of a Post with an unknown outcome; "" if there is none
	pendingNote note   // of that Post
}

// errGivenUp ends a draft: a Post has an unknown outcome and cannot be repeated, or a note cannot be
// stored, perhaps because another process now serves the place.
var errGivenUp = errors.New("the draft was given up")

// New returns empty Drafts.
func New(o Options) *Drafts { return &Drafts{opt: o, all: map[string]*draft{}, own: map[string]bool{}} }

// Show shows the text of an answer that is being written. Texts are skipped if they come faster than the
// platform allows. A silent draft sends no notification. Show does not block.
func (d *Drafts) Show(place, text string, silent bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.all[place]
	if a == nil {
		a = &draft{nonce: rand.Text()[:25], silent: silent, writing: true}
		a.live, a.end = context.WithCancel(context.Background())
		d.all[place] = a
		a.first = time.AfterFunc(d.opt.First, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.startWriter(place, a)
		})
	}
	a.text = text
	if !a.writing {
		d.startWriter(place, a)
	}
}

// startWriter starts the writer of a draft, unless nothing more can be shown. The caller holds mu.
func (d *Drafts) startWriter(place string, a *draft) {
	a.writing = false
	if a.refused || a.live.Err() != nil {
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

// Shown returns when the draft of a place last changed; zero if it did not, or if there is none.
func (d *Drafts) Shown(place string) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.all[place]
	if a == nil {
		return time.Time{}
	}
	return a.last
}

// write shows new texts until there are no more.
func (d *Drafts) write(ctx context.Context, place string, a *draft) {
	live, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.live, cancel)()
	for {
		text := d.nextText(live, place, a)
		if text == "" {
			return
		}
		if leave, ok := d.enter(live, place, a.message); ok {
			d.show(ctx, place, a, text)
			leave()
		}
	}
}

// nextText waits until another text may be shown, and returns it. "" ends the writer.
func (d *Drafts) nextText(live context.Context, place string, a *draft) string {
	d.mu.Lock()
	pause := time.Until(a.last.Add(d.opt.Every(place))) // negative for the first text
	d.mu.Unlock()
	loop.Sleep(live, pause)
	d.mu.Lock()
	defer d.mu.Unlock()
	text := ""
	if live.Err() == nil && !a.refused { // Fit is expensive
		text = d.opt.Platform.Fit(a.text)
	}
	if text == a.shown {
		text = ""
	}
	a.writing = text != ""
	return text
}

// enter calls Platform.Enter until it succeeds; ok is false if ctx ended before.
func (d *Drafts) enter(ctx context.Context, place, message string) (leave func(), ok bool) {
	for ctx.Err() == nil {
		leave, ok = d.opt.Platform.Enter(ctx, place, message)
		if ok {
			return leave, true
		}
		loop.Sleep(ctx, enterAgain)
	}
	return nil, false
}

// show makes one request. It continues after ctx has ended, because the outcome must be stored.
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
	a.shown, a.last = text, time.Now() // a text that failed is not retried
	a.refused = errors.Is(err, errGivenUp) || err != nil && d.opt.Platform.Outcome(err) == Refused
}

// post sends the draft's message. If an earlier request has an unknown outcome, it repeats that one. It
// returns the text of the message.
func (d *Drafts) post(ctx context.Context, place string, a *draft, text string) (string, error) {
	if a.pendingText == "" {
		a.pendingText = text
		a.pendingNote = note{Place: place, Nonce: a.nonce, Sum: hashOf(text), At: time.Now()}
		if d.opt.Reader != nil {
			a.pendingNote.After = d.opt.Reader.Newest(place)
		}
	}
	text = a.pendingText
	if d.opt.Reader != nil && time.Since(a.pendingNote.At) > d.opt.Reader.NonceAge() {
		a.pendingText = "" // the message may exist
		d.addLeftover(a.pendingNote)
		return text, errGivenUp
	}
	if d.opt.Reader != nil && !d.saveNote(ctx, a.pendingNote) {
		a.pendingText = ""
		return text, errGivenUp
	}
	message, err := d.opt.Platform.Post(ctx, Post{place, text, a.nonce, a.silent})
	unknown := err != nil && d.opt.Platform.Outcome(err) == Unknown
	switch {
	case unknown && d.opt.Reader != nil:
		return text, err
	case err == nil && message != "":
		a.message = message
		ok := d.saveNote(ctx, note{Place: place, ID: message}, a.pendingNote)
		if !ok {
			d.deleteMessage(ctx, note{Place: place, ID: message})
			a.message, err = "", errGivenUp
		}
	case d.opt.Reader != nil:
		d.removeNote(ctx, a.pendingNote)
	}
	a.pendingText = ""
	if unknown {
		err = errGivenUp // a repeated request might send another message
	}
	return text, err
}

// remove ends and returns the draft of a place; nil if there is none. Its writer may still make one request.
func (d *Drafts) remove(place string) *draft {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.all[place]
	if a != nil {
		delete(d.all, place)
		a.first.Stop()
		a.end()
	}
	return a
}

// Withdraw deletes the draft of a place. The next Show starts a new one. It blocks only if nothing runs in the
// background any more: the driver has ended, but a turn still uses it.
func (d *Drafts) Withdraw(place string) {
	a := d.remove(place)
	if a == nil {
		return
	}
	withdraw := func(ctx context.Context) { d.withdraw(ctx, place, a) }
	if !d.opt.Start(withdraw) {
		ended, end := context.WithCancel(context.Background())
		end()
		withdraw(ended)
	}
}

// withdraw deletes a draft. If ctx has ended, it is soon given up, so that the driver can end.
func (d *Drafts) withdraw(ctx context.Context, place string, a *draft) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTime)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(patience, cancel) })()
	a.writer.Wait()
	if a.pendingText != "" {
		leave, ok := d.enter(limited, place, "")
		if !ok {
			return
		}
		_, _ = d.post(limited, place, a, "")
		leave()
	}
	if a.message != "" {
		d.deleteMessage(limited, note{Place: place, ID: a.message})
	}
}

// Answer is a message that a draft can become.
type Answer struct {
	Key  string // of the part, the same in every attempt
	Text string
	Edit func(ctx context.Context, message string) error // edits a draft into the answer; nil: it needs a new message
}

// Finish turns the draft of a place into the answer, and returns the message's id. It blocks until the
// platform has responded. If done is false, there was no usable draft, and the caller sends the answer. If
// done is true and err is not nil, the outcome may be unknown, and the caller retries with Resume.
func (d *Drafts) Finish(ctx context.Context, place string, m Answer) (message string, done bool, err error) {
	a := d.remove(place)
	if a == nil {
		return "", false, nil
	}
	a.writer.Wait()
	if a.pendingText != "" {
		_, _ = d.post(ctx, place, a, "")
	}
	if a.message == "" {
		return "", false, nil
	}
	n := note{Place: place, ID: a.message, Key: m.Key, At: time.Now(), Final: hashOf(m.Text)}
	if m.Edit == nil || !d.saveNote(ctx, n) {
		d.deleteMessage(ctx, n)
		return "", false, nil
	}
	return d.editInto(ctx, n, m)
}

// Resume continues an earlier attempt to turn a draft into this answer. Its results are those of Finish.
func (d *Drafts) Resume(ctx context.Context, place string, m Answer) (message string, done bool, err error) {
	d.notesMu.Lock()
	all, _ := d.read(ctx)
	d.notesMu.Unlock()
	for _, n := range all {
		if n.Place == place && n.Key != "" && n.Key == m.Key && m.Edit != nil && !n.Gone {
			return d.editInto(ctx, n, m)
		}
	}
	return "", false, nil
}

// editInto edits a draft into the answer. If the outcome is unknown, the note stays, so that the next attempt
// repeats the edit.
func (d *Drafts) editInto(ctx context.Context, n note, m Answer) (message string, done bool, err error) {
	err = m.Edit(ctx, n.ID)
	switch {
	case err == nil:
		d.removeNote(ctx, n)
		return n.ID, true, nil
	case d.opt.Platform.Outcome(err) == Refused:
		d.deleteMessage(ctx, n)
		return "", false, nil
	}
	d.addLeftover(n)
	return "", true, err
}
