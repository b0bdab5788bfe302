package turn_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/command"
	"synthbot/core/coretest"
	"synthbot/core/llm"
	"synthbot/core/turn"
	"synthbot/memory"
)

// TestFiveAreNotMany: five waiting messages of several users are answered one by one.
func TestFiveAreNotMany(t *testing.T) {
	b := fresh(t, plan("ok"))
	var five []core.Event
	for i := range 5 {
		five = append(five, said(fmt.Sprint(i), []string{"ann", "jay"}[i%2], "hi"))
	}
	b.receive(five...)
	for i, end := range b.ended(5) {
		if len(end.Messages) != 1 {
			t.Errorf("turn %d answers %q, want one message", i, end.Messages)
		}
	}
}

// TestInterruptedTurnAnswersTheSame: after a restart an interrupted turn answers the messages that
// it had chosen, without those that arrived later.
func TestInterruptedTurnAnswersTheSame(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	room := coretest.NewRoom("room")
	b := start(t, s, room, coretest.NewAsker(plan("ok")))
	b.asker.Hold = make(chan struct{})
	b.receive(said("1", "jay", "one"), said("2", "jay", "two"))
	b.thinks(1)
	b.receive(said("3", "jay", "three"))
	b.kill()
	b = start(t, s, room, coretest.NewAsker(plan("ok")))
	if ends := b.ended(2); !slices.Equal(ends[0].Messages, []string{"1", "2"}) || !slices.Equal(ends[1].Messages, []string{"3"}) {
		t.Errorf("the turns answer %+v, want 1 and 2, then 3", ends)
	}
}

// TestSuspectsAreTriedAlone: turns that the end of the process interrupted twice are retried one at
// a time.
func TestSuspectsAreTriedAlone(t *testing.T) {
	for attempts, together := range map[int]int{1: 3, 2: 1} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, t.TempDir())
			defer s.Close()
			var batch core.Batch
			for i := range 3 {
				e := said("1", "jay", "hi")
				e.Message.Path = core.MustPath(fmt.Sprint("room/", i))
				batch.Append = append(batch.Append, core.Entry{Event: e, Due: true})
				batch.Journal = append(batch.Journal, core.Record{
					Key:      core.Key{Turn: core.TurnID{Path: e.Message.Path, Seq: 1}},
					Progress: core.ProgressStarted, Time: time.Now(),
					Data: fmt.Appendf(nil, `{"last":1,"attempts":%d}`, attempts),
				})
			}
			if err := s.Commit(t.Context(), &batch); err != nil {
				t.Fatal(err)
			}
			asker := coretest.NewAsker(plan("ok"))
			asker.Hold = make(chan struct{})
			b := start(t, s, coretest.NewRoom("room"), asker)
			defer b.stop()
			synctest.Wait()
			if n := len(asker.Asked()); n != together {
				t.Errorf("after %d attempts %d turns run at a time, want %d", attempts, n, together)
			}
			close(asker.Hold)
			b.ended(3)
		})
	}
}

// TestApologyIsNotLost: an abandoned turn sends its apology once the platform is reachable again.
func TestApologyIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		defer s.Close()
		room := coretest.NewRoom("room")
		away := 2
		room.Fail = func(string) error {
			if away--; away >= 0 {
				return core.ErrAway
			}
			return nil
		}
		b := start(t, s, room, coretest.NewAsker(plan("never")), func(o *turn.Options) {
			persona := o.Prompt.Persona
			o.Prompt.Persona = func(p core.Path, user string) core.Persona {
				if user == "poison" {
					panic("poison")
				}
				return persona(p, user)
			}
		})
		defer b.stop()
		b.receive(said("1", "poison", "boom"))
		time.Sleep(time.Hour)
		if ends := b.ended(1); !ends[0].Aside || len(room.Texts()) != 1 {
			t.Errorf("the turn ended as %+v and the room holds %q, want an abandoned turn and one apology", ends, room.Texts())
		}
	})
}

