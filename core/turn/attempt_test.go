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

// TestFiveAreNotMany: up to five messages of several people are answered one by one.
func TestFiveAreNotMany(t *testing.T) {
	b := fresh(t, plan("ok"))
	var five []core.Event
	for i := range 5 {
		five = append(five, said(fmt.Sprint(i), []string{"ann", "jay"}[i%2], "hi"))
	}
	b.receive(five...)
	for i, end := range b.ended(5) {
		if len(end.Messages) != 1 {
			t.Errorf("turn %d answers %q", i, end.Messages)
		}
	}
}

// TestInterruptedTurnAnswersTheSame: a turn that was cut short answers what it chose
// before, to its last message, and nothing that came later.
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
		t.Errorf("the turns answer %+v", ends)
	}
}

// TestSuspectsAreTriedAlone: of turns that were cut short twice by the end of the
// process, one is tried at a time.
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
				t.Errorf("after %d attempts %d are tried at a time, want %d", attempts, n, together)
			}
			close(asker.Hold)
			b.ended(3)
		})
	}
}

// TestApologyIsNotLost checks that an apology waits for the platform before the turn is given up.
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
			t.Errorf("the turn ended as %+v, and the room holds %q", ends, room.Texts())
		}
	})
}

// TestNoApologyForAnAnswer: a turn is not said to be lost whose answer may have arrived, each time that the process
// ended.
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
			t.Errorf("it ended as %+v", end)
		}
		if texts := b.room.Texts(); len(texts) != 1 || !strings.HasPrefix(texts[0], want) {
			t.Errorf("part %d: the room holds %q", part, texts)
		}
		b.stop()
	}
}

// TestStopsAreNobodysFault: a turn that is cut short again and again because the
// process ends is answered in the end.
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

// TestFailedWritesAreNobodysFault: a turn whose records cannot be written for a while
// is answered in the end.
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

// faulty fails commits of a turn's steps.
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

// strict is a store that refuses, for good, the batches that hold records of a turn
// and fit.
type strict struct {
	core.Store
	fits func(*core.Batch) bool
}

func (s *strict) Commit(ctx context.Context, b *core.Batch) error {
	if len(b.Journal) > 0 && b.Journal[0].Key.Turn.Seq == 1 && s.fits(b) {
		return fmt.Errorf("refused: %w", core.ErrBadEvent)
	}
	return s.Store.Commit(ctx, b)
}

// TestRefusedRecordsEndTheTurn: a turn whose records can never be written, at whatever
// point, is set aside, not reported as done, and its place goes on.
func TestRefusedRecordsEndTheTurn(t *testing.T) {
	for name, fits := range map[string]func(*core.Batch) bool{
		"all":     func(*core.Batch) bool { return true },
		"steps":   func(b *core.Batch) bool { return b.Journal[0].Key.Round != 0 },
		"the end": func(b *core.Batch) bool { return len(b.Answered)+len(b.Settled) > 0 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &strict{open(t, t.TempDir()), fits}
				defer s.Close()
				b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("ok")))
				defer b.stop()
				b.receive(said("1", "jay", "hi"))
				if end := b.ended(1)[0]; !end.Aside || end.Answered {
					t.Errorf("it is reported as done: %+v", end)
				}
				b.receive(said("2", "jay", "and now?"))
				b.ended(1)
				if texts := b.room.Texts(); len(texts) == 0 || texts[len(texts)-1] != "ok" {
					t.Errorf("the room holds %q", texts)
				}
			})
		})
	}
}

// TestPlaceForgottenBeforeItBegan: the turn has read what waits, and its place is
// forgotten. It does not begin.
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
			t.Errorf("the model was told %s", in)
		}
	}
}

// TestConfirmedStepIsJournalled: the journal of the turn that asked holds what became of
// a confirmed step, also if it has no output.
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
				t.Errorf("the step is %s", r.Progress)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestSequelOfManyHasTheLeastRank: the bot goes on with the rights of those who
// caused the turn together.
func TestSequelOfManyHasTheLeastRank(t *testing.T) {
	for _, people := range [][]string{{"boss", "jay"}, {"jay", "boss"}} {
		t.Run(people[0], func(t *testing.T) { sequelOf(t, people) })
	}
}

func sequelOf(t *testing.T, people []string) {
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
				t.Errorf("the bot goes on with rank %d", e.Message.Author.Rank)
			}
		}
		return err
	})
	if n := len(power.Calls()); n != 0 || err != nil {
		t.Errorf("a member lent an admin's rank: %d calls, %v", n, err)
	}
}

// TestRecordsAreWrittenOnce: each record of a turn is written once.
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
		t.Errorf("%d records were written", len(s.seen))
	}
	for r, n := range s.seen {
		if n > 1 {
			t.Errorf("%s was written %d times", r, n)
		}
	}
}

