package turn_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/turn"
)

// editor starts a bot with an action that needs a confirmation (pay), one that edits a message
// (edit) and one for moderators (ledger).
func editor(t *testing.T, script ...any) (*bot, *coretest.Plugin) {
	t.Helper()
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	room := coretest.NewRoom("room")
	p := coretest.NewPlugin("bank",
		core.Action{Name: "pay", Permission: core.PermissionEveryone, Confirm: true},
		core.Action{Name: "edit", Permission: core.PermissionEveryone, Effects: core.EffectRewrites},
		core.Action{Name: "ledger", Permission: core.PermissionModerators},
	)
	return start(t, s, room, coretest.NewAsker(script...), func(o *turn.Options) {
		o.Catalogue = catalogueOf(t, room, p)
		o.Places.Chooser = func(core.Path) core.Chooser { return room }
	}), p
}

// TestQuestionsStay: no turn can edit a confirmation question, open or decided. A member's turn can
// only edit the bot's answers to that member.
func TestQuestionsStay(t *testing.T) {
	edits := func(id string) string { return doing("edit", `{"message_id":"`+id+`","text":"Photos?"}`) }
	for _, tc := range []struct {
		name, who string
		rank      core.Rank
		id        string // room-1 is the answer to Jay, room-2 the question to Jay
		edited    bool
	}{
		{"a question, by its person", "jay", core.RankMember, "room-2", false},
		{"a question, by a member", "eve", core.RankMember, "room-2", false},
		{"a question, by a moderator", "mia", core.RankModerator, "room-2", false},
		{"a question, by an admin", "ann", core.RankAdmin, " room-2 ", false},
		{"a question with an escaped id, by a moderator", "mia", core.RankModerator, `room\u002d2`, false},
		{"an answer, by its person", "jay", core.RankMember, "room-1", true},
		{"an answer, by another person", "eve", core.RankMember, "room-1", false},
		{"an answer, by a moderator", "mia", core.RankModerator, "room-1", true},
		{"another user's reply to them, by its person", "jay", core.RankMember, "r", false},
		{"an unknown message, by a member", "eve", core.RankMember, "room-77", false},
		{"an unknown message, by a moderator", "mia", core.RankModerator, "room-77", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, bank := editor(t, pays, edits(tc.id), plan("Well."), says)
			b.receive(ranked("1", "jay", core.RankMember, "pay Ann"))
			b.ended(1)
			reply := quoting(ranked("r", "eve", core.RankMember, "no"), "jay", "pay Ann")
			reply.Message.Addressed = ""
			b.receive(reply, ranked("2", tc.who, tc.rank, "change it"))
			if end := b.ended(1)[0]; end.Aside || len(b.asker.Asked()) < 2 {
				t.Errorf("the turn ended as %+v", end)
			}
			if tc.edited && tc.rank > core.RankMember { // others wrote too, so the edit needs a confirmation
				b.receive(ranked("3", tc.who, tc.rank, "yes"))
				b.ended(1)
			}
			if got := len(bank.Calls()) > 0; got != tc.edited {
				t.Errorf("edited: got %v, want %v; the room holds %q", got, tc.edited, b.room.Texts())
			}
		})
	}
}

// TestQuestionsComeLast: the bot sends a confirmation question after the text and actions of later
// rounds, so that the user's next message can answer it.
func TestQuestionsComeLast(t *testing.T) {
	both := `{"actions":[{"type":"pay","payload":{"to":"Ann"}},{"type":"edit","payload":{"message_id":"room-77"}}]}`
	b, bank := editor(t, both, doing("edit", `{"message_id":"room-1"}`), plan("Well."))
	b.receive(ranked("1", "jay", core.RankAdmin, "pay Ann"))
	b.ended(1)
	texts := b.room.Texts()
	if len(texts) != 3 || texts[1] != "Well." || len(b.room.Choices()["room-3"]) == 0 {
		t.Errorf("the bot sent %q with the buttons %v, want the question last", texts, b.room.Choices())
	}
	if got := did(bank); !slices.Equal(got, []string{`{"message_id":"room-77"}`, `{"message_id":"room-1"}`}) {
		t.Errorf("actions run: got %q, want the edits of both rounds", got)
	}
}

