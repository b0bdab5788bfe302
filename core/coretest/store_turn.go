package coretest

import (
	"encoding/json"
	"fmt"
	"testing"

	"synthbot/core"
)

func dueCases() map[string]func(*testing.T, *testedStore) {
	return map[string]func(*testing.T, *testedStore){
		"due entries wait until they are answered": func(t *testing.T, s *testedStore) {
			s.append(asked(kitchen, "1", "one"), said(kitchen, "2", "talk"), asked(kitchen, "3", "two"), asked(garden, "1", "three"))
			same(t, "waiting", s.waiting(), []core.Path{garden, kitchen})
			same(t, "due", words(s.due(kitchen)), []string{"one", "two"})
			s.answer(kitchen, 2)
			same(t, "due after one", words(s.due(kitchen)), []string{"two"})
			same(t, "mark", s.head(kitchen).Answered, 2)
			s.answer(kitchen, 3)
			same(t, "waiting after all", s.waiting(), []core.Path{garden})
			same(t, "history", words(s.last(kitchen, 9)), []string{"one", "talk", "two"})
		},
		"the mark never goes back": func(t *testing.T, s *testedStore) {
			s.append(asked(kitchen, "1", "one"), asked(kitchen, "2", "two"))
			s.answer(kitchen, 2)
			s.answer(kitchen, 1)
			same(t, "mark", s.head(kitchen).Answered, 2)
		},
		"a mark beyond the end swallows nothing": func(t *testing.T, s *testedStore) {
			s.append(asked(kitchen, "1", "one"))
			s.answer(kitchen, 1000)
			s.append(asked(kitchen, "2", "two"))
			same(t, "due", words(s.due(kitchen)), []string{"two"})
			s.answer(garden, 5)
			s.append(asked(garden, "1", "first"))
			same(t, "due in the garden", words(s.due(garden)), []string{"first"})
		},
		"due is bounded": func(t *testing.T, s *testedStore) {
			for i := range 5 {
				s.append(asked(kitchen, fmt.Sprint(i), fmt.Sprint(i)))
			}
			s.view(func(v core.View) error {
				got, err := v.Due(kitchen, 2)
				same(t, "due", words(got), []string{"0", "1"})
				return err
			})
		},
		"what a conversation is about": func(t *testing.T, s *testedStore) {
			tea := core.State{Topic: "tea", SlotsFilled: map[string]json.RawMessage{"sugar": json.RawMessage("2")}}
			s.append(said(kitchen, "1", "tea?"), said(garden, "1", "roses"))
			s.commit(&core.Batch{States: map[core.Path]core.State{kitchen: tea, garden: {Topic: "roses"}}})
			s.reopen()
			same(t, "state", s.state(kitchen), tea)
			s.commit(&core.Batch{States: map[core.Path]core.State{garden: {}}})
			same(t, "state that was forgotten", s.state(garden), core.State{})
			same(t, "state of a place below", s.state(shed), core.State{})
			s.change(core.Event{Kind: core.KindMigration, Message: core.Message{Path: kitchen}, To: street})
			same(t, "state that moved", s.state(street), tea)
			same(t, "state under the old path", s.state(kitchen), tea)
		},
		"one batch closes a turn": func(t *testing.T, s *testedStore) {
			s.append(asked(kitchen, "1", "how are you?"))
			turn := core.TurnID{Path: kitchen, Seq: 1}
			reply := said(kitchen, "2", "fine")
			reply.Self, reply.Strangers = true, true
			s.commit(&core.Batch{
				Append:   []core.Entry{reply},
				Journal:  []core.Record{{Key: core.Key{Turn: turn}, Progress: core.ProgressDone, Time: morning}},
				Answered: []core.TurnID{turn},
			})
			s.reopen()
			same(t, "waiting", len(s.waiting()), 0)
			same(t, "history", words(s.last(kitchen, 9)), []string{"how are you?", "fine"})
			got := s.entry(kitchen, "2")
			same(t, "self", got.Self, true)
			same(t, "strangers", got.Strangers, true)
		},
		"an edited entry waits with its new text": func(t *testing.T, s *testedStore) {
			s.append(asked(kitchen, "1", "old"))
			s.change(core.Event{Kind: core.KindEdit, Message: core.Message{Path: kitchen, ID: "1", Text: "new"}})
			same(t, "due", words(s.due(kitchen)), []string{"new"})
		},
		"a deleted entry waits as deleted": func(t *testing.T, s *testedStore) {
			s.append(asked(kitchen, "1", "old"))
			s.change(core.Event{Kind: core.KindDeletion, Message: core.Message{Path: kitchen}, Target: "1"})
			got := s.due(kitchen)
			same(t, "due", words(got), []string{""})
			same(t, "deleted", got[0].Deleted, true)
		},
	}
}

