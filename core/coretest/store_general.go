package coretest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"synthbot/core"
)

// generalCases returns tests of what concerns several parts of a store.
func generalCases() map[string]func(*testing.T, *testedStore) {
	return map[string]func(*testing.T, *testedStore){
		"numbers decide, not times": func(t *testing.T, s *testedStore) {
			for i := range 5 {
				s.append(at(asked(kitchen, fmt.Sprint(i), fmt.Sprint(i)), -time.Duration(i)*time.Hour))
			}
			want := []string{"0", "1", "2", "3", "4"}
			same(t, "last", words(s.last(kitchen, 9)), want)
			same(t, "due", words(s.due(kitchen)), want)
			s.view(func(v core.View) error {
				got, err := v.Recent(core.Path{}, 9, nil)
				same(t, "recent", words(got), want)
				after, _ := v.After(kitchen, 2, 9, nil)
				same(t, "after", words(after), want[2:])
				return err
			})
		},
		"whether an entry is due is decided once": func(t *testing.T, s *testedStore) {
			s.append(said(kitchen, "1", "talk"), asked(kitchen, "2", "question"))
			s.append(asked(kitchen, "1", "talk"), said(kitchen, "2", "question"))
			same(t, "due", words(s.due(kitchen)), []string{"question"})
		},
		"a place that was private once stays so": func(t *testing.T, s *testedStore) {
			secret := said(kitchen, "1", "between us")
			secret.Message.Private = true
			s.append(secret, said(garden, "1", "hello all"))
			for i := range 60 {
				s.append(said(kitchen, fmt.Sprint("r", i), "a reminder"))
			}
			s.change(core.Event{Kind: core.KindDeletion, Message: core.Message{Path: kitchen}, Target: "1"})
			s.reopen()
			same(t, "kitchen", s.head(kitchen).Private, true)
			same(t, "garden", s.head(garden).Private, false)
			s.change(core.Event{Kind: core.KindMigration, Message: core.Message{Path: kitchen}, To: garden})
			same(t, "where it joined another", s.head(garden).Private, true)
		},
		"a batch is written whole or not at all": wholeBatch,
		"a view sees one state while others write": func(t *testing.T, s *testedStore) {
			s.append(asked(kitchen, "1", "one"))
			written := make(chan error, 1)
			s.view(func(v core.View) error {
				before, err := v.Last(kitchen, 9)
				if err != nil {
					return err
				}
				begun := make(chan struct{})
				go func() {
					close(begun)
					written <- s.Commit(context.Background(), &core.Batch{
						Append: []core.Entry{said(kitchen, "2", "two")}, Answered: []core.TurnID{{Path: kitchen, Seq: 1}},
						States: map[core.Path]core.State{kitchen: {Topic: "tea"}},
					})
				}()
				<-begun
				for range 1000 {
					after, err := v.Last(kitchen, 9)
					due, _ := v.Due(kitchen, 9)
					if err != nil || len(after) != len(before) || len(due) != 1 {
						t.Fatalf("the view changes: %v, then %v, %d due, %v", words(before), words(after), len(due), err)
					}
				}
				state, err := v.State(kitchen)
				same(t, "state", state.Topic, "")
				return err
			})
			wantError(t, "Commit", <-written, nil)
			same(t, "afterwards", words(s.last(kitchen, 9)), []string{"one", "two"})
		},
		"a press takes what was pending, with its own end": func(t *testing.T, s *testedStore) {
			step := core.Key{Turn: core.TurnID{Path: kitchen, Seq: 1}, Round: 1, Step: 2}
			s.append(asked(kitchen, "1", "delete it all"))
			s.commit(&core.Batch{
				Journal:  []core.Record{{Key: step, Progress: core.ProgressPending, Time: morning, Data: json.RawMessage(`{"question":"really?"}`)}},
				Answered: []core.TurnID{{Path: kitchen, Seq: 1}},
			})
			press := core.Entry{Due: true, Event: core.Event{Kind: core.KindPress, Target: "q", Data: "yes", Message: core.Message{Path: kitchen, ID: "p"}}}
			b := &core.Batch{Append: []core.Entry{press, press}}
			s.commit(b)
			same(t, "pressed twice", b.Known, []bool{false, true})
			s.reopen()
			same(t, "waiting", s.due(kitchen)[0].Data, "yes")
			taken := core.Record{Key: step, Progress: core.ProgressTaken, Time: morning}
			s.commit(&core.Batch{Journal: []core.Record{taken}, Answered: []core.TurnID{{Path: kitchen, Seq: 2}}})
			s.reopen()
			same(t, "the step", s.journal(step.Turn), []core.Record{{Key: step, Progress: core.ProgressTaken, Time: morning}})
			same(t, "waiting at the end", len(s.waiting()), 0)
		},
		"the journal outlives the turn": func(t *testing.T, s *testedStore) {
			s.append(asked(kitchen, "1", "one"))
			key := core.Key{Turn: core.TurnID{Path: kitchen, Seq: 1}}
			for attempt := 1; attempt <= 3; attempt++ {
				s.commit(&core.Batch{Journal: []core.Record{{Key: key, Progress: core.ProgressStarted, Data: json.RawMessage(fmt.Sprintf(`{"last":1,"attempts":%d}`, attempt))}}})
				s.reopen()
				same(t, "attempts", string(s.journal(key.Turn)[0].Data), fmt.Sprintf(`{"last":1,"attempts":%d}`, attempt))
			}
			s.answer(kitchen, 1)
			same(t, "after the end", len(s.journal(key.Turn)), 1)
		},
	}
}

// wholeBatch: nothing of an invalid batch is written.
func wholeBatch(t *testing.T, s *testedStore) {
	s.append(asked(kitchen, "1", "one"))
	turn := core.TurnID{Path: kitchen, Seq: 1}
	good := func() *core.Batch {
		return &core.Batch{
			Append:   []core.Entry{said(kitchen, "2", "two"), said(garden, "1", "elsewhere")},
			Change:   []core.Event{{Kind: core.KindEdit, Message: core.Message{Path: kitchen, ID: "1", Text: "edited"}}},
			Journal:  []core.Record{{Key: core.Key{Turn: turn}, Progress: core.ProgressDone}},
			States:   map[core.Path]core.State{kitchen: {Topic: "tea"}},
			Answered: []core.TurnID{turn},
		}
	}
	for name, spoil := range map[string]func(*core.Batch){
		"a bad entry":  func(b *core.Batch) { b.Append[1].Kind = "" },
		"a bad change": func(b *core.Batch) { b.Change[0].Kind = core.KindMessage },
		"a bad record": func(b *core.Batch) { b.Journal[0].Key.Turn.Path = core.Path{} },
		"a bad state":  func(b *core.Batch) { b.States[core.Path{}] = core.State{Topic: "x"} },
		"a bad mark":   func(b *core.Batch) { b.Answered = append(b.Answered, core.TurnID{}) },
	} {
		b := good()
		spoil(b)
		if err := s.Commit(context.Background(), b); err == nil {
			t.Errorf("%s: taken", name)
		}
		same(t, name+": history", words(s.last(kitchen, 9)), []string{"one"})
		same(t, name+": places", len(s.places(core.Path{})), 1)
		same(t, name+": journal", len(s.journal(turn)), 0)
		same(t, name+": state", s.state(kitchen).Topic, "")
		same(t, name+": due", words(s.due(kitchen)), []string{"one"})
	}
	s.commit(good())
	same(t, "the good one", words(s.last(kitchen, 9)), []string{"edited", "two"})
}