// TestButtonsLendNoRank: pressing a button of a message that answers another user has only the
// rights of a member.
func TestButtonsLendNoRank(t *testing.T) {
	for _, tc := range []struct {
		name, causer, presser, label string
		shown                        bool
	}{
		{"one's own", "ann", "ann", "Show the photos", true},
		{"a member's", "eve", "ann", "Show the photos", false},
		{"a member's, like a question's", "eve", "ann", "confirm: show the photos", false},
		{"a member's, with a question's data", "eve", "ann", "confirm:1.1.1:y show the photos", false},
		{"a moderator's, for a moderator", "eve", "mia", "Show the photos", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, bank := editor(t, plan("Shall I?"), doing("ledger", `{}`), says, says)
			rank := core.RankMember
			if tc.causer == "ann" {
				rank = core.RankAdmin
			}
			b.receive(ranked("1", tc.causer, rank, "hello"))
			b.ended(1)
			press := ranked("2", tc.presser, map[string]core.Rank{"ann": core.RankAdmin, "mia": core.RankModerator}[tc.presser], "")
			press.Kind, press.Target, press.Data = core.KindPress, b.room.Sent()[0].ID, tc.label
			press.Message.Private = false
			b.receive(press)
			b.ended(1)
			if got := len(bank.Calls())+len(b.room.Choices()) > 0; got != tc.shown {
				t.Errorf("ledger shown, or asked about: got %v, want %v; the room holds %q", got, tc.shown, b.room.Texts())
			}
		})
	}
}

// TestQuestionsStayWhateverTheirId: a question cannot be edited, but an answer can, although
// message ids may be numbers and repeat in several places of a chat.
func TestQuestionsStayWhateverTheirId(t *testing.T) {
	entry := func(path, id, data, to string) core.Entry {
		return core.Entry{Self: true, Event: core.Event{Kind: core.KindMessage, Data: data, Message: core.Message{
			Path: core.MustPath(path), ID: id, Text: "said", Time: time.Now(), ReplyTo: &core.Quote{ID: "0", From: core.Author{ID: to}},
		}}}
	}
	for name, tc := range map[string]struct {
		log    []core.Entry
		id     string
		edited bool
	}{
		"a large number":            {[]core.Entry{entry("room/1", "9007199254740993", "", "jay")}, "9007199254740993", true},
		"another's":                 {[]core.Entry{entry("room/1", "9007199254740993", "", "ann")}, "9007199254740993", false},
		"in a thread":               {[]core.Entry{entry("room/1/7", "5", "", "jay")}, `"5"`, true},
		"a question, and an answer": {[]core.Entry{entry("room/1", "5", "confirm:1.1.1", "jay"), entry("room/1/7", "5", "", "jay")}, "5", false},
		"an answer, and a question": {[]core.Entry{entry("room/1", "5", "", "jay"), entry("room/1/7", "5", "confirm:1.1.1", "jay")}, "5", false},
		"two answers":               {[]core.Entry{entry("room/1", "5", "", "jay"), entry("room/1/7", "5", "", "ann")}, "5", true},
		"no id":                     {nil, "null", false},
	} {
		t.Run(name, func(t *testing.T) {
			b, bank := editor(t, doing("edit", `{"message_id":`+tc.id+`}`), plan("Well."))
			if err := b.store.Commit(t.Context(), &core.Batch{Append: tc.log}); err != nil {
				t.Fatal(err)
			}
			e := ranked("2", "jay", core.RankMember, "change it")
			b.receive(e)
			b.ended(1)
			if got := len(bank.Calls()) > 0; got != tc.edited {
				t.Errorf("edited: got %v, want %v; the room holds %q", got, tc.edited, b.room.Texts())
			}
		})
	}
}

// TestAnswersToManyStay: a member cannot edit a message that answers several users.
func TestAnswersToManyStay(t *testing.T) {
	b, bank := editor(t, plan("Hello, all."), doing("edit", `{"message_id":"room-1","text":"No."}`), plan("Well."))
	var many []core.Event
	for i := range 6 {
		many = append(many, ranked(fmt.Sprint("m", i), []string{"jay", "ann"}[i%2], core.RankMember, "hi"))
	}
	b.receive(many...)
	if end := b.ended(1)[0]; len(end.Messages) != 6 {
		t.Fatalf("the turn ended as %+v, want one answer to 6 messages", end)
	}
	b.receive(ranked("2", "jay", core.RankMember, "change it"))
	if end := b.ended(1)[0]; end.Aside || len(bank.Calls()) > 0 {
		t.Errorf("the turn ended as %+v with the calls %v, want no call", end, bank.Calls())
	}
}