// TestNoApologyForAnAnswer: if crashes interrupt a turn too often, the bot does not say that it
// lost the message if part of the answer may have arrived.
func TestNoApologyForAnAnswer(t *testing.T) {
	for part, want := range map[uint16]string{
		0: "Sorry, I lost my thread there.", 1: "I lost the connection while I was answering:",
	} {
		s := open(t, t.TempDir())
		defer s.Close()
		e := said("1", "jay", "hi")
		id := core.TurnID{Path: e.Message.Path, Seq: 1}
		record := func(key core.Key, p core.Progress, data string) core.Record {
			key.Turn = id
			return core.Record{Key: key, Progress: p, Time: time.Now(), Data: json.RawMessage(data)}
		}
		err := s.Commit(t.Context(), &core.Batch{
			Append: []core.Entry{{Event: e, Due: true}},
			Journal: []core.Record{
				record(core.Key{}, core.ProgressStarted, `{"last":1,"attempts":5}`),
				record(core.Key{Round: 1, Step: 1, Part: part}, core.ProgressUnknown, `{"sends":3}`),
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("ok")))
		if end := b.ended(1)[0]; !end.Aside {
			t.Errorf("the turn ended as %+v, want it set aside", end)
		}
		if texts := b.room.Texts(); len(texts) != 1 || !strings.HasPrefix(texts[0], want) {
			t.Errorf("part %d: the room holds %q, want %q", part, texts, want)
		}
		b.stop()
	}
}

// TestStopsAreNobodysFault: clean shutdowns do not count as failed attempts, however many interrupt
// a turn.
func TestStopsAreNobodysFault(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	room := coretest.NewRoom("room")
	asker := coretest.NewAsker(plan("ok"))
	asker.Hold = make(chan struct{})
	b := start(t, s, room, asker)
	b.receive(said("1", "jay", "hi"))
	for range 8 {
		b.thinks(1)
		b.kill()
		b = start(t, s, room, asker)
	}
	close(asker.Hold)
	b.ended(1)
	b.holds("ok")
}

// TestFailedWritesAreNobodysFault: write errors do not count as failed attempts; the turn is
// answered once its records can be written.
func TestFailedWritesAreNobodysFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &faulty{Store: open(t, t.TempDir())}
		defer s.Close()
		b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("ok")))
		defer b.stop()
		s.left.Store(20)
		b.receive(said("1", "jay", "hi"))
		time.Sleep(time.Hour)
		b.ended(1)
		b.holds("ok")
	})
}

// faulty is a store that fails the next commits of steps, as many as left says.
type faulty struct {
	core.Store
	left atomic.Int32
}

func (s *faulty) Commit(ctx context.Context, b *core.Batch) error {
	steps := slices.ContainsFunc(b.Journal, func(r core.Record) bool { return r.Key.Round != 0 })
	if steps && s.left.Add(-1) >= 0 {
		return errUnsure
	}
	return s.Store.Commit(ctx, b)
}

// strict is a store that permanently refuses the batches with records of turn 1 for which refuses
// is true.
type strict struct {
	core.Store
	refuses func(*core.Batch) bool
}

func (s *strict) Commit(ctx context.Context, b *core.Batch) error {
	if len(b.Journal) > 0 && b.Journal[0].Key.Turn.Seq == 1 && s.refuses(b) {
		return fmt.Errorf("refused: %w", core.ErrBadEvent)
	}
	return s.Store.Commit(ctx, b)
}

// TestRefusedRecordsEndTheTurn: a turn whose records the store permanently refuses is set aside and
// not reported as answered. The place's next message is answered.
func TestRefusedRecordsEndTheTurn(t *testing.T) {
	for name, refuses := range map[string]func(*core.Batch) bool{
		"all":     func(*core.Batch) bool { return true },
		"steps":   func(b *core.Batch) bool { return b.Journal[0].Key.Round != 0 },
		"the end": func(b *core.Batch) bool { return len(b.Answered)+len(b.Settled) > 0 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &strict{open(t, t.TempDir()), refuses}
				defer s.Close()
				b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("ok")))
				defer b.stop()
				b.receive(said("1", "jay", "hi"))
				if end := b.ended(1)[0]; !end.Aside || end.Answered {
					t.Errorf("the turn ended as %+v, want it set aside", end)
				}
				b.receive(said("2", "jay", "and now?"))
				b.ended(1)
				if texts := b.room.Texts(); len(texts) == 0 || texts[len(texts)-1] != "ok" {
					t.Errorf("the room holds %q, want the answer to the second message last", texts)
				}
			})
		})
	}
}

