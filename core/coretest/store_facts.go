package coretest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/epochs"
)

var (
	jayPath = core.MustPath("house/@user/7")
	annPath = core.MustPath("house/@user/8")
)

func (s *testedStore) save(f core.Fact) core.Fact {
	s.t.Helper()
	saved, err := s.SaveFact(context.Background(), f)
	if err != nil {
		s.t.Fatalf("SaveFact: %v", err)
	}
	return saved
}

// recall returns the texts of the facts that are found, in alphabetical order.
func (s *testedStore) recall(q core.FactQuery) []string {
	s.t.Helper()
	if q.N == 0 {
		q.N = 100
	}
	found, err := s.Recall(context.Background(), q)
	if err != nil {
		s.t.Fatalf("Recall: %v", err)
	}
	var texts []string
	for _, f := range found {
		texts = append(texts, f.Text)
	}
	slices.Sort(texts)
	return texts
}

func factCases() map[string]func(*testing.T, *testedStore) {
	about := []core.Path{jayPath}
	return map[string]func(*testing.T, *testedStore){
		"facts are seen where they were said, and below": factsStay,
		"facts are found by words, tags and people": func(t *testing.T, s *testedStore) {
			s.save(core.Fact{Text: "jay keeps bees", Origin: kitchen, About: about, Tags: []string{"Pets"}})
			s.save(core.Fact{Text: "ann keeps cats", Origin: kitchen, About: []core.Path{annPath}, Tags: []string{"pets"}})
			s.save(core.Fact{Text: "the oven is broken", Origin: kitchen})
			see := []core.Path{kitchen}
			same(t, "by a word", s.recall(core.FactQuery{See: see, Text: "bees"}), []string{"jay keeps bees"})
			same(t, "by two", s.recall(core.FactQuery{See: see, Text: "Oven cats?"}), []string{"ann keeps cats", "the oven is broken"})
			same(t, "by a tag", len(s.recall(core.FactQuery{See: see, Tags: []string{"pets"}})), 2)
			same(t, "by person", s.recall(core.FactQuery{See: see, About: about}), []string{"jay keeps bees"})
			same(t, "by all at once", s.recall(core.FactQuery{See: see, About: about, Tags: []string{"pets"}, Text: "cats"}), []string{"jay keeps bees"})
			same(t, "by nothing", len(s.recall(core.FactQuery{See: see})), 3)
			same(t, "one at most", len(s.recall(core.FactQuery{See: see, N: 1})), 1)
			same(t, "by a word that is not there", len(s.recall(core.FactQuery{See: see, Text: "xylophone"})), 0)
			s.reopen()
			same(t, "after opening again", s.recall(core.FactQuery{See: see, Text: "oven"}), []string{"the oven is broken"})
		},
		"the best comes first": func(t *testing.T, s *testedStore) {
			s.save(core.Fact{Text: "jay has a red bicycle", Origin: kitchen})
			s.save(core.Fact{Text: "the red door", Origin: kitchen})
			s.save(core.Fact{Text: "a red hat", Origin: kitchen})
			found, err := s.Recall(context.Background(), core.FactQuery{See: []core.Path{kitchen}, Text: "red bicycle", N: 3})
			if err != nil || len(found) != 3 || found[0].Text != "jay has a red bicycle" {
				t.Errorf("%+v, %v", found, err)
			}
		},
		"the newest wins": func(t *testing.T, s *testedStore) {
			old := s.save(core.Fact{Text: "jay lives in rome", Origin: kitchen, About: about, Topic: "home", By: jayPath, Time: morning, Importance: 3})
			again := s.save(core.Fact{Text: "Jay lives in Rome!", Origin: kitchen, About: about, Time: morning.Add(1), By: jayPath})
			same(t, "one that says the same", again.ID, old.ID)
			now := s.save(core.Fact{Text: "jay lives in oslo", Origin: kitchen, About: about, Topic: "Home", Time: morning.Add(2), By: annPath, Rank: core.RankModerator})
			same(t, "one of the same topic", now.ID, old.ID)
			same(t, "how often it was changed", len(now.Former), 2)
			same(t, "what it said at first", now.Former[1], core.Former{Text: "jay lives in rome", Time: morning, By: jayPath})
			now.Text = "jay lives in turku"
			now = s.save(now)
			same(t, "how often one was changed that was read and saved again", len(now.Former), 3)
			now.Text = "jay lives in oslo"
			now = s.save(now)
			same(t, "what it said first of all", now.Former[3].Text, "jay lives in rome")
			same(t, "what mattered matters", now.Importance, 3)
			same(t, "found", s.recall(core.FactQuery{See: []core.Path{kitchen}}), []string{"jay lives in oslo"})
			same(t, "found by its topic", s.recall(core.FactQuery{See: []core.Path{kitchen}, Tags: []string{"home"}}), []string{"jay lives in oslo"})
			same(t, "found by old words", len(s.recall(core.FactQuery{See: []core.Path{kitchen}, Text: "rome"})), 0)
			if other := s.save(core.Fact{Text: "jay lives in bern", Origin: garden, About: about, Topic: "home"}); other.ID == old.ID {
				t.Error("a fact of another origin was replaced")
			}
		},
		"others' facts stay, each with who told it": othersStay,
		"a fact is changed and dropped from where it is seen": func(t *testing.T, s *testedStore) {
			f := s.save(core.Fact{Text: "a secret", Origin: garden})
			_, err := s.SaveFact(context.Background(), core.Fact{ID: f.ID, Text: "changed", Origin: kitchen})
			wantError(t, "SaveFact from elsewhere", err, core.ErrUnknown)
			wantError(t, "DropFact from elsewhere", s.DropFact(context.Background(), f.ID, kitchen, street), core.ErrUnknown)
			changed := s.save(core.Fact{ID: f.ID, Text: "told in the shed", Origin: shed})
			same(t, "its origin", changed.Origin, garden)
			same(t, "found", s.recall(core.FactQuery{See: []core.Path{garden}}), []string{"told in the shed"})
			wantError(t, "DropFact", s.DropFact(context.Background(), f.ID, street, shed), nil)
			wantError(t, "DropFact again", s.DropFact(context.Background(), f.ID, shed), core.ErrUnknown)
			same(t, "left", len(s.recall(core.FactQuery{See: []core.Path{garden}})), 0)
		},
		"what cannot be a fact is refused": func(t *testing.T, s *testedStore) {
			for name, f := range map[string]core.Fact{"empty": {}, "endless": {Text: strings.Repeat("x", 1<<20)}, "no such": {ID: "zzzz", Text: "x"}} {
				if _, err := s.SaveFact(context.Background(), f); err == nil {
					t.Errorf("%s: no error", name)
				}
			}
		},
		"who is forgotten does not come back":                 forgotten,
		"nor do words from before, however they come":         oldWords,
		"nor do forwards of nobody knows whom":                oldForwards,
		"requests are dated by the platform's clock":          wrongClocks,
		"what was settled beside a turn goes with its author": forgottenBeside,
		"what somebody else decided goes with who asked":      forgottenAsker,
	}
}

