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
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/draft"
)

// Errors of the platform.
var (
	errLimited = errors.New("limited")
	errRefused = errors.New("refused")
	errLost    = errors.New("lost")
)

// message is one of the bot's own.
type message struct {
	id, nonce, text string
	sent            time.Time
}

// platform is a place with messages.
type platform struct {
	mu       sync.Mutex
	messages []message
	count    int
	calls    []string
	faults   map[coretest.DraftRequest][]coretest.DraftFault
	refuses  bool // all requests
	full     bool // there is no room
	kept     bool // nothing can be deleted
	pause    time.Duration
	entered  int
	onPost   func() // before a message is sent; nil: nothing
}

// before sets what happens before a message is sent.
func (p *platform) before(f func()) {
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

// fill sets whether there is no room.
func (p *platform) fill(full bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.full = full
}

// made returns the calls since the last time, and how many have entered and not left.
func (p *platform) made() (calls []string, entered int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	calls, p.calls = p.calls, nil
	return calls, p.entered
}

func (p *platform) Fit(text string) string { return text[:min(len(text), 2000)] }

// fault takes the next fault of a request; after reports one that comes when the
// request was carried out.
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

// keep sets whether nothing can be deleted.
func (p *platform) keep(all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = all
}

// slow sets how long the messages of drafts take.
func (p *platform) slow(pause time.Duration) {
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

func (p *platform) Delete(_ context.Context, _, id string) error {
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

// state keeps notes.
type state struct {
	mu           sync.Mutex
	data         []byte
	noGet, noPut error
	lost         bool // what is written is lost, as by a dead process
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

func (s *state) breaks(what *error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*what = err
}

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

// world is a place of the platform, and the processes that speak there.
type world struct {
	*platform
	searches bool
	state    state
	drafts   *draft.Drafts
	end      context.CancelFunc
	crew     *sync.WaitGroup
}

const here = "x/1"

func (w *world) Start(t testing.TB) {
	if w.end != nil {
		w.end()
		w.crew.Wait()
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	crew := &sync.WaitGroup{}
	w.end, w.crew, w.drafts = cancel, crew, w.with(func(f func(context.Context)) bool {
		crew.Go(func() { f(ctx) })
		return true
	})
	crew.Go(func() { w.drafts.ClearLater(ctx) })
	synctest.Wait()
}

func (w *world) with(start func(func(context.Context)) bool) *draft.Drafts {
	o := draft.Options{
		Platform: w.platform, State: &w.state, Key: "drafts", Log: slog.New(slog.DiscardHandler), Start: start,
		First: time.Second, Every: func(string) time.Duration { return 2 * time.Second }, Left: 5 * time.Minute,
	}
	if w.searches {
		o.Reader = reader{w.platform}
	}
	return draft.New(o)
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

// each runs a test with a platform that can be searched, and with one that cannot.
func each(t *testing.T, test func(*testing.T, *world)) {
	for name, searches := range map[string]bool{"search": true, "no search": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{platform: &platform{}, searches: searches}
				test(t, w)
				if w.end != nil {
					w.end()
					w.crew.Wait()
				}
			})
		})
	}
}

func TestDrafts(t *testing.T) {
	coretest.TestDrafts(t, func(t *testing.T, test func(*testing.T, coretest.DraftWorld)) {
		each(t, func(t *testing.T, w *world) { test(t, w) })
	})
}

// Notes are written also if the request that they belong to was cancelled, and old
// ones are read.
func TestNotesOfOld(t *testing.T) {
	for name, old := range map[string]string{
		"a number": `{"x/1":1}`, "an id as a number": `{"x/1":{"id":1}}`, "an id": `{"x/1":{"id":"1"}}`,
		"a key that is the id": `{"1":{"channel":"x/1","id":"1"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				w.state.data = []byte(strings.TrimSuffix(old, "}") + `,"x/2":{"id":"2"}}`)
				_, _ = w.send("half a text", "")
				_, _ = w.send("whole", "")
				w.Start(t)
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				w.drafts.Clear(ended, here)
				if got := w.Texts(); !slices.Equal(got, []string{"whole"}) {
					t.Errorf("shown: %q", got)
				}
				if got := w.state.String(); got != `{"x/2 2":{"channel":"x/2","id":"2"}}` {
					t.Errorf("noted: %s", got)
				}
			})
		})
	}
}

// While the notes cannot be read, none is written: the others would be lost.
func TestNotesThatCannotBeRead(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		const other = `{"x/2 2":{"channel":"x/2","id":"2"}}`
		w.state.data = []byte(other)
		w.Start(t)
		w.state.breaks(&w.state.noGet, errors.New("broken"))
		w.Draft("half a text")
		time.Sleep(10 * time.Second)
		if err := w.Answer(t.Context(), t, &coretest.Parts{}, "whole"); err != nil {
			t.Error(err)
		}
		w.state.breaks(&w.state.noGet, nil)
		if got := w.Texts(); !slices.Equal(got, []string{"whole"}) || w.state.String() != other {
			t.Errorf("shown: %q, noted: %s", got, w.state.String())
		}
	})
}

// A draft that cannot be noted to become the answer is deleted, and the answer is sent.
func TestNotesThatCannotBeWritten(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.Start(t)
		w.Draft("Sure")
		time.Sleep(10 * time.Second)
		w.state.breaks(&w.state.noPut, core.ErrFull)
		if err := w.Answer(t.Context(), t, &coretest.Parts{}, "Sure."); err != nil {
			t.Error(err)
		}
		w.state.breaks(&w.state.noPut, nil)
		if !slices.Contains(w.calls, "delete 1") {
			t.Errorf("calls: %q", w.calls)
		}
		w.Start(t)
		time.Sleep(time.Hour)
		if got := w.Texts(); !slices.Equal(got, []string{"Sure."}) {
			t.Errorf("shown: %q", got)
		}
	})
}

// What cannot be noted is not shown, or only until it was tried to.
func TestNoDraftWithoutANote(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.Start(t)
		w.state.breaks(&w.state.noPut, core.ErrFull)
		for _, text := range []string{"one", "one two", "one two three"} {
			w.Draft(text)
			time.Sleep(10 * time.Second)
		}
		calls := []string{"post one", "delete 1"}
		if w.searches {
			calls = nil
		}
		if len(w.Texts()) > 0 {
			t.Errorf("shown: %q", w.Texts())
		}
		w.wantCalls(t, calls...)
		w.state.breaks(&w.state.noPut, nil)
		if err := w.Answer(t.Context(), t, &coretest.Parts{}, "whole"); err != nil {
			t.Error(err)
		}
		if got := w.Texts(); !slices.Equal(got, []string{"whole"}) {
			t.Errorf("shown: %q", got)
		}
	})
}

// What the platform refuses is not tried again.
func TestDraftRefused(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.Start(t)
		w.refuse(true)
		for i := range 20 {
			w.Draft(strings.Repeat("word ", i+1))
			time.Sleep(3 * time.Second)
		}
		if len(w.calls) != 1 || strings.Contains(w.state.String(), here) {
			t.Errorf("calls: %q, noted: %s", w.calls, w.state.String())
		}
	})
}

// A draft that cannot be deleted is deleted later.
func TestDraftNotDeleted(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.Start(t)
		w.Draft("half a text")
		time.Sleep(10 * time.Second)
		w.refuse(true)
		w.Draft("")
		time.Sleep(10 * time.Second)
		w.refuse(false)
		if got := w.Texts(); len(got) != 1 {
			t.Fatalf("shown: %q", got)
		}
		if err := w.Answer(t.Context(), t, &coretest.Parts{}, "whole"); err != nil {
			t.Error(err)
		}
		if got := w.Texts(); !slices.Equal(got, []string{"whole"}) || w.state.String() != "{}" {
			t.Errorf("shown: %q, noted: %s", got, w.state.String())
		}
	})
}

// What another process of the same bot finishes or begins meanwhile is not left over.
func TestDraftOfAnotherProcess(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.Start(t)
		w.Draft("half a text")
		time.Sleep(10 * time.Second)
		old := w.drafts
		next := w.with(func(f func(context.Context)) bool { go f(t.Context()); return true })
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
			t.Errorf("shown: %q", got)
		}
	})
}

// A process that spoke in a place before another one did deletes what that one left.
func TestDraftsOfAPlaceThatComesBack(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.Start(t)
		first := w.drafts
		w.Draft("not finished")
		time.Sleep(10 * time.Second)
		second := w.with(func(f func(context.Context)) bool { go f(t.Context()); return true })
		second.Begin()
		second.Clear(t.Context(), here)
		second.Show(here, "left", false)
		time.Sleep(10 * time.Second)
		if got := w.Texts(); !slices.Equal(got, []string{"left"}) {
			t.Fatalf("shown: %q", got)
		}
		first.Begin()
		w.Draft("grows")
		time.Sleep(10 * time.Second)
		if err := w.Answer(t.Context(), t, &coretest.Parts{}, "whole"); err != nil {
			t.Error(err)
		}
		if got := w.Texts(); !slices.Equal(got, []string{"whole"}) || w.state.String() != "{}" {
			t.Errorf("shown: %q, noted: %s", got, w.state.String())
		}
	})
}

// The process dies between the request and the note of the message's id: the next one
// finds the message, and no other that says the same.
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
		w.before(func() { w.state.lose(true) })
		w.Draft("Sure.")
		time.Sleep(10 * time.Second)
		w.before(nil)
		w.end()
		w.crew.Wait()
		w.state.lose(false)
		w.Start(t)
		answer()
		w.drafts.Clear(t.Context(), here)
		if w.find("1") < 0 || w.find("2") >= 0 || w.find("3") < 0 || w.state.String() != "{}" {
			t.Errorf("shown: %+v, noted: %s", w.messages, w.state.String())
		}
		w.end()
		w.crew.Wait()
	})
}

// What an earlier process left is deleted at once if the place goes on, and there only.
func TestClearSoon(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.Start(t)
		w.Draft("half a text")
		w.drafts.Show("x/2", "another", false)
		time.Sleep(10 * time.Second)
		w.drafts.ClearSoon(here)
		synctest.Wait()
		if got := len(w.Texts()); got != 2 {
			t.Errorf("%d messages while they are written", got)
		}
		w.Start(t)
		w.drafts.ClearSoon("x/3")
		w.drafts.ClearSoon(here)
		synctest.Wait()
		if got := w.Texts(); !slices.Equal(got, []string{"another"}) {
			t.Errorf("shown: %q", got)
		}
	})
}

// A draft that was to become an answer, of which no other try was made, stays unless it
// can be read and says something else. Without a Reader its note goes with the next draft.
func TestDraftThatMayBeTheAnswer(t *testing.T) {
	for _, fault := range []coretest.DraftFault{coretest.DraftLostRequest, coretest.DraftLostReply} {
		each(t, func(t *testing.T, w *world) {
			w.Start(t)
			w.Draft("half a text")
			time.Sleep(10 * time.Second)
			w.Fail(coretest.DraftEdit, fault)
			if err := w.Answer(t.Context(), t, &coretest.Parts{}, "whole"); !errors.Is(err, core.ErrUnknownOutcome) {
				t.Fatal(err)
			}
			w.drafts.Clear(t.Context(), here)
			if got := len(w.Texts()); got != 1 {
				t.Errorf("%d messages while another try may come", got)
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
				t.Errorf("%s: shown: %q, want %q, noted: %s", fault, got, want, w.state.String())
			}
			w.Draft("the next")
			time.Sleep(10 * time.Second)
			if noted := w.state.String(); strings.Count(noted, "channel") != 1 {
				t.Errorf("noted: %s", noted)
			}
		})
	}
}

// wantCalls checks the calls since the last time. All room is given back.
func (w *world) wantCalls(t *testing.T, want ...string) {
	t.Helper()
	if calls, entered := w.made(); !slices.Equal(calls, want) || entered != 0 {
		t.Errorf("calls: %q, want %q; %d did not leave", calls, want, entered)
	}
}

// A text shows after a while, and then not too often. What is whole by then is one call.
func TestPace(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
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
			t.Errorf("shown last after %s", at)
		}
		if !w.drafts.Shown("x/2").IsZero() {
			t.Error("shown elsewhere")
		}
		time.Sleep(time.Minute)
		w.Draft("text 29")
		time.Sleep(time.Minute)
		w.wantCalls(t, "post text 5", "edit text 17", "edit text 29")
	})
}

// While there is no room, a draft waits, and shows its newest text but one.
func TestNoRoom(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.Start(t)
		w.fill(true)
		w.Draft("half")
		time.Sleep(10 * time.Second)
		w.wantCalls(t)
		w.fill(false)
		time.Sleep(10 * time.Second)
		w.wantCalls(t, "post half")
		w.fill(true)
		w.Draft("half a text")
		time.Sleep(10 * time.Second)
		w.Draft("")
		time.Sleep(10 * time.Second)
		w.wantCalls(t, "delete 1")
	})
}

// A driver that does not run shows nothing; a later text does once it runs.
func TestNotRunning(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		runs := false
		d := w.with(func(f func(context.Context)) bool {
			if runs {
				go f(t.Context())
			}
			return runs
		})
		d.Show(here, "half", false)
		runs = true
		d.Show(here, "half a text", false)
		d.Show(here, "half a text", false)
		time.Sleep(10 * time.Second)
		w.wantCalls(t, "post half a text")
		if _, done, err := d.Finish(t.Context(), here, draft.Answer{Key: "k"}); done || err != nil {
			t.Errorf("%v, %v", done, err)
		}
		w.wantCalls(t, "delete 1")
	})
}

// A message that may exist is asked for again, under the same nonce, to be deleted or to
// become the answer.
func TestAskedAgain(t *testing.T) {
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
		for _, text := range []string{"half a", "half a text"} { // nobody can know any more
			w.Draft(text)
			time.Sleep(10 * time.Second)
		}
		w.Draft("")
		time.Sleep(10 * time.Second)
		w.wantCalls(t)
		w.drafts.Clear(t.Context(), here)
		w.wantCalls(t, "delete 3")
		if got := w.Texts(); !slices.Equal(got, []string{"whole"}) || w.state.String() != "{}" {
			t.Errorf("shown: %q, noted: %s", got, w.state.String())
		}
		w.end()
		w.crew.Wait()
	})
}

// A draft that a dead process left is deleted before another one shows.
func TestDraftAfterAnother(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
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

// A draft whose message is just being sent is deleted once it exists.
func TestWithdrawnWhileItIsSent(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.Start(t)
		w.slow(3 * time.Second)
		w.Draft("half a text")
		time.Sleep(2 * time.Second)
		w.Draft("")
		time.Sleep(10 * time.Second)
		w.wantCalls(t, "post half a text", "delete 1")
		if got := w.Texts(); len(got) != 0 {
			t.Errorf("shown: %q", got)
		}
	})
}

// The process dies before its request arrives: it is searched for again for a while, and the note goes.
func TestDraftThatNeverArrived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{platform: &platform{}, searches: true}
		_, _ = w.send("Sure.", "")
		w.state.data = fmt.Appendf(nil, `{%q:{"channel":%q,"nonce":"n","sum":"x","at":%q}}`, here, here, time.Now().Format(time.RFC3339Nano))
		w.Start(t)
		w.drafts.Clear(t.Context(), here)
		if got := w.Texts(); len(got) != 1 || w.state.String() == "{}" {
			t.Errorf("shown: %q, noted: %s", got, w.state.String())
		}
		time.Sleep(time.Hour)
		w.drafts.Clear(t.Context(), here)
		if got := w.Texts(); len(got) != 1 || w.state.String() != "{}" {
			t.Errorf("at last shown: %q, noted: %s", got, w.state.String())
		}
		w.end()
		w.crew.Wait()
	})
}

// The request of a dead process arrives late, while another one shows the same: what is late is deleted,
// and not what the other one shows.
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
			t.Errorf("shown: %q, noted: %s", got, w.state.String())
		}
		w.wantCalls(t, "post half", "post half", "delete 2", "edit whole")
		w.end()
		w.crew.Wait()
	})
}

// A part is tried again after another draft was shown: what may be the answer becomes it.
func TestAnswerAfterAnotherDraft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{platform: &platform{}, searches: true}
		w.Start(t)
		w.Draft("half a text")
		time.Sleep(10 * time.Second)
		w.Fail(coretest.DraftEdit, coretest.DraftLostRequest)
		parts := &coretest.Parts{}
		if err := w.Answer(t.Context(), t, parts, "whole"); !errors.Is(err, core.ErrUnknownOutcome) {
			t.Fatal(err)
		}
		w.Draft("another")
		time.Sleep(10 * time.Second)
		if err := w.Answer(t.Context(), t, parts, "whole"); err != nil {
			t.Error(err)
		}
		if got := w.Texts(); !slices.Equal(got, []string{"whole", "another"}) {
			t.Errorf("shown: %q", got)
		}
		w.end()
		w.crew.Wait()
	})
}

// The note of a draft that cannot be deleted outlives the next draft of its place.
func TestTwoNotesOfAPlace(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.state.data = []byte(`{"x/1 1":{"channel":"x/1","id":"1"}}`)
		d := w.with(func(f func(context.Context)) bool { go f(t.Context()); return true })
		_, _ = w.send("half a text", "")
		w.made()
		w.keep(true)
		d.Show(here, "the next", false)
		time.Sleep(10 * time.Second)
		w.keep(false)
		w.Start(t)
		w.drafts.Clear(t.Context(), here)
		if got := w.Texts(); len(got) != 0 || w.state.String() != "{}" {
			t.Errorf("shown: %q, noted: %s", got, w.state.String())
		}
	})
}