// TestPlaceForgottenBeforeItBegan: a turn does not begin if its place is forgotten after the turn
// read the waiting messages.
func TestPlaceForgottenBeforeItBegan(t *testing.T) {
	db := open(t, t.TempDir()).(*memory.DB)
	t.Cleanup(func() { db.Close() })
	gone := make(chan struct{})
	s := &between{DB: db, do: func() {
		if err := db.Forget(context.Background(), square); err != nil {
			t.Error(err)
		}
		close(gone)
	}}
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("Hello.")))
	b.receive(talk("1", "jay", "Aria, my secret"))
	<-gone
	b.receive(talk("2", "ann", "Aria?"))
	b.ended(1)
	for i := range b.asker.Asked() {
		if in := b.input(i); strings.Contains(in, "secret") {
			t.Errorf("the prompt holds a forgotten message: %s", in)
		}
	}
}

// TestConfirmedStepIsJournalled: the journal of the asking turn records the outcome of a confirmed
// step, even if it has no output.
func TestConfirmedStepIsJournalled(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	room := coretest.NewRoom("room")
	bank := coretest.NewPlugin("bank", core.Action{Name: "pay", Brief: "Pay somebody", Permission: core.PermissionEveryone, Confirm: true,
		Do: func(context.Context, core.Call) (core.Result, error) { return core.Result{}, nil }})
	b := start(t, s, room, coretest.NewAsker(pays), func(o *turn.Options) {
		o.Catalogue, o.Places.Chooser = catalogueOf(t, room, bank), func(core.Path) core.Chooser { return room }
	})
	b.receive(said("1", "jay", "pay Ann"))
	b.ended(1)
	b.receive(b.press("p", "jay", "Confirm"))
	b.ended(1)
	err := s.View(t.Context(), func(v core.View) error {
		records, err := v.Journal(core.TurnID{Path: place, Seq: 1})
		for _, r := range records {
			if r.Key.Round == 1 && r.Key.Step == 2 && r.Key.Part == 0 && r.Progress != core.ProgressDone {
				t.Errorf("the step is %s, want %s", r.Progress, core.ProgressDone)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestSequelOfManyHasTheLeastRank: a follow-up of a turn that answers several users has the lowest
// of their ranks.
func TestSequelOfManyHasTheLeastRank(t *testing.T) {
	for _, people := range [][]string{{"boss", "jay"}, {"jay", "boss"}} {
		t.Run(people[0], func(t *testing.T) { checkSequelRank(t, people) })
	}
}

func checkSequelRank(t *testing.T, people []string) {
	s := open(t, t.TempDir())
	defer s.Close()
	room := coretest.NewRoom("room")
	power := coretest.NewPlugin("power", core.Action{Name: "ban", Brief: "Ban somebody", Permission: core.PermissionAdmins})
	more := `{"response":"and so on","actions":[{"type":"CONTINUE"}]}`
	b := start(t, s, room, coretest.NewAsker(more, `{"response":"done","actions":[{"type":"ban","payload":{}}]}`), func(o *turn.Options) {
		o.Catalogue, o.Admins = catalogueOf(t, room, power), []core.Path{core.MustPath("room/@user/boss")}
	})
	var many []core.Event
	for i := range 6 {
		many = append(many, said(fmt.Sprint(i), people[i%2], "hi"))
	}
	b.receive(many...)
	if ends := b.ended(2); len(ends[0].Messages) != 6 || ends[0].GoesOn == "" || !ends[1].Answered {
		t.Fatalf("the turns ended as %+v", ends)
	}
	err := s.View(t.Context(), func(v core.View) error {
		entries, err := v.Last(place, 20)
		for _, e := range entries {
			if e.Kind == core.KindContinue && e.Message.Author.Rank != core.RankMember {
				t.Errorf("the follow-up has rank %d, want %d", e.Message.Author.Rank, core.RankMember)
			}
		}
		return err
	})
	if n := len(power.Calls()); n != 0 || err != nil {
		t.Errorf("got %d calls and error %v, want none", n, err)
	}
}

func TestRecordsAreWrittenOnce(t *testing.T) {
	s := &recording{Store: open(t, t.TempDir()), seen: make(map[string]int)}
	defer s.Close()
	look := core.Action{Name: "look", Brief: "Look", Permission: core.PermissionEveryone}
	room := coretest.NewRoom("room")
	b := start(t, s, room, coretest.NewAsker(`{"response":"one\ntwo","actions":[{"type":"look","payload":{}}]}`, plan("three\nfour")), func(o *turn.Options) {
		o.Catalogue = catalogueOf(t, room, coretest.NewPlugin("tools", look))
	})
	b.receive(said("1", "jay", "hi"))
	b.ended(1)
	b.stop()
	if len(s.seen) < 8 {
		t.Errorf("%d different records were written, want at least 8", len(s.seen))
	}
	for r, n := range s.seen {
		if n > 1 {
			t.Errorf("record %s was written %d times, want once", r, n)
		}
	}
}

// TestReceiptBeginsTheTurn: a message for an idle place takes three commits, because the commit
// that stores it also journals the first attempt. After a restart that attempt counts.
func TestReceiptBeginsTheTurn(t *testing.T) {
	s := &recording{Store: open(t, t.TempDir()), seen: make(map[string]int)}
	defer s.Close()
	room := coretest.NewRoom("room")
	b := start(t, s, room, coretest.NewAsker(plan("ok"), plan("ok"), plan("ok")))
	before := int64(0)
	for i := range 3 {
		before = s.commits.Load()
		b.receive(said(fmt.Sprint(i), "jay", "hi"))
		b.ended(1)
	}
	b.stop()
	if n := s.commits.Load() - before; n != 3 {
		t.Errorf("a message took %d commits, want 3", n)
	}
	asker := coretest.NewAsker(plan("ok"))
	asker.Hold = make(chan struct{})
	b = start(t, s, room, asker)
	b.receive(said("4", "jay", "hi"), said("5", "jay", "there"), said("6", "ann", "hello"))
	b.thinks(1)
	defer b.kill()
	for seq, want := range map[uint64]string{7: `{"last":8,"attempts":1}`, 9: ""} {
		id := core.TurnID{Path: place, Seq: seq}
		err := s.View(context.Background(), func(v core.View) error {
			records, err := v.Journal(id)
			got := ""
			if len(records) > 0 {
				got = string(records[0].Data)
			}
			if got != want {
				t.Errorf("turn %s has the record %s, want %s", id, got, want)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// recording is a store that counts commits and the journal records in them.
type recording struct {
	core.Store
	mu      sync.Mutex
	seen    map[string]int
	commits atomic.Int64
}

func (s *recording) Commit(ctx context.Context, b *core.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commits.Add(1)
	for _, r := range b.Journal {
		s.seen[fmt.Sprint(r.Key, " ", r.Progress)]++
	}
	return s.Store.Commit(ctx, b)
}

// TestCrashWhileDeciding kills the bot around each commit after a user confirmed a question. The
// action runs at most once, the question shows its outcome, and the history has no duplicates.
func TestCrashWhileDeciding(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 1; n <= 10; n++ {
			t.Run(fmt.Sprintf("after=%t/commits=%d", after, n), func(t *testing.T) {
				t.Parallel()
				checkCrashWhileDeciding(t, after, n, n%2 == 0)
				checkCrashWhileDeciding(t, after, n, n%2 != 0)
			})
		}
	}
}

func checkCrashWhileDeciding(t *testing.T, after bool, n int, words bool) {
	s := &appending{Store: open(t, t.TempDir()), seen: make(map[string]int)}
	defer s.Close()
	room := coretest.NewRoom("room")
	var paid atomic.Int32
	bank := coretest.NewPlugin("bank", core.Action{Name: "pay", Brief: "Pay somebody", Permission: core.PermissionEveryone, Confirm: true,
		Do: func(context.Context, core.Call) (core.Result, error) {
			paid.Add(1)
			return core.Result{Next: []core.Step{{Type: "message_room", Payload: []byte(`{"text":"Receipt."}`)}}}, nil
		}})
	with := func(o *turn.Options) {
		o.Catalogue, o.Places.Chooser = catalogueOf(t, room, bank), func(core.Path) core.Chooser { return room }
		o.Runtime = action.NewRuntime(action.Options{})
	}
	b := start(t, s, room, coretest.NewAsker(pays), with)
	b.receive(said("1", "jay", "pay Ann"))
	b.ended(1)
	press := b.press("p", "jay", "Confirm")
	if words {
		press = said("p", "jay", "yes")
	}
	b.stop()

	dead := make(chan struct{})
	var once sync.Once
	m := &mortal{Store: s, left: n, after: after, die: func() { once.Do(func() { close(dead) }) }}
	b = start(t, m, room, coretest.NewAsker(says), with)
	if b.Receive(t.Context(), press) == nil {
		select {
		case <-room.Ends():
		case <-dead:
		}
	}
	b.kill()
	b = start(t, s, room, coretest.NewAsker(says), with)
	b.receive(press)
	b.quiet()
	b.stop()
	texts := room.Texts()
	if paid.Load() > 1 || len(room.Whispers()) != 0 || len(texts) < 2 || !strings.ContainsAny(texts[1], "✓✗") {
		t.Errorf("paid %d times, want at most once; the room holds %q, want the outcome; whispers %q, want none", paid.Load(), texts, room.Whispers())
	}
	counts := map[string]int{}
	log := logged(t, s)
	if slices.Contains(texts, "Receipt.") && !slices.Contains(log, "Receipt.") {
		t.Errorf("the room holds %q, but the history %q", texts, log)
	}
	for _, text := range log {
		if counts[text]++; counts[text] > 1 && text != "" {
			t.Errorf("the history holds %q twice", text)
		}
	}
	for id, n := range s.seen {
		if n > 1 && !after { // with after, the bot cannot know that the commit was written
			t.Errorf("message %s was appended %d times, want once", id, n)
		}
	}
}

// appending is a store that counts how often each message of the bot is appended.
type appending struct {
	core.Store
	mu   sync.Mutex
	seen map[string]int
}

func (s *appending) Commit(ctx context.Context, b *core.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range b.Append {
		if e.Self {
			s.seen[e.Message.ID]++
		}
	}
	return s.Store.Commit(ctx, b)
}

// TestCommandOfNoAdmin: a waiting command is refused if its user lost the rank for it or if the
// command was removed meanwhile.
func TestCommandOfNoAdmin(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	begun, release := make(chan struct{}), make(chan struct{})
	do := func(_ context.Context, c call) (string, error) {
		close(begun)
		<-release
		return "slow", nil
	}
	commands := []command.Command{
		{Spec: command.Spec{Name: "slow", Brief: "Take time"}, Do: do},
		{Spec: command.Spec{Name: "reign", Brief: "Reign", Rank: core.RankAdmin}, Do: do},
		{Spec: command.Spec{Name: "gone", Brief: "Go"}, Do: do},
	}
	all, err := command.New(commands)
	if err != nil {
		t.Fatal(err)
	}
	fewer, err := command.New(commands[:2])
	if err != nil {
		t.Fatal(err)
	}
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("ok")), func(o *turn.Options) {
		o.Plugins.Commands = all
		o.Admins = []core.Path{core.MustPath("room/@user/boss")}
	})
	b.receive(called("1", "jay", "slow"), called("2", "boss", "reign"), called("3", "jay", "gone"))
	<-begun
	b.Reconfigure(b.options(func(o *turn.Options) { o.Admins, o.Plugins.Commands = nil, fewer }))
	close(release)
	b.ended(3)
	const unknown = "I don't know that command. /help shows my commands."
	b.holds("slow", unknown, unknown)
}

// TestReconfigureWakes: waiting messages are answered once new options make their place reachable.
func TestReconfigureWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		defer s.Close()
		b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("ok")), func(o *turn.Options) {
			o.Places.Reaches = func(core.Path) bool { return false }
		})
		defer b.stop()
		b.receive(said("1", "jay", "hi"))
		synctest.Wait()
		b.Reconfigure(b.options(func(o *turn.Options) { o.Places.Reaches = nil }))
		b.ended(1)
		b.holds("ok")
	})
}

// TestEditedBeforeAReload: a message that was edited while its interface was down is answered as edited once new
// options make its place reachable.
func TestEditedBeforeAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		defer s.Close()
		asker := coretest.NewAsker(plan("ok"))
		b := start(t, s, coretest.NewRoom("room"), asker, func(o *turn.Options) {
			o.Places.Reaches = func(core.Path) bool { return false }
		})
		defer b.stop()
		b.receive(said("1", "jay", "for four"))
		synctest.Wait()
		b.Reconfigure(b.options(func(o *turn.Options) { o.Places.Reaches, o.Places.Settle = nil, time.Second }))
		time.Sleep(time.Second / 2)
		edit := said("1", "jay", "for six")
		edit.Kind = core.KindEdit
		b.receive(edit)
		b.ended(1)
		if n := len(asker.Asked()); n != 1 || !strings.Contains(b.input(0), "for six") {
			t.Errorf("the model was asked %d times, want once; the input is %s", n, b.input(0))
		}
	})
}