// factsStay: no query finds facts from other places.
func factsStay(t *testing.T, s *testedStore) {
	for text, origin := range map[string]core.Path{"told the garden": garden, "told the shed": shed, "told the kitchen": kitchen, "told everybody": {}} {
		s.save(core.Fact{Text: text, Origin: origin, About: []core.Path{jayPath}, Tags: []string{"x"}})
	}
	for _, q := range []core.FactQuery{{}, {Text: "told"}, {Tags: []string{"x"}}, {About: []core.Path{jayPath}}} {
		for _, tc := range []struct{ see, want []string }{
			{[]string{"house/garden"}, []string{"told everybody", "told the garden"}},
			{[]string{"house/garden/shed"}, []string{"told everybody", "told the garden", "told the shed"}},
			{[]string{"house/garden2"}, []string{"told everybody"}},
			{[]string{"house/kitchen", "house/garden"}, []string{"told everybody", "told the garden", "told the kitchen"}},
			{nil, nil},
		} {
			q.See = nil
			for _, place := range tc.see {
				q.See = append(q.See, core.MustPath(place))
			}
			same(t, strings.Join(tc.see, " and "), s.recall(q), tc.want)
		}
	}
}

// forgottenBeside: the answer to a command that was settled beside a running turn is erased with
// the command's author, whether it is written before or after that.
func forgottenBeside(t *testing.T, s *testedStore) {
	other := asked(kitchen, "1", "still waits")
	other.Message.Author.ID = "8"
	var turns []core.TurnID
	for _, e := range s.append(other, asked(kitchen, "2", "SECRET one"), asked(kitchen, "3", "SECRET two"))[1:] {
		turns = append(turns, core.TurnID{Path: kitchen, Seq: e.Message.Seq})
	}
	end := func(turn core.TurnID) *core.Batch {
		reply := said(kitchen, "r"+turn.String(), "you said SECRET")
		reply.Self, reply.Message.Author = true, core.Author{Name: "Bot", Bot: true}
		opened := core.Record{Key: core.Key{Turn: turn}, Progress: core.ProgressDone, Data: fmt.Appendf(nil, `{"last":%d,"attempts":1}`, turn.Seq)}
		return &core.Batch{Append: []core.Entry{reply}, Journal: []core.Record{opened}, Settled: []core.TurnID{turn}}
	}
	s.commit(end(turns[0]))
	s.commit(&core.Batch{Journal: end(turns[1]).Journal})
	wantError(t, "Forget", s.Forget(context.Background(), jayPath), nil)
	s.commit(end(turns[1]))
	s.reopen()
	for _, e := range s.last(kitchen, 100) {
		if strings.Contains(e.Message.Text, "SECRET") {
			t.Errorf("it is still there: %+v", e.Message)
		}
	}
	for _, turn := range turns {
		same(t, "journal", len(s.journal(turn)), 0)
	}
	same(t, "due", words(s.due(kitchen)), []string{"still waits"})
}

