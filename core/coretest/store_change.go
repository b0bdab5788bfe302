package coretest

import (
	"slices"
	"strings"
	"testing"

	"synthbot/core"
)

func changeCases() map[string]func(*testing.T, *testedStore) {
	edit := func(id, text string) core.Event {
		return core.Event{Kind: core.KindEdit, Message: core.Message{Path: kitchen, ID: id, Text: text}}
	}
	deletion := func(id string) core.Event {
		return core.Event{Kind: core.KindDeletion, Message: core.Message{Path: kitchen}, Target: id}
	}
	reaction := func(person, emoji string) core.Event {
		return core.Event{Kind: core.KindReaction, Message: core.Message{Path: kitchen, Author: core.Author{ID: person}}, Target: "1", Data: emoji}
	}
	return map[string]func(*testing.T, *testedStore){
		"an edit replaces the text and counts": func(t *testing.T, s *testedStore) {
			s.append(said(kitchen, "1", "one"), said(kitchen, "2", "two"))
			s.change(edit("1", "uno"), edit("1", "eins"))
			got := s.entry(kitchen, "1")
			same(t, "text", got.Message.Text, "eins")
			same(t, "revision", got.Rev, 2)
			same(t, "order", words(s.last(kitchen, 5)), []string{"eins", "two"})
			s.change(edit("1", "eins"))
			same(t, "revision after nothing new", s.entry(kitchen, "1").Rev, 2)
		},
		"recognised speech is the text, and no revision": recognised,
		"a transcript leaves what was edited meanwhile":  heardLate,
		"an edited command is the new one, or a message": editedCommand,
		"an edit leaves attachments alone unless it names them": func(t *testing.T, s *testedStore) {
			e := said(kitchen, "1", "look")
			e.Message.Attachments = []core.Attachment{{Kind: core.MediaImage, Ref: "r"}}
			s.append(e)
			s.change(edit("1", "see"))
			same(t, "attachments", len(s.entry(kitchen, "1").Message.Attachments), 1)
			without := edit("1", "see")
			without.Message.Attachments = []core.Attachment{}
			s.change(without)
			same(t, "attachments after they went", len(s.entry(kitchen, "1").Message.Attachments), 0)
		},
		"an installation keeps its name, and shares it with none":        installationName,
		"foreign words are kept as they came, and an edit replaces them": foreignWords,
		"a deletion keeps the number and drops the words": func(t *testing.T, s *testedStore) {
			e := said(kitchen, "1", "secret")
			e.Message.Foreign = []core.Foreign{{Kind: core.ForeignForward, Text: "secret"}}
			e.Message.Attachments = []core.Attachment{{Kind: core.MediaImage, Ref: "r"}}
			e.Message.ReplyTo = &core.Quote{ID: "0", Text: "quoted"}
			e.Reply = "what stands fast"
			s.append(e, said(kitchen, "2", "two"))
			s.change(reaction("7", "👍"), deletion("1"))
			got := s.entry(kitchen, "1")
			want := core.Entry{Event: core.Event{Kind: core.KindMessage, Message: core.Message{
				Path: kitchen, ID: "1", Seq: 1, Author: e.Message.Author, Time: morning}}, Deleted: true}
			same(t, "entry", got, want)
			same(t, "spoken", got.Spoken(), false)
			s.change(edit("1", "back"), reaction("7", "👍"))
			same(t, "entry after more", s.entry(kitchen, "1"), want)
			b := &core.Batch{Append: []core.Entry{e}}
			s.commit(b)
			same(t, "known still", b.Known, []bool{true})
		},
		"changes of what is not there": func(t *testing.T, s *testedStore) {
			s.append(said(garden, "1", "elsewhere"))
			s.change(edit("1", "x"), deletion("1"), reaction("7", "👍"), edit("", "x"), deletion(""),
				core.Event{Kind: core.KindMigration, Message: core.Message{Path: kitchen}})
			same(t, "garden", words(s.last(garden, 5)), []string{"elsewhere"})
			same(t, "kitchen", len(s.last(kitchen, 5)), 0)
		},
		"a batch changes what it appended": func(t *testing.T, s *testedStore) {
			s.commit(&core.Batch{Append: []core.Entry{said(kitchen, "1", "one")}, Change: []core.Event{edit("1", "uno")}})
			same(t, "text", s.entry(kitchen, "1").Message.Text, "uno")
		},
		"reactions are counted by person": func(t *testing.T, s *testedStore) {
			s.append(said(kitchen, "1", "one"))
			s.change(reaction("7", "👍"), reaction("8", "👍"), reaction("8", "🎉"), reaction("7", "👍"))
			same(t, "reactions", s.entry(kitchen, "1").Reactions, map[string]int{"👍": 2, "🎉": 1})
			s.reopen()
			s.change(reaction("8", ""), reaction("9", ""))
			same(t, "after taking away", s.entry(kitchen, "1").Reactions, map[string]int{"👍": 1})
			s.change(reaction("7", ""))
			same(t, "at the end", len(s.entry(kitchen, "1").Reactions), 0)
			same(t, "revision", s.entry(kitchen, "1").Rev, 0)
		},
		"single reactions are taken away, and everybody's": func(t *testing.T, s *testedStore) {
			s.append(said(kitchen, "1", "one"))
			put := func() {
				s.change(reaction("7", "👍"), reaction("7", "🎉"), reaction("8", "👍"), reaction("8", "-x"), reaction("", "👀"))
				same(t, "reactions", s.entry(kitchen, "1").Reactions, map[string]int{"👍": 2, "🎉": 1, "👀": 1})
			}
			put()
			s.reopen()
			s.change(reaction("7", "-👍"), reaction("9", "-🎉"))
			same(t, "without one", s.entry(kitchen, "1").Reactions, map[string]int{"👍": 1, "🎉": 1, "👀": 1})
			s.change(reaction("", ""))
			same(t, "without any", len(s.entry(kitchen, "1").Reactions), 0)
			put()
			s.change(reaction("", "-👍"), reaction("", "-👀"))
			same(t, "without everybody's", s.entry(kitchen, "1").Reactions, map[string]int{"🎉": 1})
			s.change(reaction("8", ""), reaction("8", "👍"))
			same(t, "put again", s.entry(kitchen, "1").Reactions, map[string]int{"🎉": 1, "👍": 1})
			same(t, "revision", s.entry(kitchen, "1").Rev, 0)
		},
	}
}