func settledCases() map[string]func(*testing.T, *testedStore) {
	return map[string]func(*testing.T, *testedStore){
		"one entry is settled before those that wait": func(t *testing.T, s *testedStore) {
			s.append(asked(kitchen, "1", "one"), asked(kitchen, "2", "two"), asked(kitchen, "3", "three"), asked(kitchen, "4", "four"))
			s.settle(kitchen, 3)
			same(t, "due", words(s.due(kitchen)), []string{"one", "two", "four"})
			same(t, "mark", s.head(kitchen).Answered, 0)
			s.reopen()
			same(t, "due after opening again", words(s.due(kitchen)), []string{"one", "two", "four"})
			s.answer(kitchen, 2)
			s.settle(kitchen, 4)
			same(t, "waiting", len(s.waiting()), 0)
			same(t, "mark after all", s.head(kitchen).Answered, 4)
			s.settle(kitchen, 9)
			s.append(asked(kitchen, "5", "five"))
			same(t, "due after a number that is not there", words(s.due(kitchen)), []string{"five"})
		},
		"the receipt begins what waits alone": func(t *testing.T, s *testedStore) {
			s.append(asked(kitchen, "1", "one"))
			b := core.Batch{Begin: true, Append: []core.Entry{
				asked(kitchen, "2", "two"), said(garden, "1", "talk"), asked(garden, "2", "three"), asked(garden, "3", "four"),
				asked(garden, "2", "three"),
			}}
			s.commit(&b)
			same(t, "begun", b.Begun, []bool{false, false, true, false, false})
			s.reopen()
			same(t, "journal of one that waits for another", len(s.journal(core.TurnID{Path: kitchen, Seq: 2})), 0)
			got := s.journal(core.TurnID{Path: garden, Seq: 2})
			same(t, "records", len(got), 1)
			same(t, "progress", got[0].Progress, core.ProgressStarted)
			same(t, "attempt", string(got[0].Data), `{"last":2,"attempts":1}`)
			s.answer(garden, 3)
			b = core.Batch{Append: []core.Entry{asked(garden, "4", "five")}}
			s.commit(&b)
			same(t, "begun unasked", b.Begun, []bool{false})
		},
		"a closed turn leaves no journal": func(t *testing.T, s *testedStore) {
			turn, open := core.TurnID{Path: kitchen, Seq: 1}, core.TurnID{Path: kitchen, Seq: 2}
			record := func(turn core.TurnID, round, step uint16, p core.Progress) core.Record {
				return core.Record{Key: core.Key{Turn: turn, Round: round, Step: step}, Progress: p, Time: morning}
			}
			s.append(asked(kitchen, "1", "one"), asked(kitchen, "2", "two"), asked(kitchen, "3", "three"))
			s.commit(&core.Batch{Journal: []core.Record{
				record(turn, 0, 0, core.ProgressStarted), record(turn, 1, 0, core.ProgressAccepted),
				record(open, 0, 0, core.ProgressStarted), record(open, 1, 0, core.ProgressAccepted),
			}})
			s.commit(&core.Batch{
				Journal:  []core.Record{record(turn, 1, 1, core.ProgressDone), record(turn, 0, 0, core.ProgressDone)},
				Answered: []core.TurnID{turn}, Closed: []core.TurnID{turn},
			})
			s.reopen()
			same(t, "journal", len(s.journal(turn)), 0)
			same(t, "journal of another turn", len(s.journal(open)), 2)
			pending, taken := record(open, 1, 1, core.ProgressPending), record(open, 1, 1, core.ProgressTaken)
			s.commit(&core.Batch{Journal: []core.Record{pending}, Closed: []core.TurnID{open}})
			same(t, "journal with a question", len(s.journal(open)), 3)
			s.append(asked(street, "1", "there"))
			s.change(core.Event{Kind: core.KindMigration, Message: core.Message{Path: kitchen}, To: street})
			s.commit(&core.Batch{Journal: []core.Record{taken}})
			s.commit(&core.Batch{Closed: []core.TurnID{open}})
			same(t, "journal of a turn whose place moved", len(s.journal(open)), 0)
		},
		"one entry is settled in a place that moved": func(t *testing.T, s *testedStore) {
			s.append(asked(street, "1", "old"), asked(kitchen, "1", "one"), asked(kitchen, "2", "two"))
			s.change(core.Event{Kind: core.KindMigration, Message: core.Message{Path: kitchen}, To: street})
			s.settle(kitchen, 2)
			same(t, "due", words(s.due(street)), []string{"old", "one"})
		},
	}
}

