package draft_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/draft"
	"synthbot/core/loop"
)

// Errors of the fake platform.
var (
	errLimited = errors.New("limited")
	errRefused = errors.New("refused")
	errLost    = errors.New("lost")
)

// message is a message of the bot.
type message struct {
	id, nonce, text string
	sent            time.Time
}

// platform is a fake platform with one place.
type platform struct {
	mu       sync.Mutex
	messages []message
	count    int
	calls    []string
	faults   map[coretest.DraftRequest][]coretest.DraftFault
	refuses  bool          // all requests
	full     bool          // Enter refuses drafts
	kept     bool          // Delete fails
	pause    time.Duration // before a draft is posted
	slow     time.Duration // before a message is deleted
	entered  int           // calls of Enter that have not left
	onPost   func()        // called before a message is sent, if set
}

// callBeforePost sets a function that is called before a message is sent.
func (p *platform) callBeforePost(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onPost = f
}

func (p *platform) Enter(context.Context, string, string) (func(), bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.full {
		return nil, false
	}
	p.entered++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.entered--
	}, true
}

// setFull sets whether Enter refuses drafts.
func (p *platform) setFull(full bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.full = full
}

// takeCalls returns the calls since it was last called, and how many have entered and not left.
func (p *platform) takeCalls() (calls []string, entered int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	calls, p.calls = p.calls, nil
	return calls, p.entered
}

func (p *platform) Fit(text string) string { return text[:min(len(text), 2000)] }

// fault returns the next fault of a request. The result after reports whether it follows the
// execution of the request.
func (p *platform) fault(kind coretest.DraftRequest) (err error, after bool) {
	if p.refuses {
		return errRefused, false
	}
	list := p.faults[kind]
	if len(list) == 0 {
		return nil, false
	}
	p.faults[kind] = list[1:]
	if list[0] == coretest.DraftLimited {
		return errLimited, false
	}
	return errLost, list[0] == coretest.DraftLostReply
}

// failDeletes sets whether Delete fails.
func (p *platform) failDeletes(all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = all
}

// delayPosts sets how long posting a draft takes.
func (p *platform) delayPosts(pause time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pause = pause
}

func (p *platform) Post(_ context.Context, m draft.Post) (string, error) {
	p.mu.Lock()
	pause := p.pause
	p.mu.Unlock()
	time.Sleep(pause)
	return p.send(m.Text, m.Nonce)
}

func (p *platform) send(text, nonce string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, "post "+text)
	for _, m := range p.messages {
		if nonce != "" && m.nonce == nonce {
			return m.id, nil
		}
	}
	err, after := p.fault(coretest.DraftPost)
	if err != nil && !after {
		return "", err
	}
	if p.onPost != nil {
		p.onPost()
	}
	p.count++
	p.messages = append(p.messages, message{fmt.Sprint(p.count), nonce, text, time.Now()})
	if err != nil {
		return "", err
	}
	return fmt.Sprint(p.count), nil
}

// refuse sets whether all requests are refused.
func (p *platform) refuse(all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = all
}

func (p *platform) find(id string) int {
	return slices.IndexFunc(p.messages, func(m message) bool { return m.id == id })
}

func (p *platform) Edit(_ context.Context, _, id, text string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, "edit "+text)
	err, after := p.fault(coretest.DraftEdit)
	if err != nil && !after {
		return err
	}
	i := p.find(id)
	if i < 0 {
		return errRefused
	}
	p.messages[i].text = text
	return err
}

func (p *platform) Delete(ctx context.Context, _, id string) error {
	p.mu.Lock()
	slow := p.slow
	p.mu.Unlock()
	if slow > 0 && !loop.Sleep(ctx, slow) {
		return ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, "delete "+id)
	if p.refuses || p.kept {
		return errRefused
	}
	p.messages = slices.DeleteFunc(p.messages, func(m message) bool { return m.id == id })
	return nil
}

func (p *platform) Outcome(err error) draft.Outcome {
	return map[error]draft.Outcome{errRefused: draft.Refused, errLost: draft.Unknown}[err]
}

// reader is a platform that can be searched.
type reader struct{ *platform }