func moveCases() map[string]func(*testing.T, *testedStore) {
	barn := core.MustPath("house/barn")
	migration := core.Event{Kind: core.KindMigration, Message: core.Message{Path: kitchen}, To: barn}
	return map[string]func(*testing.T, *testedStore){
		"a migrated place goes on": func(t *testing.T, s *testedStore) {
			s.append(asked(kitchen, "1", "one"), asked(kitchen, "2", "two"))
			s.answer(kitchen, 1)
			key := core.Key{Turn: core.TurnID{Path: kitchen, Seq: 2}}
			s.commit(&core.Batch{Journal: []core.Record{{Key: key, Progress: core.ProgressStarted}}})
			s.change(migration)
			s.reopen()
			same(t, "places", s.places(core.Path{}), []core.Path{barn})
			same(t, "waiting", s.waiting(), []core.Path{barn})
			for _, name := range []core.Path{kitchen, barn} {
				same(t, "history", words(s.last(name, 9)), []string{"one", "two"})
				same(t, "due", words(s.due(name)), []string{"two"})
				same(t, "head", s.head(name), core.Head{Path: barn, Last: 2, Count: 2, Answered: 1, Time: morning})
				same(t, "journal", len(s.journal(core.TurnID{Path: name, Seq: 2})), 1)
			}
			got := s.append(said(kitchen, "3", "late"), said(barn, "4", "new"))
			same(t, "numbers", seqs(got), []uint64{3, 4})
			same(t, "path", got[0].Message.Path, barn)
			s.answer(kitchen, 2)
			same(t, "waiting at the end", len(s.waiting()), 0)
		},
		"questions name their turns by the new numbers": func(t *testing.T, s *testedStore) {
			with := func(place core.Path, id, data string) core.Entry {
				e := said(place, id, "x")
				e.Data = data
				return e
			}
			s.append(said(barn, "0", "x"), with(barn, "1", "confirm:1.1.1"))
			s.append(with(kitchen, "1", "confirm:7.1.2"), with(kitchen, "2", "confirm:x"), with(kitchen, "3", "other"))
			s.append(with(kitchen, "5", "confirm:2"))
			s.change(migration)
			s.append(with(kitchen, "4", "confirm:7.1.2:y"), with(barn, "4", "confirm:9.1.2:y"))
			s.reopen()
			var data []string
			for _, e := range s.last(barn, 9) {
				data = append(data, e.Data)
			}
			same(t, "data", data, []string{
				"", "confirm:1.1.1", "confirm:9.1.2", "confirm:x", "other", "confirm:2", "confirm:9.1.2:y",
				"confirm:9.1.2:y",
			})
		},
		"ids of the old place are no ids of the new one": func(t *testing.T, s *testedStore) {
			s.append(said(kitchen, "1", "old one"))
			s.change(migration)
			b := &core.Batch{Append: []core.Entry{said(barn, "1", "new one"), said(kitchen, "1", "old one again")}}
			s.commit(b)
			same(t, "known", b.Known, []bool{false, true})
			same(t, "numbers", seqs(b.Append), []uint64{2, 1})
			same(t, "old", s.entry(kitchen, "1").Message.Text, "old one")
			same(t, "new", s.entry(barn, "1").Message.Text, "new one")
			s.change(core.Event{Kind: core.KindEdit, Message: core.Message{Path: kitchen, ID: "1", Text: "old edited"}})
			same(t, "history", words(s.last(barn, 9)), []string{"old edited", "new one"})
		},
		"migrating twice is migrating once": func(t *testing.T, s *testedStore) {
			s.append(asked(kitchen, "1", "one"))
			back := core.Event{Kind: core.KindMigration, Message: core.Message{Path: barn}, To: kitchen}
			inside := core.Event{Kind: core.KindMigration, Message: core.Message{Path: barn}, To: core.MustPath("house/barn/loft")}
			s.change(migration, migration, back, inside)
			same(t, "places", s.places(core.Path{}), []core.Path{barn})
			same(t, "history", words(s.last(barn, 9)), []string{"one"})
		},
		"what lies below moves too": func(t *testing.T, s *testedStore) {
			s.append(asked(shed, "1", "tools"), said(fence, "1", "stays"))
			s.change(core.Event{Kind: core.KindMigration, Message: core.Message{Path: garden}, To: street})
			same(t, "places", s.places(core.Path{}), []core.Path{fence, core.MustPath("town/street/shed")})
			s.append(said(shed, "2", "more"), said(core.MustPath("house/garden/pond"), "1", "frog"))
			same(t, "shed", words(s.last(shed, 9)), []string{"tools", "more"})
			same(t, "pond", words(s.last(core.MustPath("town/street/pond"), 9)), []string{"frog"})
		},
		"a chain of migrations": func(t *testing.T, s *testedStore) {
			s.append(asked(kitchen, "1", "one"))
			s.change(migration)
			s.append(asked(barn, "2", "two"))
			s.change(core.Event{Kind: core.KindMigration, Message: core.Message{Path: barn}, To: street})
			same(t, "history", words(s.last(kitchen, 9)), []string{"one", "two"})
			same(t, "entry", s.entry(kitchen, "1").Message.Path, street)
			same(t, "waiting", s.waiting(), []core.Path{street})
		},
		"a migration into a place that has begun": migratedIntoUsedPlace,
	}
}