// TestReceiptBeginsTheTurn: a message that nothing waits before is answered with three commits, one
// of them after the answer. Its first attempt is counted by its receipt, also for the next life.
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
				t.Errorf("%s has the record %s, want %s", id, got, want)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// recording counts the commits, and the records that they write.
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

// TestCrashWhileDeciding kills the bot around each of its commits after a question
// was confirmed: it is decided once, the question says so, and the history has
// nothing twice.
func TestCrashWhileDeciding(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 1; n <= 10; n++ {
			t.Run(fmt.Sprintf("after=%t/commits=%d", after, n), func(t *testing.T) {
				t.Parallel()
				crashDeciding(t, after, n, n%2 == 0)
				crashDeciding(t, after, n, n%2 != 0)
			})
		}
	}
}

func crashDeciding(t *testing.T, after bool, n int, words bool) {
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
		t.Errorf("it paid %d times; the room holds %q, whispers %q", paid.Load(), texts, room.Whispers())
	}
	counts := map[string]int{}
	log := logged(t, s)
	if slices.Contains(texts, "Receipt.") && !slices.Contains(log, "Receipt.") {
		t.Errorf("the room holds %q, and the log %q", texts, log)
	}
	for _, text := range log {
		if counts[text]++; counts[text] > 1 && text != "" {
			t.Errorf("the log holds %q twice", text)
		}
	}
	for id, n := range s.seen {
		if n > 1 && !after { // else nobody knows that it was written
			t.Errorf("%s was put into the log %d times", id, n)
		}
	}
}

// appending counts how often each message of the bot is put into the log.
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

// TestCommandOfNoAdmin: somebody who lost their rank while their command waited cannot
// have it carried out, and nobody one that is gone.
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

// TestReconfigureWakes: an interface reaches a place since the options changed.
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

// TestDrainedWaitsForItsOwn: what waits for the turns on former options does not wait
// for those that began later, but for all that began before.
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
		synctest.Wait() // the turn on the former options is over, the other one is not
		b.Reconfigure(b.o)
		all := b.Reconfigure(b.o)
		var over, allOver atomic.Bool
		go func() { drained(); over.Store(true) }()
		go func() { all(); allOver.Store(true) }()
		synctest.Wait()
		if !over.Load() {
			t.Error("it waits for a turn that began on later options")
		}
		if allOver.Load() {
			t.Error("it does not wait for a turn that began on options before the last")
		}
		time.Sleep(2 * time.Hour)
		b.ended(1)
	})
}

// paced answers each place in its own time.
type paced map[core.Path]time.Duration

func (p paced) Ask(_ context.Context, q core.Question) (llm.Answer, error) {
	time.Sleep(p[q.Path])
	return llm.Answer{Text: plan("ok")}, nil
}

// TestAnswerIsFourCommits: a message is received, its turn begins, its answer is to be
// sent, and the turn ends; each is one commit.
func TestAnswerIsFourCommits(t *testing.T) {
	s := &counting{Store: open(t, t.TempDir())}
	defer s.Close()
	b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(plan("Hello.")))
	b.receive(said("1", "jay", "hi"))
	b.ended(1)
	if n := s.all.Load(); n != 4 {
		t.Errorf("%d commits", n)
	}
}

// TestWhoWaitsBehind: while one person's question is thought about, it is known who else wrote in the place.
func TestWhoWaitsBehind(t *testing.T) {
	b := fresh(t, plan("ok"))
	b.asker.Hold = make(chan struct{})
	jay, mia, zed := core.MustPath("room/@user/jay"), core.MustPath("room/@user/mia"), core.MustPath("room/@user/zed")
	b.receive(said("1", "jay", "one"))
	b.thinks(1)
	if got := b.asker.Behind(); len(got) != 0 {
		t.Errorf("at first %v wait", got)
	}
	b.receive(said("2", "mia", "two"))
	b.receive(said("3", "zed", "three"))
	if got := b.asker.Behind(); !slices.Equal(got, []core.Path{mia, zed}) {
		t.Errorf("behind the first %v wait", got)
	}
	b.asker.Hold <- struct{}{}
	b.thinks(1)
	second := b.asker.People()[1]
	if got := b.asker.Behind(); !slices.Equal(got, []core.Path{zed}) || !slices.Contains(second, mia) {
		t.Errorf("behind that of %v %v wait", second, got)
	}
	close(b.asker.Hold)
	b.ended(3)
	if people := b.asker.People(); !slices.Contains(people[0], jay) || !slices.Contains(people[2], zed) {
		t.Errorf("asked were %v", people)
	}
}