// forgottenAsker: the answer of a turn in which somebody else decides what a user asked for is erased with that user,
// whether it is written before or after that. The turn writes no records afterwards, either.
func forgottenAsker(t *testing.T, s *testedStore) {
	asks := core.TurnID{Path: kitchen, Seq: s.append(asked(kitchen, "1", "SECRET"))[0].Message.Seq}
	s.commit(&core.Batch{Answered: []core.TurnID{asks}})
	decide := func(id string) (core.TurnID, *core.Batch) {
		press := asked(kitchen, id, "yes")
		press.Message.Author.ID = "8"
		turn := core.TurnID{Path: kitchen, Seq: s.append(press)[0].Message.Seq}
		reply := said(kitchen, "r"+id, "SECRET is done")
		reply.Self, reply.Message.Author = true, core.Author{Name: "Bot", Bot: true}
		data := core.JSON(core.TurnRecord{Last: turn.Seq, Attempts: 1, Askers: []string{"7"}})
		return turn, &core.Batch{
			Append: []core.Entry{reply}, Answered: []core.TurnID{turn},
			Journal: []core.Record{{Key: core.Key{Turn: turn}, Progress: core.ProgressStarted, Data: data}},
		}
	}
	_, end := decide("2")
	s.commit(end)
	turn, end := decide("3")
	s.commit(&core.Batch{Journal: end.Journal})
	began := epochs.WithTurn(t.Context(), turn, s.Epoch())
	wantError(t, "Forget", s.Forget(t.Context(), jayPath), nil)
	step := core.Key{Turn: asks, Round: 1, Step: 1}
	done := []core.Record{{Key: step, Progress: core.ProgressDone, Data: []byte(`"SECRET"`)}}
	wantError(t, "Commit", s.Commit(began, &core.Batch{Journal: done}), nil)
	wantError(t, "Commit", s.Commit(began, end), nil)
	s.reopen()
	var left []string
	for _, text := range words(s.last(kitchen, 100)) {
		if text != "" {
			left = append(left, text)
		}
	}
	same(t, "left", left, []string{"yes", "yes"})
	same(t, "journals", len(s.journal(asks))+len(s.journal(turn)), 0)
}

