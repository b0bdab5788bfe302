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
}

func (p *platform) Enter(context.Context, string, string) (func(), bool) { return func() {}, true }

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

func (p *platform) Post(_ context.Context, m draft.Post) (string, error) {
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
	if p.refuses {
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
	if s.noPut == nil {
		s.data = data
	}
	return s.noPut
}

func (s *state) breaks(what *error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*what = err
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
	w.end, w.crew, w.drafts = cancel, crew, w.made(func(f func(context.Context)) bool {
		crew.Go(func() { f(ctx) })
		return true
	})
	crew.Go(func() { w.drafts.ClearLater(ctx) })
	synctest.Wait()
}

func (w *world) made(start func(func(context.Context)) bool) *draft.Drafts {
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
	return core.SendAll(len(list), func(i int) error {
		return parts.Send(ctx, i+1, core.Sent{Text: list[i]}, func(ctx context.Context, key string) (string, error) {
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
	})
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
		next := w.made(func(f func(context.Context)) bool { go f(t.Context()); return true })
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

// The process dies between the request and the note of the message's id: the next one
// finds the message, and no other that says the same.
func TestDraftBeforeItsIDWasNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{platform: &platform{}, searches: true}
		for range 3 {
			_, _ = w.send("half a text", "")
		}
		w.state.data = fmt.Appendf(nil, `{%q:{"channel":%q,"sum":"%x","at":%q,"after":"1"}}`, here, here,
			sha256.Sum256([]byte("half a text")), time.Now().Format(time.RFC3339Nano))
		w.Start(t)
		w.drafts.Clear(t.Context(), here)
		w.drafts.Clear(t.Context(), here)
		if w.find("1") < 0 || w.find("2") >= 0 || w.find("3") < 0 || w.state.String() != "{}" {
			t.Errorf("shown: %+v, noted: %s", w.messages, w.state.String())
		}
		w.end()
		w.crew.Wait()
	})
}