// migratedIntoUsedPlace: a place that already has entries keeps its numbers, those of the
// moved entries rise. What waits still waits, and what was answered does not.
func migratedIntoUsedPlace(t *testing.T, s *testedStore) {
	s.append(asked(kitchen, "1", "old answered"), asked(kitchen, "2", "old waiting"), said(kitchen, "3", "old talk"))
	s.answer(kitchen, 1)
	s.append(asked(garden, "1", "new answered"), asked(garden, "2", "new waiting"))
	s.answer(garden, 1)
	turn := core.TurnID{Path: kitchen, Seq: 2}
	s.commit(&core.Batch{Journal: []core.Record{{Key: core.Key{Turn: turn}, Progress: core.ProgressStarted}}})
	s.change(core.Event{Kind: core.KindMigration, Message: core.Message{Path: kitchen}, To: garden})

	same(t, "due", words(s.due(garden)), []string{"new waiting", "old waiting"})
	same(t, "numbers", seqs(s.due(garden)), []uint64{2, 4})
	same(t, "what was answered is due", s.entry(kitchen, "1").Due, false)
	same(t, "journal", len(s.journal(turn)), 1)
	s.commit(&core.Batch{Answered: []core.TurnID{turn}}) // the old place's turn ends
	same(t, "due after the old turn", words(s.due(garden)), []string{"new waiting"})
	s.reopen()
	same(t, "due after opening again", words(s.due(garden)), []string{"new waiting"})
	got := s.append(asked(garden, "3", "newest"))
	s.answer(garden, 2)
	same(t, "due after the new turn", words(s.due(garden)), []string{"newest"})
	s.answer(garden, got[0].Message.Seq)
	same(t, "waiting", len(s.waiting()), 0)
	same(t, "history", len(s.last(garden, 99)), 6)
}