// forgotten: everything about a user is erased, and turns and facts that were begun before store nothing about them.
func forgotten(t *testing.T, s *testedStore) {
	mine := func(id, text string) core.Entry { e := said(kitchen, id, text); e.Message.Author.ID = "8"; return e }
	quoting := mine("3", "as he said")
	quoting.Message.ReplyTo = &core.Quote{ID: "1", From: core.Author{ID: "7", Name: "Jay"}, Text: "SECRET one"}
	passing := mine("5", "he wrote this")
	passing.Message.Foreign = []core.Foreign{{Kind: core.ForeignForward, From: core.Author{ID: "7", Name: "Jay"}, Text: "SECRET letter"}, {Kind: core.ForeignEmbed, Text: "a card"}}
	s.append(asked(kitchen, "1", "SECRET one"), mine("2", "mine"), quoting, passing)
	reply := said(kitchen, "r1", "you told me SECRET")
	reply.Self, reply.Message.Author = true, core.Author{Name: "Bot", Bot: true}
	s.commit(&core.Batch{Append: []core.Entry{reply}, Answered: []core.TurnID{{Path: kitchen, Seq: 1}}})
	running := core.TurnID{Path: kitchen, Seq: s.append(asked(kitchen, "4", "SECRET two"))[0].Message.Seq}
	opened := core.Record{Key: core.Key{Turn: running}, Progress: core.ProgressStarted, Data: []byte(`{"last":6,"attempts":1}`)}
	s.commit(&core.Batch{Journal: []core.Record{opened}})
	epoch := s.Epoch()
	s.save(core.Fact{Text: "SECRET about", Origin: kitchen, About: []core.Path{jayPath}})
	s.save(core.Fact{Text: "SECRET by", Origin: kitchen, By: jayPath})
	s.save(core.Fact{Text: "about ann", Origin: kitchen, About: []core.Path{annPath}})
	wantError(t, "Forget", s.Forget(context.Background(), jayPath), nil)

	if _, err := s.SaveFact(epochs.With(context.Background(), epoch), core.Fact{Text: "SECRET again", About: []core.Path{jayPath}}); !errors.Is(err, core.ErrForgotten) {
		t.Errorf("SaveFact of what was read before: %v, want %v", err, core.ErrForgotten)
	}
	turn := epochs.WithTurn(context.Background(), running, epoch)
	_, err := s.SaveFact(turn, core.Fact{Text: "SECRET that names nobody", Origin: kitchen})
	wantError(t, "SaveFact of a turn that answers them", err, core.ErrForgotten)
	_, err = s.Items("quiz").Put(turn, core.Item{Path: kitchen, Key: "k", Value: json.RawMessage(`"SECRET"`)})
	wantError(t, "Put of a turn that answers them", err, core.ErrForgotten)
	late := said(kitchen, "r2", "you say SECRET")
	late.Self = true
	s.commit(&core.Batch{Append: []core.Entry{late}, Journal: []core.Record{opened}, Answered: []core.TurnID{running}})
	s.reopen()
	var left []string
	for _, e := range s.last(kitchen, 100) {
		if e.Message.Text != "" {
			left = append(left, e.Message.Text)
		}
		if e.Message.ReplyTo != nil && e.Message.ReplyTo.Text != "" || e.Message.Author.ID == "7" {
			t.Errorf("he stands there still: %+v", e.Message)
		}
		for _, o := range e.Message.Foreign {
			if o.From.ID == "7" || o.Text != "a card" {
				t.Errorf("forwarded words of somebody forgotten are left: %+v", o)
			}
		}
	}
	same(t, "left", left, []string{"mine", "as he said", "he wrote this"})
	same(t, "due", len(s.due(kitchen)), 0)
	same(t, "journal", len(s.journal(running)), 0)
	same(t, "facts", s.recall(core.FactQuery{See: []core.Path{kitchen}}), []string{"about ann"})
	b := &core.Batch{Append: []core.Entry{said(kitchen, "1", "SECRET one"), said(kitchen, "new", "hello")}}
	b.Append[1].Message.Time = time.Now()
	s.commit(b)
	same(t, "known when it is delivered again", b.Known, []bool{true, false})
}