func journalCases() map[string]func(*testing.T, *testedStore) {
	turn := core.TurnID{Path: kitchen, Seq: 3}
	record := func(round, step, part uint16, p core.Progress, data string) core.Record {
		key := core.Key{Turn: turn, Round: round, Step: step, Part: part}
		return core.Record{Key: key, Progress: p, Time: morning, Data: json.RawMessage(data)}
	}
	return map[string]func(*testing.T, *testedStore){
		"records come in the order of their keys": func(t *testing.T, s *testedStore) {
			want := []core.Record{
				record(0, 0, 0, core.ProgressStarted, `{"last":4,"attempts":1}`), record(1, 0, 0, core.ProgressAccepted, `{"a":1}`),
				record(1, 1, 0, core.ProgressStarted, ``), record(1, 1, 2, core.ProgressDone, `"x"`), record(1, 256, 0, core.ProgressDone, ``), record(2, 0, 0, core.ProgressAccepted, `{}`),
			}
			for i := range want {
				if len(want[i].Data) == 0 {
					want[i].Data = nil
				}
			}
			other := core.Record{Key: core.Key{Turn: core.TurnID{Path: kitchen, Seq: 4}}, Progress: core.ProgressDone}
			below := core.Record{Key: core.Key{Turn: core.TurnID{Path: shed, Seq: 3}}, Progress: core.ProgressDone}
			s.commit(&core.Batch{Journal: []core.Record{want[5], want[3], other, want[0], below}})
			s.commit(&core.Batch{Journal: []core.Record{want[2], want[1], want[4]}})
			s.reopen()
			same(t, "journal", s.journal(turn), want)
		},
		"a later record replaces an earlier one": func(t *testing.T, s *testedStore) {
			s.commit(&core.Batch{Journal: []core.Record{record(1, 1, 0, core.ProgressStarted, `{"long":"value"}`), record(1, 1, 0, core.ProgressFailed, `1`)}})
			s.commit(&core.Batch{Journal: []core.Record{record(1, 1, 0, core.ProgressDone, `2`)}})
			same(t, "journal", s.journal(turn), []core.Record{record(1, 1, 0, core.ProgressDone, `2`)})
		},
		"turns have records of their own": func(t *testing.T, s *testedStore) {
			of := func(n uint64) core.TurnID { return core.TurnID{Path: kitchen, Seq: n} }
			var b core.Batch
			for n := uint64(1); n < 600; n++ { // past all values of the last byte of a number
				b.Journal = append(b.Journal, core.Record{Key: core.Key{Turn: of(n)}, Progress: core.ProgressDone})
			}
			s.commit(&b)
			s.commit(&core.Batch{Closed: []core.TurnID{of(128), of(255), of(511)}})
			for n := uint64(1); n < 600; n++ {
				records := s.journal(of(n))
				closed := n == 128 || n == 255 || n == 511
				if closed != (len(records) == 0) || !closed && records[0].Key.Turn != of(n) {
					t.Errorf("turn %d has the records %v", n, records)
				}
			}
		},
		"a turn without records": func(t *testing.T, s *testedStore) {
			same(t, "journal", len(s.journal(turn)), 0)
		},
	}
}

func (s *testedStore) journal(turn core.TurnID) (records []core.Record) {
	s.t.Helper()
	s.view(func(v core.View) (err error) { records, err = v.Journal(turn); return err })
	return records
}

func (s *testedStore) state(place core.Path) (state core.State) {
	s.t.Helper()
	s.view(func(v core.View) (err error) {
		state, err = v.State(place)
		return err
	})
	return state
}