// TestDrainedWaitsForItsOwn: the function that Reconfigure returns waits for all turns that began
// before it, and for none that began later.
func TestDrainedWaitsForItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		defer s.Close()
		b := start(t, s, coretest.NewRoom("room"), paced{place: time.Minute, core.MustPath("room/2"): time.Hour})
		defer b.stop()
		b.receive(said("1", "jay", "hi"))
		synctest.Wait()
		drained := b.Reconfigure(b.o)
		other := said("1", "jay", "hi")
		other.Message.Path = core.MustPath("room/2")
		b.receive(other)
		time.Sleep(2 * time.Minute)
		b.ended(1)
		synctest.Wait() // the first turn has ended, the other one has not
		b.Reconfigure(b.o)
		all := b.Reconfigure(b.o)
		var over, allOver atomic.Bool
		go func() { drained(); over.Store(true) }()
		go func() { all(); allOver.Store(true) }()
		synctest.Wait()
		if !over.Load() {
			t.Error("drained waits for a turn that began after it")
		}
		if allOver.Load() {
			t.Error("drained does not wait for a turn that began two reconfigurations ago")
		}
		time.Sleep(2 * time.Hour)
		b.ended(1)
	})
}

// paced is a model that takes a fixed time for each place.
type paced map[core.Path]time.Duration