func (p reader) Newest(string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.messages) == 0 {
		return ""
	}
	return p.messages[len(p.messages)-1].id
}

func (p reader) Search(_ context.Context, _ string, since time.Time, after string, fits func(string) bool) (
	string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.messages[p.find(after)+1:] {
		if !m.sent.Before(since) && fits(m.text) {
			return m.id, nil
		}
	}
	return "", nil
}

func (p reader) Read(_ context.Context, _, id string) (string, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.find(id)
	if i < 0 {
		return "", false, nil
	}
	return p.messages[i].text, true, nil
}

func (p reader) NonceAge() time.Duration { return 2 * time.Minute }

// state is a driver.State in memory.
type state struct {
	mu           sync.Mutex
	data         []byte
	noGet, noPut error
	lost         bool // writes are lost, as after a crash
}

func (s *state) Get(context.Context, string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data, s.noGet
}

func (s *state) Put(ctx context.Context, _ string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.noPut == nil && !s.lost {
		s.data = data
	}
	return s.noPut
}

// failWith sets noGet or noPut.
func (s *state) failWith(what *error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*what = err
}

// lose sets whether writes are lost.
func (s *state) lose(writes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = writes
}

func (s *state) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.data)
}

// world is a place of the platform and the processes that send messages there.
type world struct {
	*platform
	searches bool
	state    state
	drafts   *draft.Drafts
	cancel   context.CancelFunc
	running  *sync.WaitGroup
}

const here = "x/1"

// Start ends the process that runs and starts another one.
func (w *world) Start(t testing.TB) {
	w.end()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	running := &sync.WaitGroup{}
	w.cancel, w.running, w.drafts = cancel, running, w.newDrafts(func(f func(context.Context)) bool {
		running.Go(func() { f(ctx) })
		return true
	})
	running.Go(func() { w.drafts.ClearLater(ctx) })
	synctest.Wait()
}

// end ends the process that runs, if any.
func (w *world) end() {
	if w.cancel != nil {
		w.cancel()
		w.running.Wait()
	}
}

// newDrafts returns Drafts of a further process.
func (w *world) newDrafts(start func(func(context.Context)) bool) *draft.Drafts {
	o := draft.Options{
		Platform: w.platform, State: &w.state, Key: "drafts", Log: slog.New(slog.DiscardHandler), Start: start,
		First: time.Second, Every: func(string) time.Duration { return 2 * time.Second }, Left: 5 * time.Minute,
	}
	if w.searches {
		o.Reader = reader{w.platform}
	}
	return draft.New(o)
}

func (w *world) End(command bool) {
	if !command {
		w.drafts.Withdraw(here)
	}
}

func (w *world) Draft(text string) {
	if text == "" {
		w.drafts.Withdraw(here)
		return
	}
	w.drafts.Show(here, text, false)
}

func (w *world) Answer(ctx context.Context, _ testing.TB, parts *coretest.Parts, text string) error {
	var list []string
	for len(text) > 2000 {
		list, text = append(list, text[:2000]), text[2000:]
	}
	list = append(list, text)
	var failed error
	for i := range list {
		err := parts.Send(ctx, i+1, core.Sent{Text: list[i]}, func(ctx context.Context, key string) (string, error) {
			edit := func(ctx context.Context, id string) error { return w.Edit(ctx, here, id, list[i]) }
			m := draft.Answer{Key: key, Text: list[i], Edit: edit}
			w.drafts.Clear(ctx, here)
			id, done, err := w.drafts.Resume(ctx, here, m)
			if !done {
				id, done, err = w.drafts.Finish(ctx, here, m)
			}
			if !done {
				id, err = w.send(list[i], "")
			}
			switch {
			case errors.Is(err, errLost):
				err = fmt.Errorf("%w: %w", core.ErrUnknownOutcome, err)
			case errors.Is(err, errLimited):
				err = &core.Error{Kind: core.Temporary, After: time.Second, Err: err}
			}
			return id, err
		})
		if !core.SendsOn(&failed, err) {
			break
		}
	}
	return failed
}

func (w *world) Texts() (list []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.messages {
		list = append(list, m.text)
	}
	return list
}

