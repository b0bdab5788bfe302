package turn_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/coretest"
	"synthbot/core/turn"
	"synthbot/memory"
)

var update = flag.Bool("update", false, "write testdata/version.db.gz and testdata/version.json: only with the code of an earlier version")

// versionTime is the time at which the turns of testdata/version.db.gz were interrupted.
var versionTime = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// interruption is a turn during which the process dies.
type interruption struct {
	place  core.Path
	events []core.Event // all but the last are answered before the death
	script []any        // replies of the model before the death
	dies   func(*core.Batch) bool
	after  bool     // whether the last commit reaches the disk
	then   []any    // replies of the model after the death
	want   []string // the history of the place at the end
}

// interruptions covers each kind of record that a journal holds.
func interruptions() map[string]interruption {
	in := func(name, text string) []core.Event {
		e := said(name, "jay", text)
		e.Message.Path, e.Message.Time = core.MustPath("room/"+name), versionTime
		return []core.Event{e}
	}
	command := func(name, what string) []core.Event {
		e := called(name, "jay", what)
		e.Message.Path, e.Message.Time = core.MustPath("room/"+name), versionTime
		return []core.Event{e}
	}
	closes := func(b *core.Batch) bool { return len(b.Answered)+len(b.Settled) > 0 }
	writes := func(round, step, part uint16) func(b *core.Batch) bool {
		return func(b *core.Batch) bool {
			return slices.ContainsFunc(b.Journal, func(r core.Record) bool {
				return r.Key.Round == round && r.Key.Step == step && r.Key.Part == part
			})
		}
	}
	const saves = `{"actions":[{"type":"save"}]}`
	all := map[string]interruption{
		"begun":    {events: in("begun", "hi"), script: []any{plan("Hello.")}, dies: writes(1, 0, 0), then: []any{plan("Hello.")}, want: []string{"hi", "Hello."}},
		"planned":  {events: in("planned", "look"), script: []any{`{"actions":[{"type":"look"}]}`, plan("A cat.")}, dies: writes(2, 0, 0), then: []any{plan("A cat.")}, want: []string{"look", "A cat."}},
		"parts":    {events: in("parts", "hi"), script: []any{plan("one\ntwo\nthree")}, dies: writes(1, 1, 2), after: true, want: []string{"hi", "one", "two", "three"}},
		"sent":     {events: in("sent", "hi"), script: []any{plan("Sent before.")}, dies: closes, want: []string{"hi", "Sent before."}},
		"question": {events: in("question", "pay Ann"), script: []any{pays}, dies: closes, want: []string{"pay Ann", "As you wish.", "Pay somebody", "to: Ann (yes/no)"}},
		"decided":  {events: append(in("decided", "pay Ann"), in("decided", "yes")...), script: []any{pays, plan("Paid.")}, dies: writes(1, 0, 0), then: []any{plan("Paid.")}, want: []string{"pay Ann", "As you wish.", "Pay somebody", "to: Ann (yes/no)", "yes", "✓ Done.", "Paid.", "A receipt."}},
		"silent":   {events: in("silent", "save"), script: []any{saves, saves, saves}, dies: closes, want: []string{"save", "Done."}},
		"once":     {events: command("once", "once"), dies: writes(9, 1, 0), after: true, want: []string{"/once ", "I was stopped while I did that, and cannot tell whether it was done. Please check before you try again."}},
		"files":    {events: command("files", "safefiles"), dies: closes, want: []string{"/safefiles ", "", "Here."}},
	}
	for name, i := range all {
		i.place = core.MustPath("room/" + name)
		i.events[len(i.events)-1].Message.ID += "-last"
		all[name] = i
	}
	return all
}

// platform is a room that remembers the texts for the idempotency keys of all versions.
type platform struct {
	*coretest.Room
	t    *testing.T
	mu   sync.Mutex
	keys map[string]string
}

// Actions implements core.Plugin.
func (p *platform) Actions() []core.Action {
	actions := p.Room.Actions()
	do := actions[0].Do
	actions[0].Do = func(ctx context.Context, c core.Call) (core.Result, error) {
		c.Deliveries = keyed{c.Deliveries, p}
		return do(ctx, c)
	}
	return actions
}

// SendFile implements core.FileSender.
func (p *platform) SendFile(ctx context.Context, parts core.Deliveries, n int, what core.Sent, f core.Upload) error {
	return keyed{parts, p}.Send(ctx, n, what, func(context.Context, string) (string, error) { return "file-" + f.Name, nil })
}

// keyed records the keys of one step.
type keyed struct {
	core.Deliveries
	on *platform
}

// Send implements core.Deliveries. It does not send again what was sent under the same key.
func (k keyed) Send(
	ctx context.Context, n int, what core.Sent, do func(context.Context, string) (string, error),
) error {
	return k.Deliveries.Send(ctx, n, what, func(ctx context.Context, key string) (string, error) {
		k.on.mu.Lock()
		text := what.Path.String() + " " + what.Text
		before, known := k.on.keys[key]
		again := slices.Contains(slices.Collect(maps.Values(k.on.keys)), text)
		k.on.keys[key] = text
		k.on.mu.Unlock()
		switch {
		case known && before != text:
			k.on.t.Errorf("the key of %q was reused for %q", before, text)
		case known:
			return "sent-" + key, nil
		case again:
			k.on.t.Errorf("%q was sent again under another key", text)
		}
		_, err := do(ctx, key)
		return "sent-" + key, err
	})
}