func installationName(t *testing.T, s *testedStore) {
	name := s.Installation()
	s.reopen()
	same(t, "name", s.Installation(), name)
	other := s.open(t, t.TempDir())
	t.Cleanup(func() { other.Close() })
	if name == "" || other.Installation() == name {
		t.Errorf("two installations are %q and %q", name, other.Installation())
	}
}

func foreignWords(t *testing.T, s *testedStore) {
	e := said(kitchen, "1", "look at this")
	e.Message.Foreign = []core.Foreign{
		{Kind: core.ForeignForward, From: core.Author{ID: "9", Name: "Bob", Tag: "@bob"}, Text: "a tale", Time: morning},
		{Kind: core.ForeignEmbed, Text: "a card"},
	}
	s.append(e)
	s.reopen()
	same(t, "foreign words", s.entry(kitchen, "1").Message.Foreign, e.Message.Foreign)
	same(t, "own words", s.entry(kitchen, "1").Message.Text, "look at this")
	other := core.Event{Kind: core.KindEdit, Message: core.Message{Path: kitchen, ID: "1", Text: "look at this"}}
	other.Message.Foreign = e.Message.Foreign[1:]
	s.change(other)
	got := s.entry(kitchen, "1")
	same(t, "foreign words after an edit", got.Message.Foreign, e.Message.Foreign[1:])
	same(t, "revision", got.Rev, 1)
	s.change(other)
	same(t, "revision after nothing new", s.entry(kitchen, "1").Rev, 1)
}