func (w *world) Fail(kind coretest.DraftRequest, fault coretest.DraftFault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.faults == nil || fault == "" {
		w.faults = map[coretest.DraftRequest][]coretest.DraftFault{}
	}
	if fault != "" {
		w.faults[kind] = append(w.faults[kind], fault)
	}
}

func (w *world) Searches() bool { return w.searches }

// forEachPlatform runs a test with a platform that can be searched, and with one that cannot.
func forEachPlatform(t *testing.T, test func(*testing.T, *world)) {
	for name, searches := range map[string]bool{"search": true, "no search": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{platform: &platform{}, searches: searches}
				test(t, w)
				w.end()
			})
		})
	}
}

func TestDrafts(t *testing.T) {
	coretest.TestDrafts(t, func(t *testing.T, test func(*testing.T, coretest.DraftWorld)) {
		forEachPlatform(t, func(t *testing.T, w *world) { test(t, w) })
	})
}

// TestNotesOfOld: notes in former formats are read, and notes are deleted even if the context has
// ended.
func TestNotesOfOld(t *testing.T) {
	for name, old := range map[string]string{
		"a number": `{"x/1":1}`, "an id as a number": `{"x/1":{"id":1}}`, "an id": `{"x/1":{"id":"1"}}`,
		"a key that is the id": `{"1":{"channel":"x/1","id":"1"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			forEachPlatform(t, func(t *testing.T, w *world) {
				w.state.data = []byte(strings.TrimSuffix(old, "}") + `,"x/2":{"id":"2"}}`)
				_, _ = w.send("half a text", "")
				_, _ = w.send("whole", "")
				w.Start(t)
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				w.drafts.Clear(ended, here)
				if got := w.Texts(); !slices.Equal(got, []string{"whole"}) {
					t.Errorf("got %q, want only whole", got)
				}
				if got := w.state.String(); got != `{"x/2 2":{"channel":"x/2","id":"2"}}` {
					t.Errorf("notes: got %s, want only that of x/2", got)
				}
			})
		})
	}
}

// TestNotesThatCannotBeRead: while the notes cannot be read, none is written, because that would
// delete the others.
func TestNotesThatCannotBeRead(t *testing.T) {
	forEachPlatform(t, func(t *testing.T, w *world) {
		const other = `{"x/2 2":{"channel":"x/2","id":"2"}}`
		w.state.data = []byte(other)
		w.Start(t)
		w.state.failWith(&w.state.noGet, errors.New("broken"))
		w.Draft("half a text")
		time.Sleep(10 * time.Second)
		if err := w.Answer(t.Context(), t, &coretest.Parts{}, "whole"); err != nil {
			t.Error(err)
		}
		w.state.failWith(&w.state.noGet, nil)
		if got := w.Texts(); !slices.Equal(got, []string{"whole"}) || w.state.String() != other {
			t.Errorf("got %q, notes %s, want only whole and unchanged notes", got, w.state.String())
		}
	})
}

// TestNotesThatCannotBeWritten: if the store cannot note that a draft becomes the answer, the draft is
// deleted and the answer is sent as a new message.
func TestNotesThatCannotBeWritten(t *testing.T) {
	forEachPlatform(t, func(t *testing.T, w *world) {
		w.Start(t)
		w.Draft("Sure")
		time.Sleep(10 * time.Second)
		w.state.failWith(&w.state.noPut, core.ErrFull)
		if err := w.Answer(t.Context(), t, &coretest.Parts{}, "Sure."); err != nil {
			t.Error(err)
		}
		w.state.failWith(&w.state.noPut, nil)
		if !slices.Contains(w.calls, "delete 1") {
			t.Errorf("got calls %q, want the draft deleted", w.calls)
		}
		w.Start(t)
		time.Sleep(time.Hour)
		if got := w.Texts(); !slices.Equal(got, []string{"Sure."}) {
			t.Errorf("got %q, want only the answer", got)
		}
	})
}

// TestNoDraftWithoutANote: a draft that cannot be noted is not shown, or deleted as soon as noting it
// failed.
func TestNoDraftWithoutANote(t *testing.T) {
	forEachPlatform(t, func(t *testing.T, w *world) {
		w.Start(t)
		w.state.failWith(&w.state.noPut, core.ErrFull)
		for _, text := range []string{"one", "one two", "one two three"} {
			w.Draft(text)
			time.Sleep(10 * time.Second)
		}
		calls := []string{"post one", "delete 1"}
		if w.searches {
			calls = nil
		}
		if len(w.Texts()) > 0 {
			t.Errorf("got %q, want no draft", w.Texts())
		}
		w.wantCalls(t, calls...)
		w.state.failWith(&w.state.noPut, nil)
		if err := w.Answer(t.Context(), t, &coretest.Parts{}, "whole"); err != nil {
			t.Error(err)
		}
		if got := w.Texts(); !slices.Equal(got, []string{"whole"}) {
			t.Errorf("got %q, want only the answer", got)
		}
	})
}

// TestDraftRefused: a draft that the platform refuses is not tried again.
func TestDraftRefused(t *testing.T) {
	forEachPlatform(t, func(t *testing.T, w *world) {
		w.Start(t)
		w.refuse(true)
		for i := range 20 {
			w.Draft(strings.Repeat("word ", i+1))
			time.Sleep(3 * time.Second)
		}
		if len(w.calls) != 1 || strings.Contains(w.state.String(), here) {
			t.Errorf("got calls %q, notes %s, want one call and no note", w.calls, w.state.String())
		}
	})
}

// TestDraftNotDeleted: a draft that cannot be deleted is deleted later.
func TestDraftNotDeleted(t *testing.T) {
	forEachPlatform(t, func(t *testing.T, w *world) {
		w.Start(t)
		w.Draft("half a text")
		time.Sleep(10 * time.Second)
		w.refuse(true)
		w.Draft("")
		time.Sleep(10 * time.Second)
		w.refuse(false)
		if got := w.Texts(); len(got) != 1 {
			t.Fatalf("got %q, want the draft", got)
		}
		if err := w.Answer(t.Context(), t, &coretest.Parts{}, "whole"); err != nil {
			t.Error(err)
		}
		if got := w.Texts(); !slices.Equal(got, []string{"whole"}) || w.state.String() != "{}" {
			t.Errorf("got %q, notes %s, want only the answer and no notes", got, w.state.String())
		}
	})
}

// TestDraftOfAnotherProcess: a draft that another process of the bot completes or begins meanwhile is
// not deleted as a leftover.
func TestDraftOfAnotherProcess(t *testing.T) {
	forEachPlatform(t, func(t *testing.T, w *world) {
		w.Start(t)
		w.Draft("half a text")
		time.Sleep(10 * time.Second)
		old := w.drafts
		next := w.newDrafts(func(f func(context.Context)) bool { go f(t.Context()); return true })
		go next.ClearLater(t.Context())
		synctest.Wait()
		if err := w.Answer(t.Context(), t, &coretest.Parts{}, "whole"); err != nil {
			t.Error(err)
		}
		old.Show(here, "another", false)
		time.Sleep(10 * time.Second)
		next.ClearSoon(here)
		time.Sleep(time.Hour)
		next.Clear(t.Context(), here)
		if got := w.Texts(); !slices.Equal(got, []string{"whole", "another"}) {
			t.Errorf("got %q, want the answer and the other draft", got)
		}
	})
}

// TestAnswerWhileItsDraftIsDeleted: an answer is not lost if another driver deletes its draft at the same time.
func TestAnswerWhileItsDraftIsDeleted(t *testing.T) {
	forEachPlatform(t, func(t *testing.T, w *world) {
		w.Start(t)
		w.Draft("half a text")
		time.Sleep(10 * time.Second)
		w.mu.Lock()
		w.slow = 3 * time.Second
		w.mu.Unlock()
		next := w.newDrafts(func(f func(context.Context)) bool { go f(t.Context()); return true })
		next.ClearSoon(here)
		time.Sleep(time.Second)
		if err := w.Answer(t.Context(), t, &coretest.Parts{}, "whole"); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		if got := w.Texts(); !slices.Equal(got, []string{"whole"}) || w.state.String() != "{}" {
			t.Errorf("got %q, notes %s, want only the answer and no notes", got, w.state.String())
		}
	})
}

// TestAnswerResumedWhileItsDraftIsDeleted: an answer of unknown outcome does not become a draft that another driver
// deletes, because it can read that the draft is not the answer.
func TestAnswerResumedWhileItsDraftIsDeleted(t *testing.T) {
	forEachPlatform(t, func(t *testing.T, w *world) {
		w.Start(t)
		w.Draft("half a text")
		time.Sleep(10 * time.Second)
		m := draft.Answer{Key: "k", Text: "whole", Edit: func(context.Context, string) error { return errLost }}
		if _, done, err := w.drafts.Finish(t.Context(), here, m); !done || err == nil {
			t.Fatalf("got %v, %v, want an unknown outcome", done, err)
		}
		time.Sleep(time.Hour)
		w.mu.Lock()
		w.slow = 3 * time.Second
		w.mu.Unlock()
		next := w.newDrafts(func(f func(context.Context)) bool { go f(t.Context()); return true })
		next.ClearSoon(here)
		time.Sleep(time.Second)
		m.Edit = func(ctx context.Context, id string) error { return w.Edit(ctx, here, id, "whole") }
		if _, done, err := w.drafts.Resume(t.Context(), here, m); done == w.searches || err != nil {
			t.Errorf("got %v, %v, want %v", done, err, !w.searches)
		}
		time.Sleep(time.Hour)
	})
}

// TestWithdrawnAtTheEnd: a draft is deleted even if its driver ends meanwhile, or has ended before.
func TestWithdrawnAtTheEnd(t *testing.T) {
	forEachPlatform(t, func(t *testing.T, w *world) {
		ctx, end := context.WithCancel(t.Context())
		d := w.newDrafts(func(f func(context.Context)) bool {
			if ctx.Err() == nil {
				go f(ctx)
			}
			return ctx.Err() == nil
		})
		w.slow = time.Second
		d.Show("x/1", "first", false)
		d.Show("x/2", "second", false)
		time.Sleep(10 * time.Second)
		d.Withdraw("x/1")
		synctest.Wait()
		end()
		d.Withdraw("x/2")
		time.Sleep(10 * time.Second)
		if got := w.Texts(); len(got) > 0 {
			t.Errorf("%q stayed", got)
		}
	})
}

// TestDraftsOfAPlaceThatComesBack: a process that serves a place again after another process deletes
// the drafts that the other one left.
func TestDraftsOfAPlaceThatComesBack(t *testing.T) {
	forEachPlatform(t, func(t *testing.T, w *world) {
		w.Start(t)
		first := w.drafts
		w.Draft("not finished")
		time.Sleep(10 * time.Second)
		second := w.newDrafts(func(f func(context.Context)) bool { go f(t.Context()); return true })
		second.Begin()
		second.Clear(t.Context(), here)
		second.Show(here, "left", false)
		time.Sleep(10 * time.Second)
		if got := w.Texts(); !slices.Equal(got, []string{"left"}) {
			t.Fatalf("got %q, want only left", got)
		}
		first.Begin()
		w.Draft("grows")
		time.Sleep(10 * time.Second)
		if err := w.Answer(t.Context(), t, &coretest.Parts{}, "whole"); err != nil {
			t.Error(err)
		}
		if got := w.Texts(); !slices.Equal(got, []string{"whole"}) || w.state.String() != "{}" {
			t.Errorf("got %q, notes %s, want only the answer and no notes", got, w.state.String())
		}
	})
}

// TestDraftBeforeItsIDWasNoted: if a process dies between sending a draft and noting its message id, the
// next one deletes that message and no other with the same text.
func TestDraftBeforeItsIDWasNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{platform: &platform{}, searches: true}
		w.Start(t)
		answer := func() {
			t.Helper()
			if err := w.Answer(t.Context(), t, &coretest.Parts{}, "Sure."); err != nil {
				t.Error(err)
			}
		}
		answer()
		w.callBeforePost(func() { w.state.lose(true) })
		w.Draft("Sure.")
		time.Sleep(10 * time.Second)
		w.callBeforePost(nil)
		w.end()
		w.state.lose(false)
		w.Start(t)
		answer()
		w.drafts.Clear(t.Context(), here)
		if w.find("1") < 0 || w.find("2") >= 0 || w.find("3") < 0 || w.state.String() != "{}" {
			t.Errorf("got %+v, notes %s, want messages 1 and 3 and no notes", w.messages, w.state.String())
		}
		w.end()
	})
}

// TestClearSoon: a draft of a former process is deleted at once if its place goes on. Other places, and
// drafts that are still growing, are not affected.
func TestClearSoon(t *testing.T) {
	forEachPlatform(t, func(t *testing.T, w *world) {
		w.Start(t)
		w.Draft("half a text")
		w.drafts.Show("x/2", "another", false)
		time.Sleep(10 * time.Second)
		w.drafts.ClearSoon(here)
		synctest.Wait()
		if got := len(w.Texts()); got != 2 {
			t.Errorf("got %d messages, want both growing drafts", got)
		}
		w.Start(t)
		w.drafts.ClearSoon("x/3")
		w.drafts.ClearSoon(here)
		synctest.Wait()
		if got := w.Texts(); !slices.Equal(got, []string{"another"}) {
			t.Errorf("got %q, want only the draft of the other place", got)
		}
	})
}

// TestDraftThatMayBeTheAnswer: a draft that may have become an answer, which was not tried again, stays
// unless it can be read and has another text. Without a Reader, its note is deleted with the next draft.
func TestDraftThatMayBeTheAnswer(t *testing.T) {
	for _, fault := range []coretest.DraftFault{coretest.DraftLostRequest, coretest.DraftLostReply} {
		forEachPlatform(t, func(t *testing.T, w *world) {
			w.Start(t)
			w.Draft("half a text")
			time.Sleep(10 * time.Second)
			w.Fail(coretest.DraftEdit, fault)
			if err := w.Answer(t.Context(), t, &coretest.Parts{}, "whole"); !errors.Is(err, core.ErrUnknownOutcome) {
				t.Fatalf("got %v, want an unknown outcome", err)
			}
			w.drafts.Clear(t.Context(), here)
			if got := len(w.Texts()); got != 1 {
				t.Errorf("got %d messages while another try is possible, want 1", got)
			}
			time.Sleep(5 * time.Minute)
			w.drafts.Clear(t.Context(), here)
			want := []string{"whole"}
			switch {
			case fault == coretest.DraftLostRequest && w.searches:
				want = nil
			case fault == coretest.DraftLostRequest:
				want = []string{"half a text"}
			}
			if got := w.Texts(); !slices.Equal(got, want) || (w.state.String() == "{}") != w.searches {
				t.Errorf("%s: got %q, want %q; notes %s", fault, got, want, w.state.String())
			}
			w.Draft("the next")
			time.Sleep(10 * time.Second)
			if noted := w.state.String(); strings.Count(noted, "channel") != 1 {
				t.Errorf("notes: got %s, want one", noted)
			}
		})
	}
}

// wantCalls checks the calls since it was last called, and that all calls of Enter have left.
func (w *world) wantCalls(t *testing.T, want ...string) {
	t.Helper()
	if calls, entered := w.takeCalls(); !slices.Equal(calls, want) || entered != 0 {
		t.Errorf("got calls %q, want %q; %d calls of Enter did not leave", calls, want, entered)
	}
}

// TestPace: a draft is shown after a while and then edited at intervals. A text that is complete by
// then is sent in one call.
func TestPace(t *testing.T) {
	forEachPlatform(t, func(t *testing.T, w *world) {
		w.Start(t)
		w.Draft("whole")
		time.Sleep(900 * time.Millisecond)
		if err := w.Answer(t.Context(), t, &coretest.Parts{}, "whole"); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		w.wantCalls(t, "post whole")
		began := time.Now()
		for i := range 30 { // 5.1 s
			w.Draft(fmt.Sprint("text ", i))
			time.Sleep(170 * time.Millisecond)
		}
		if at := w.drafts.Shown(here).Sub(began); at != 5*time.Second {
			t.Errorf("last shown after %s, want 5s", at)
		}
		if !w.drafts.Shown("x/2").IsZero() {
			t.Error("a draft counts as shown in another place")
		}
		time.Sleep(time.Minute)
		w.Draft("text 29")
		time.Sleep(time.Minute)
		w.wantCalls(t, "post text 5", "edit text 17", "edit text 29")
	})
}

// TestNoRoom: while Enter refuses a draft, the draft waits. It is deleted without waiting.
func TestNoRoom(t *testing.T) {
	forEachPlatform(t, func(t *testing.T, w *world) {
		w.Start(t)
		w.setFull(true)
		w.Draft("half")
		time.Sleep(10 * time.Second)
		w.wantCalls(t)
		w.setFull(false)
		time.Sleep(10 * time.Second)
		w.wantCalls(t, "post half")
		w.setFull(true)
		w.Draft("half a text")
		time.Sleep(10 * time.Second)
		w.Draft("")
		time.Sleep(10 * time.Second)
		w.wantCalls(t, "delete 1")
	})
}

// TestNotRunning: a driver that does not run shows no draft. It shows the next text when it runs.
func TestNotRunning(t *testing.T) {
	forEachPlatform(t, func(t *testing.T, w *world) {
		var runs atomic.Bool
		d := w.newDrafts(func(f func(context.Context)) bool {
			if runs.Load() {
				go f(t.Context())
			}
			return runs.Load()
		})
		d.Show(here, "half", false)
		time.Sleep(10 * time.Second)
		runs.Store(true)
		d.Show(here, "half a text", false)
		d.Show(here, "half a text", false)
		time.Sleep(10 * time.Second)
		w.wantCalls(t, "post half a text")
		if _, done, err := d.Finish(t.Context(), here, draft.Answer{Key: "k"}); done || err != nil {
			t.Errorf("Finish: got %v, %v, want false without an error", done, err)
		}
		w.wantCalls(t, "delete 1")
	})
}

// TestNonceIsSentAgain: a draft that may have been sent is sent again with the same nonce to get its id, so
// that it can be deleted or become the answer.
func TestNonceIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{platform: &platform{}, searches: true}
		w.Start(t)
		begin := func() {
			t.Helper()
			w.Fail(coretest.DraftPost, coretest.DraftLostReply)
			w.Draft("half")
			time.Sleep(10 * time.Second)
			w.wantCalls(t, "post half")
		}
		begin()
		w.Draft("")
		time.Sleep(10 * time.Second)
		w.wantCalls(t, "post half", "delete 1")
		begin()
		if err := w.Answer(t.Context(), t, &coretest.Parts{}, "whole"); err != nil {
			t.Error(err)
		}
		w.wantCalls(t, "post half", "edit whole")
		begin()
		time.Sleep(2 * time.Minute)
		for _, text := range []string{"half a", "half a text"} { // the platform has forgotten the nonce
			w.Draft(text)
			time.Sleep(10 * time.Second)
		}
		w.Draft("")
		time.Sleep(10 * time.Second)
		w.wantCalls(t)
		w.drafts.Clear(t.Context(), here)
		w.wantCalls(t, "delete 3")
		if got := w.Texts(); !slices.Equal(got, []string{"whole"}) || w.state.String() != "{}" {
			t.Errorf("got %q, notes %s, want only the answer and no notes", got, w.state.String())
		}
		w.end()
	})
}

// TestDraftAfterAnother: the draft of a crashed process is deleted before another one is shown.
func TestDraftAfterAnother(t *testing.T) {
	forEachPlatform(t, func(t *testing.T, w *world) {
		w.Start(t)
		w.Draft("half a text")
		time.Sleep(10 * time.Second)
		w.Start(t)
		w.Draft("the next")
		time.Sleep(10 * time.Second)
		w.wantCalls(t, "post half a text", "delete 1", "post the next")
		w.Start(t)
		time.Sleep(time.Hour)
		w.wantCalls(t, "delete 2")
	})
}

// TestWithdrawnWhileItIsSent: a draft that is withdrawn while it is sent is deleted afterwards.
func TestWithdrawnWhileItIsSent(t *testing.T) {
	forEachPlatform(t, func(t *testing.T, w *world) {
		w.Start(t)
		w.delayPosts(3 * time.Second)
		w.Draft("half a text")
		time.Sleep(2 * time.Second)
		w.Draft("")
		time.Sleep(10 * time.Second)
		w.wantCalls(t, "post half a text", "delete 1")
		if got := w.Texts(); len(got) != 0 {
			t.Errorf("got %q, want no draft", got)
		}
	})
}

// TestDraftThatNeverArrived: if a process died before its draft arrived, the draft is searched for during
// a while. Then its note is deleted.
func TestDraftThatNeverArrived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{platform: &platform{}, searches: true}
		_, _ = w.send("Sure.", "")
		w.state.data = fmt.Appendf(nil, `{%q:{"channel":%q,"nonce":"n","sum":"x","at":%q}}`, here, here, time.Now().Format(time.RFC3339Nano))
		w.Start(t)
		w.drafts.Clear(t.Context(), here)
		if got := w.Texts(); len(got) != 1 || w.state.String() == "{}" {
			t.Errorf("at first got %q, notes %s, want the other message and the note", got, w.state.String())
		}
		time.Sleep(time.Hour)
		w.drafts.Clear(t.Context(), here)
		if got := w.Texts(); len(got) != 1 || w.state.String() != "{}" {
			t.Errorf("later got %q, notes %s, want the other message and no notes", got, w.state.String())
		}
		w.end()
	})
}

// TestDraftThatArrivesLate: if the draft of a crashed process arrives late, while another process shows
// the same text, the late one is deleted.
func TestDraftThatArrivesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{platform: &platform{}, searches: true}
		left := fmt.Sprintf(`{"channel":%q,"nonce":"n","sum":%q,"at":%q}`, here, fmt.Sprintf("%x", sha256.Sum256([]byte("half"))), time.Now().Format(time.RFC3339Nano))
		w.state.data = []byte(`{"x":` + left + `}`)
		w.Start(t)
		w.Draft("half")
		time.Sleep(10 * time.Second)
		if _, err := w.send("half", "late"); err != nil {
			t.Fatal(err)
		}
		if err := w.Answer(t.Context(), t, &coretest.Parts{}, "whole"); err != nil {
			t.Error(err)
		}
		if got := w.Texts(); !slices.Equal(got, []string{"whole"}) || w.state.String() != "{}" {
			t.Errorf("got %q, notes %s, want only the answer and no notes", got, w.state.String())
		}
		w.wantCalls(t, "post half", "post half", "delete 2", "edit whole")
		w.end()
	})
}

// TestAnswerAfterAnotherDraft: a retry of a part turns its draft into the answer, even after another
// draft was shown.
func TestAnswerAfterAnotherDraft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{platform: &platform{}, searches: true}
		w.Start(t)
		w.Draft("half a text")
		time.Sleep(10 * time.Second)
		w.Fail(coretest.DraftEdit, coretest.DraftLostRequest)
		parts := &coretest.Parts{}
		if err := w.Answer(t.Context(), t, parts, "whole"); !errors.Is(err, core.ErrUnknownOutcome) {
			t.Fatalf("got %v, want an unknown outcome", err)
		}
		w.Draft("another")
		time.Sleep(10 * time.Second)
		if err := w.Answer(t.Context(), t, parts, "whole"); err != nil {
			t.Error(err)
		}
		if got := w.Texts(); !slices.Equal(got, []string{"whole", "another"}) {
			t.Errorf("got %q, want the answer and the other draft", got)
		}
		w.end()
	})
}

// TestTwoNotesOfAPlace: the note of a draft that cannot be deleted is kept when the next draft of its
// place is noted.
func TestTwoNotesOfAPlace(t *testing.T) {
	forEachPlatform(t, func(t *testing.T, w *world) {
		w.state.data = []byte(`{"x/1 1":{"channel":"x/1","id":"1"}}`)
		d := w.newDrafts(func(f func(context.Context)) bool { go f(t.Context()); return true })
		_, _ = w.send("half a text", "")
		w.takeCalls()
		w.failDeletes(true)
		d.Show(here, "the next", false)
		time.Sleep(10 * time.Second)
		w.failDeletes(false)
		w.Start(t)
		w.drafts.Clear(t.Context(), here)
		if got := w.Texts(); len(got) != 0 || w.state.String() != "{}" {
			t.Errorf("got %q, notes %s, want both drafts and notes deleted", got, w.state.String())
		}
	})
}