// oldWords: what a user wrote before they asked to be forgotten is not stored, even if the store
// never had it: as a message, a quote, a forward, or the message that a command is about. Nor are
// quotes of the bot's answers to them. What they write afterwards is stored.
func oldWords(t *testing.T, s *testedStore) {
	request := asked(kitchen, "1", "forget me")
	request.Message.Time = time.Now().Add(30 * time.Second).Truncate(time.Second) // the platform's clock is ahead
	s.append(request)
	reply := said(kitchen, "r1", "SECRET answer")
	reply.Self, reply.Message.Author = true, core.Author{ID: "99", Name: "Bot", Bot: true}
	s.commit(&core.Batch{Append: []core.Entry{reply}, Answered: []core.TurnID{{Path: kitchen, Seq: 1}}})
	wantError(t, "Forget", s.Forget(context.Background(), jayPath), nil)
	before, then := request.Message.Time.Add(-time.Second), request.Message.Time
	jay := core.Author{ID: "7", Name: "Jay"}
	ann := func(id, text string) core.Entry {
		e := said(kitchen, id, text)
		e.Message.Author, e.Message.Time = core.Author{ID: "8", Name: "Ann"}, then
		return e
	}
	var b core.Batch
	for i, when := range []time.Time{before, then} {
		secret := []string{"SECRET", "new"}[i]
		words := asked(garden, "own"+secret, secret)
		words.Message.Time = when
		quoting := ann("quote"+secret, "he said that")
		quoting.Message.ReplyTo = &core.Quote{ID: "q" + secret, From: jay, Text: secret, Time: when}
		passing := ann("forward"+secret, "look")
		passing.Message.Foreign = []core.Foreign{{Kind: core.ForeignForward, From: jay, Text: secret, Time: when}}
		command := ann("command"+secret, "/remember")
		command.Kind, command.Target, command.Due = core.KindCommand, "c"+secret, true
		command.Command, command.Message.Foreign = &core.Command{Name: "remember"}, passing.Message.Foreign
		b.Append = append(b.Append, words, quoting, passing, command)
	}
	answer := ann("quote", "what was that?")
	answer.Message.ReplyTo = &core.Quote{ID: "r1", From: core.Author{ID: "99", Bot: true}, Text: "SECRET answer", Time: then}
	b.Append = append(b.Append, answer)
	s.commit(&b)
	s.reopen()
	same(t, "refused", b.Known, []bool{true, false, false, true, false, false, false, false, false})
	var got []string
	for _, e := range append(s.last(garden, 9), s.last(kitchen, 9)...) {
		if e.Deleted {
			continue
		}
		text := e.Message.AllText()
		if q := e.Message.ReplyTo; q != nil {
			text += " > " + q.Text
		}
		got = append(got, text)
	}
	want := []string{"new", "he said that > ", "look", "he said that > new", "look\nnew", "/remember\nnew", "what was that? > "}
	same(t, "stored", got, want)
	edited := b.Append[2].Event // and what an edit brings
	edited.Kind, edited.Message.Text = core.KindEdit, "look at that"
	edited.Message.Foreign = []core.Foreign{{Kind: core.ForeignForward, From: jay, Text: "SECRET", Time: before}, {From: jay, Text: "new", Time: then}}
	s.change(edited)
	e := s.entry(kitchen, "forwardSECRET")
	same(t, "edited", e.Message.AllText(), "look at that\nnew")
	same(t, "due", words(s.due(garden)), []string{"new"})
	same(t, "due", words(s.due(kitchen)), []string{"/remember"})
}

// oldForwards: a forwarded message of an unknown author from before a user asked to be forgotten
// is stored without its text, unless the original is stored, too.
func oldForwards(t *testing.T, s *testedStore) {
	kept := said(garden, "g", "of ann")
	kept.Message.Author.ID = "8"
	request := asked(kitchen, "1", "forget me")
	request.Message.Time = time.Now().Truncate(time.Second)
	s.append(kept, asked(garden, "g7", "SECRET"), request)
	wantError(t, "Forget", s.Forget(context.Background(), jayPath), nil)
	before, then := request.Message.Time, request.Message.Time.Add(time.Second)
	forward := core.Foreign{Kind: core.ForeignForward, From: core.Author{Name: "Jay"}, Text: "SECRET", Time: before}
	foreign := []core.Foreign{forward, forward, forward, forward, {Kind: core.ForeignEmbed, Text: "a card"}}
	foreign[1].Path, foreign[1].ID = garden, "g7"
	foreign[2].Path, foreign[2].ID, foreign[2].Text = garden, "g", "kept"
	foreign[3].Time, foreign[3].Text = then, "new"
	e := said(kitchen, "f", "look")
	e.Message.Author.ID, e.Message.Foreign, e.Message.Time = "8", foreign, then
	s.append(e)
	s.reopen()
	e = s.entry(kitchen, "f")
	same(t, "stored", e.Message.AllText(), "look\nkept\nnew\na card")
	same(t, "forwards", len(e.Message.Foreign), 5)
	same(t, "without their words", e.Message.Foreign[0].From, core.Author{})
	elsewhere := said(core.MustPath("street/1"), "f", "look")
	elsewhere.Message.Foreign = foreign[:1]
	s.append(elsewhere)
	e = s.entry(elsewhere.Message.Path, "f")
	same(t, "elsewhere", e.Message.AllText(), "look\nSECRET")
}