// recognised: words from speech recognition become the text of a voice message.
func recognised(t *testing.T, s *testedStore) {
	e := said(kitchen, "1", "")
	e.Message.Voice, e.Message.Attachments = true, []core.Attachment{{Kind: core.MediaAudio, Ref: "r"}}
	s.append(e)
	heard := core.Event{Kind: core.KindEdit, Message: core.Message{Path: kitchen, ID: "1", Text: "turn left"}}
	heard.Message.Heard = 87
	s.change(heard)
	got := s.entry(kitchen, "1")
	same(t, "text", got.Message.Text, "turn left")
	same(t, "confidence", got.Message.Heard, 87)
	same(t, "revision", got.Rev, 0)
	same(t, "attachments", len(got.Message.Attachments), 1)
	s.change(core.Event{Kind: core.KindEdit, Message: core.Message{Path: kitchen, ID: "1", Voice: true}})
	same(t, "text after the platform repeats the message", s.entry(kitchen, "1").Message.Text, "turn left")
	for _, caption := range []string{"to the shop", "to the shop", "home", ""} {
		s.change(core.Event{Kind: core.KindEdit, Message: core.Message{Path: kitchen, ID: "1", Voice: true, Text: caption}})
		s.reopen()
		got := s.entry(kitchen, "1").Message.Text
		same(t, "text with the caption "+caption, got, strings.TrimSpace(caption+"\nturn left"))
	}
	passedOn := said(kitchen, "2", "")
	passedOn.Message.Foreign = []core.Foreign{{Kind: core.ForeignForward, Text: "listen", Time: morning, Voice: true}}
	s.append(passedOn)
	edit := core.Event{Kind: core.KindEdit, Message: core.Message{Path: kitchen, ID: "2", Heard: 50, Foreign: slices.Clone(passedOn.Message.Foreign)}}
	edit.Message.Foreign[0].Text = "listen\nturn right"
	s.change(edit)
	s.change(core.Event{Kind: core.KindEdit, Message: core.Message{Path: kitchen, ID: "2", Foreign: passedOn.Message.Foreign}})
	s.reopen()
	same(t, "what others said in a voice message", s.entry(kitchen, "2").Message.Foreign, edit.Message.Foreign)
	s.change(core.Event{Kind: core.KindDeletion, Message: core.Message{Path: kitchen}, Target: "1"})
	same(t, "confidence after its deletion", s.entry(kitchen, "1").Message.Heard, 0)
}

func editedCommand(t *testing.T, s *testedStore) {
	e := asked(kitchen, "1", "/buy tea")
	e.Kind, e.Command = core.KindCommand, &core.Command{Name: "buy", Args: []string{"tea"}}
	s.append(e)
	edit := core.Event{Kind: core.KindEdit, Message: core.Message{Path: kitchen, ID: "1", Text: "/buy milk"}}
	edit.Command = &core.Command{Name: "buy", Args: []string{"milk"}}
	s.change(edit)
	s.reopen()
	same(t, "command", s.entry(kitchen, "1").Command, edit.Command)
	edit.Message.Text, edit.Command = "never mind", nil
	s.change(edit)
	s.reopen()
	got := s.entry(kitchen, "1")
	same(t, "kind", got.Kind, core.KindMessage)
	same(t, "command without one", got.Command, nil)
	same(t, "due", words(s.due(kitchen)), []string{"never mind"})
}

// heardLate: speech is recognised from an earlier version of a message than the stored one.
func heardLate(t *testing.T, s *testedStore) {
	heard := said(kitchen, "1", "for Monday")
	heard.Message.Voice, heard.Message.Attachments = true, []core.Attachment{{Kind: core.MediaAudio, Ref: "r"}}
	s.append(heard)
	edited := core.Event{Kind: core.KindEdit, Message: core.Message{Path: kitchen, ID: "1", Text: "for Tuesday", Voice: true}}
	heard.Kind, heard.Message.Heard = core.KindEdit, 87
	heard.Message.Caption("turn left")
	s.change(edited, heard.Event)
	s.reopen()
	got := s.entry(kitchen, "1")
	same(t, "text", got.Message.Text, "for Tuesday\nturn left")
	same(t, "confidence", got.Message.Heard, 87)
	same(t, "attachments", len(got.Message.Attachments), 1)
	s.change(core.Event{Kind: core.KindEdit, Message: core.Message{Path: kitchen, ID: "1", Voice: true}})
	same(t, "text without its caption", s.entry(kitchen, "1").Message.Text, "turn left")
}