func (p paced) Ask(_ context.Context, q core.Question) (llm.Answer, error) {
	time.Sleep(p[q.Path])
	return llm.Answer{Text: plan("ok")}, nil
}

// TestAnswerIsFourCommits: the first message of a place takes four commits: receipt, begin of the
// turn, answer to send, end of the turn. The first two are one if Run has begun by then.
func TestAnswerIsFourCommits(t *testing.T) {
	s := &counting{Store: open(t, t.TempDir())}
	defer s.Close()
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("Hello.")))
	b.receive(said("1", "jay", "hi"))
	b.ended(1)
	if n := s.all.Load(); n != 3 && n != 4 {
		t.Errorf("%d commits, want 3 or 4", n)
	}
}

// TestWhoWaitsBehind: the question to the model lists the other users who wrote in the place
// meanwhile.
func TestWhoWaitsBehind(t *testing.T) {
	b := fresh(t, plan("ok"))
	b.asker.Hold = make(chan struct{})
	jay, mia, zed := core.MustPath("room/@user/jay"), core.MustPath("room/@user/mia"), core.MustPath("room/@user/zed")
	b.receive(said("1", "jay", "one"))
	b.thinks(1)
	if got := b.asker.Behind(); len(got) != 0 {
		t.Errorf("behind the first message wait %v, want nobody", got)
	}
	b.receive(said("2", "mia", "two"))
	b.receive(said("3", "zed", "three"))
	if got := b.asker.Behind(); !slices.Equal(got, []core.Path{mia, zed}) {
		t.Errorf("behind the first message wait %v, want mia and zed", got)
	}
	b.asker.Hold <- struct{}{}
	b.thinks(1)
	second := b.asker.People()[1]
	if got := b.asker.Behind(); !slices.Equal(got, []core.Path{zed}) || !slices.Contains(second, mia) {
		t.Errorf("behind the message of %v wait %v, want mia and zed", second, got)
	}
	close(b.asker.Hold)
	b.ended(3)
	if people := b.asker.People(); !slices.Contains(people[0], jay) || !slices.Contains(people[2], zed) {
		t.Errorf("the model was asked for %v, want jay first and zed last", people)
	}
}