// wrongClocks: the platform's clock decides whether a message is older than a request to be forgotten,
// even if this machine's clock differs much from it.
func wrongClocks(t *testing.T, s *testedStore) {
	for i, ahead := range []time.Duration{-2 * time.Hour, 0, 2 * time.Hour} {
		for j, last := range []time.Duration{0, -time.Hour} { // they ask themselves, or somebody else does
			who := fmt.Sprint(10*i + j)
			words := func(id string, when time.Duration) core.Entry {
				e := said(kitchen, id+who, id)
				e.Message.Author.ID, e.Message.Ahead = who, ahead
				e.Message.Time = time.Now().Add(when - ahead)
				return e
			}
			s.append(words("last", last))
			person := core.MustPath("house/@user/" + who)
			wantError(t, "Forget", s.Forget(context.Background(), person), nil)
			b := &core.Batch{Append: []core.Entry{words("old", -20*time.Minute), words("new", 20*time.Minute)}}
			s.commit(b)
			same(t, fmt.Sprintf("known, %s ahead, last heard %s ago", ahead, -last), b.Known, []bool{true, false})
		}
	}
}

// othersStay: a newer fact replaces facts by its author or about its author, and no others. Forgetting
// a user does not erase what others said.
func othersStay(t *testing.T, s *testedStore) {
	see := core.FactQuery{See: []core.Path{kitchen}}
	tell := func(by core.Path, text, topic string, rank core.Rank) core.Fact {
		about := []core.Path{jayPath}
		return s.save(core.Fact{Text: text, Origin: kitchen, About: about, Topic: topic, By: by, Rank: rank})
	}
	eve := core.MustPath("house/@user/9")
	tell(annPath, "jay lives in rome", "home", core.RankMember)
	tell(eve, "jay lives in a cave", "home", core.RankMember)
	tell(eve, "jay lives in rome", "", core.RankMember) // the same words
	tell(core.Path{}, "jay lives in space", "home", core.RankBot)
	same(t, "all are kept", s.recall(see), []string{"jay lives in a cave", "jay lives in rome", "jay lives in rome", "jay lives in space"})
	tell(eve, "jay lives in a hole", "home", core.RankMember)
	same(t, "her own is replaced", s.recall(see), []string{"jay lives in a hole", "jay lives in rome", "jay lives in rome", "jay lives in space"})
	wantError(t, "Forget", s.Forget(context.Background(), eve), nil)
	same(t, "hers go with her", s.recall(see), []string{"jay lives in rome", "jay lives in space"})

	tell(eve, "jay lives in a cave", "home", core.RankMember)
	mine := tell(jayPath, "jay lives in oslo", "home", core.RankMember)
	same(t, "what is about him is his", s.recall(see), []string{"jay lives in oslo"})
	same(t, "what was said before", len(mine.Former), 3)

	s.save(core.Fact{Text: "we meet on friday", Origin: kitchen, Topic: "meeting", By: eve})
	s.save(core.Fact{Text: "we meet on monday", Origin: kitchen, Topic: "meeting", By: annPath, Rank: core.RankModerator})
	wantError(t, "Forget", s.Forget(context.Background(), eve), nil)
	same(t, "what others say now stays", s.recall(see), []string{"jay lives in oslo", "we meet on monday"})
	found, err := s.Recall(context.Background(), core.FactQuery{See: see.See, N: 9})
	for _, f := range found {
		for _, old := range f.Former {
			if old.By == eve || err != nil {
				t.Errorf("%+v still tells what she said; %v", f, err)
			}
		}
	}
}