// resume starts a bot for one place with actions and commands.
func (p *platform) resume(s core.Store, place core.Path, script []any, ran *[]string) *bot {
	notes := func(name string, output []byte) func(context.Context, core.Call) (core.Result, error) {
		return func(context.Context, core.Call) (core.Result, error) {
			*ran = append(*ran, name)
			return core.Result{Output: output}, nil
		}
	}
	tools := coretest.NewPlugin("tools",
		core.Action{Name: "look", Permission: core.PermissionEveryone, Do: notes("look", []byte(`"a cat"`))},
		core.Action{Name: "save", Permission: core.PermissionEveryone, Do: notes("save", nil)},
		core.Action{Name: "pay", Brief: "Pay somebody", Permission: core.PermissionEveryone, Confirm: true, Do: func(ctx context.Context, c core.Call) (core.Result, error) {
			*ran = append(*ran, "pay")
			send := func(context.Context, string) (string, error) { return "", nil }
			return core.Result{Output: []byte(`"paid"`)}, keyed{c.Deliveries, p}.Send(ctx, 1, core.Sent{Path: place, Text: "A receipt."}, send)
		}})
	clock := func() time.Time { return versionTime }
	return start(p.t, s, p.Room, coretest.NewAsker(append(script, plan("Nobody asked."))...), func(o *turn.Options) {
		o.Catalogue = catalogueOf(p.t, p, tools)
		o.Runtime = action.NewRuntime(action.Options{Clock: clock})
		o.Clock = clock
		o.Places.Reaches = func(path core.Path) bool { return path == place }
		o.Places.Carrier = func(core.Path) core.FileSender { return p }
		o.Plugins.Commands = registry(p.t, map[string]commandFunc{
			"once": func(context.Context, call) (string, error) { *ran = append(*ran, "once"); return "Once.", nil },
			"safefiles": func(_ context.Context, c call) (string, error) {
				c.Attach(core.Upload{Name: "a"})
				return "Here.", nil
			},
		})
	})
}

// TestVersionBefore: turns that the previous version left unfinished are resumed.
func TestVersionBefore(t *testing.T) {
	if *update {
		interruptAll(t)
		return
	}
	dir := t.TempDir()
	unpack(t, filepath.Join("testdata", "version.db.gz"), filepath.Join(dir, memory.FileName))
	raw, err := os.ReadFile(filepath.Join("testdata", "version.json"))
	if err != nil {
		t.Fatal(err)
	}
	p := &platform{Room: coretest.NewRoom("room"), t: t}
	if err := json.Unmarshal(raw, &p.keys); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	defer s.Close()
	for name, i := range interruptions() {
		var ran []string
		b := p.resume(s, i.place, i.then, &ran)
		b.ended(1)
		b.stop()
		if len(ran) > 0 || len(b.asker.Asked()) != len(i.then) {
			t.Errorf("%s: %q ran again or the model was asked %d times, want %d", name, ran, len(b.asker.Asked()), len(i.then))
		}
		if got := b.logged(i.place); !slices.Equal(got, i.want) {
			t.Errorf("%s: the history holds %q, want %q", name, got, i.want)
		}
	}
	var ran []string // the question still waits
	asked := interruptions()["question"].place
	b := p.resume(s, asked, nil, &ran)
	yes := said("yes", "jay", "yes")
	yes.Message.Path, yes.Message.Time = asked, versionTime
	b.receive(yes)
	b.ended(1)
	if !slices.Equal(ran, []string{"pay"}) {
		t.Errorf("unexpected actions after the confirmation: %q", ran)
	}
}

// interruptAll writes the database that TestVersionBefore opens.
func interruptAll(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	p := &platform{Room: coretest.NewRoom("room"), t: t, keys: make(map[string]string)}
	for _, i := range interruptions() {
		var ran []string
		dead := make(chan struct{})
		m := &dying{Store: s, dead: dead}
		b := p.resume(m, i.place, i.script, &ran)
		for n, e := range i.events {
			if n == len(i.events)-1 {
				m.dies, m.after = i.dies, i.after
			}
			b.receive(e)
			if n < len(i.events)-1 {
				b.ended(1)
			}
		}
		<-dead
		b.kill()
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, memory.FileName))
	if err != nil {
		t.Fatal(err)
	}
	var packed strings.Builder
	w := gzip.NewWriter(&packed)
	_, err = w.Write(raw)
	keys, failed := json.MarshalIndent(p.keys, "", "\t")
	err = errors.Join(err, failed, w.Close(), os.MkdirAll("testdata", 0o755),
		os.WriteFile("testdata/version.db.gz", []byte(packed.String()), 0o644), os.WriteFile("testdata/version.json", append(keys, '\n'), 0o644))
	if err != nil {
		t.Fatal(err)
	}
}

// dying is a store whose process dies at a commit.
type dying struct {
	core.Store
	mu    sync.Mutex
	dies  func(*core.Batch) bool // nil: never
	after bool
	over  bool
	dead  chan struct{}
}

func (d *dying) Commit(ctx context.Context, b *core.Batch) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.over:
		return errDead
	case d.dies == nil || !d.dies(b):
		return d.Store.Commit(ctx, b)
	}
	d.over = true
	close(d.dead)
	if d.after {
		if err := d.Store.Commit(ctx, b); err != nil {
			return err
		}
	}
	return errDead
}

// unpack writes the content of a compressed file.
func unpack(t *testing.T, from, to string) {
	t.Helper()
	f, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}
