package telegram

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"synthbot/core"
	"synthbot/core/recent"
	"synthbot/interfaces/telegram/telegramtest"
)

var rewrite = flag.Bool("update", false, "rewrite golden files")

// testConverter returns a converter with a fixed clock and key.
func testConverter() *converter {
	return &converter{
		name: "telegram", self: user{ID: telegramtest.BotID, UserName: telegramtest.BotName, IsBot: true}, commands: commands,
		places: newPlaces(), keys: newSigner(telegramtest.Token), pressed: new(recent.NewCache[[2]int64, string](9)),
		now:   func() time.Time { return time.Unix(1795165200, 0) },
		ahead: func() time.Duration { return 0 },
	}
}

// outcome is what a golden file contains about an update.
type outcome struct {
	Events  []core.Event `json:"events"`
	Album   string       `json:"album,omitempty"`
	Refused string       `json:"refused,omitempty"`
}

// TestUpdates: each update in testdata converts to the events of its golden file.
func TestUpdates(t *testing.T) {
	files, err := filepath.Glob("testdata/updates/*.json")
	if err != nil || len(files) < 40 {
		t.Fatalf("got %d updates, %v, want at least 40", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			u, _, err := decode(raw)
			if err != nil {
				t.Fatal(err)
			}
			c := testConverter().convert(u)
			o := outcome{Events: c.events, Album: c.album}
			if c.press != nil {
				o.Refused = c.press.refused
			}
			compareGolden(t, strings.TrimSuffix(file, ".json")+".golden", o)
		})
	}
}

// compareGolden compares v, as JSON, with a golden file, or rewrites the file with -update.
func compareGolden(t *testing.T, file string, v any) {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// TestDecodeBad: an update that cannot be decoded is an error with its id, if it has one.
func TestDecodeBad(t *testing.T) {
	for raw, want := range map[string]int64{
		`{"update_id":7,"message":{"message_id":"x"}}`: 7, `{"update_id":8,"message":[]}`: 8, `{"update_id":"9"}`: 0, `5`: 0, `null`: 0, `{}`: 0,
	} {
		if u, id, err := decode(json.RawMessage(raw)); err == nil || id != want || u != nil {
			t.Errorf("%s: got %v, id %d, %v, want an error and id %d", raw, u, id, err, want)
		}
	}
}

// FuzzUpdate: the events of any update are valid: they have an identity, and their texts are
// valid UTF-8 within the limits.
func FuzzUpdate(f *testing.F) {
	files, _ := filepath.Glob("testdata/updates/*.json")
	for _, file := range files {
		if raw, err := os.ReadFile(file); err == nil {
			f.Add(raw)
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		u, id, err := decode(raw)
		if err != nil {
			return
		}
		if id <= 0 {
			t.Fatalf("got id %d, want a positive one", id)
		}
		for _, e := range testConverter().convert(u).events {
			m := &e.Message
			if m.Path.Interface() != "telegram" || m.ID == "" && e.Target == "" || len(m.ID) > 256 {
				t.Fatalf("no identity: %+v", e)
			}
			if len(m.Text) > core.MaxText || len(m.Author.Name) > core.MaxName || len(m.Author.Tag) > core.MaxName ||
				!utf8.ValidString(m.Text) {
				t.Fatalf("not capped: %+v", e)
			}
			if q := m.ReplyTo; q != nil && len(q.Text) > core.MaxQuote {
				t.Fatalf("quote not capped: %+v", q)
			}
			if _, err := json.Marshal(e); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestInBytes: the UTF-16 offsets of an entity become byte offsets within the text.
func TestInBytes(t *testing.T) {
	for _, tc := range []struct {
		text           string
		offset, length int
		want           string
	}{
		{"😀/start", 2, 6, "/start"}, {"abc", 1, 99, "bc"}, {"abc", 9, 1, ""}, {"abc", -1, 2, ""}, {"abc", 0, -1, ""}, {"😀", 1, 1, ""}, {"", 0, 1, ""},
		{"😀ab", 1, 2, "a"}, {"a😀b", 0, 2, "a😀"}, {"abc", 3, 1, ""}, {"abc", 1, math.MaxInt, "bc"}, {"abc", math.MaxInt, 1, ""},
	} {
		e := inBytes(tc.text, []entity{{Offset: tc.offset, Length: tc.length}})[0]
		if got := entityText(tc.text, e); got != tc.want {
			t.Errorf("%q, offset %d, length %d: got %q, want %q", tc.text, tc.offset, tc.length, got, tc.want)
		}
	}
}

// TestReactionsAtOnce: two reactions in the same second have different ids.
func TestReactionsAtOnce(t *testing.T) {
	ids := map[string]bool{}
	for id, emoji := range map[int]string{7: "👍", 8: "❤"} {
		raw := fmt.Sprintf(`{"update_id":%d,"message_reaction":{"chat":{"id":-1,"type":"group"},"message_id":3,"date":5,"user":{"id":1000},`+
			`"old_reaction":[],"new_reaction":[{"type":"emoji","emoji":%q}]}}`, id, emoji)
		u, _, err := decode([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		ids[testConverter().convert(u).events[0].Message.ID] = true
	}
	if len(ids) != 2 {
		t.Errorf("got ids %v, want two", ids)
	}
}

// TestSpoken: mentions by name, code and quotes are blanked out of the spoken text, and
// nothing else is.
func TestSpoken(t *testing.T) {
	at := func(kind string, offset, length int) entity {
		return entity{Type: kind, Offset: offset, Length: length}
	}
	for name, tc := range map[string]struct {
		text     string
		entities []entity
		want     string
	}{
		"nobody":       {"Aria, hello", []entity{at("bold", 0, 4)}, ""},
		"a namesake":   {"Aria, greet Aria!", []entity{at("text_mention", 12, 4)}, "Aria, greet     !"},
		"part of name": {"Aria, greet ri", []entity{at("text_mention", 12, 2)}, "Aria, greet   "},
		"wide letters": {"😀 Åse, hello", []entity{at("bold", 0, 2), at("text_mention", 3, 3)}, "😀     , hello"},
		"only a name":  {"Aria", []entity{at("text_mention", 0, 400)}, "    "},
		"code":         {"Aria x Aria", []entity{at("pre", 0, 4), at("code", 7, 4)}, "     x     "},
		"quote":        {"Aria x", []entity{at("blockquote", 0, 4)}, "     x"},
		"out of place": {"Aria", []entity{at("text_mention", -1, 4), at("text_mention", 5, 1)}, "Aria"},
	} {
		if got := spoken(tc.text, inBytes(tc.text, tc.entities)); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

// TestNamesOfOthers: a name that mentions another user is not part of what the author says.
// Neither is anything in a forwarded message.
func TestNamesOfOthers(t *testing.T) {
	for file, want := range map[string]string{"group_text_mention": "     come here", "group_text": "", "forwarded_mention": ""} {
		raw, err := os.ReadFile("testdata/updates/" + file + ".json")
		if err != nil {
			t.Fatal(err)
		}
		u, _, err := decode(raw)
		if err != nil {
			t.Fatal(err)
		}
		if m := testConverter().convert(u).events[0].Message; m.Spoken != want {
			t.Errorf("%s: got %q, want %q", file, m.Spoken, want)
		}
	}
}

// TestQuotesAreForeign: a quote in a text is not the author's own. It neither addresses the bot
// nor calls a command.
func TestQuotesAreForeign(t *testing.T) {
	for name, tc := range map[string]struct {
		text, entities, own, quoted string
		addressed                   core.Addressed
	}{
		"one": {"Aria, come", `{"type":"blockquote","offset":0,"length":10}`, "", "Aria, come", ""},
		"between": {
			"😀 so\nAria, come\nhaha", `{"type":"expandable_blockquote","offset":6,"length":10}`, "😀 so\nhaha", "Aria, come", "",
		},
		"two": {
			"é a\nb\nc", `{"type":"blockquote","offset":6,"length":1},{"type":"blockquote","offset":0,"length":3}`, "b", "é a\nc", "",
		},
		"links": {
			"here\nthere",
			`{"type":"blockquote","offset":0,"length":4},{"type":"text_link","offset":0,"length":4,"url":"https://a.example"},` +
				`{"type":"text_link","offset":5,"length":5,"url":"https://b.example"}`,
			"there (https://b.example)", "here (https://a.example)", "",
		},
		"mention": {"@aria_bot hi", `{"type":"blockquote","offset":0,"length":12},{"type":"mention","offset":0,"length":9}`, "", "@aria_bot hi", ""},
		"own mention": {
			"hi\n@aria_bot", `{"type":"blockquote","offset":0,"length":2},{"type":"mention","offset":3,"length":9}`,
			"@aria_bot", "hi", core.AddressedMention,
		},
		"command": {"/roll 6", `{"type":"blockquote","offset":0,"length":7},{"type":"bot_command","offset":0,"length":5}`, "", "/roll 6", ""},
	} {
		raw := fmt.Sprintf(`"from":{"id":1000,"first_name":"Jay"},"chat":{"id":-5,"type":"group"},"date":9,"text":%q,"entities":[%s]`, tc.text, tc.entities)
		u, _, err := decode(fmt.Appendf(nil, `{"update_id":7,"message":{"message_id":3,%s}}`, raw))
		if err != nil {
			t.Fatal(err)
		}
		e := testConverter().convert(u).events[0]
		m := e.Message
		want := []core.Foreign{{Kind: core.ForeignQuote, Text: tc.quoted}}
		ok := e.Kind == core.KindMessage && m.Text == tc.own && m.Addressed == tc.addressed
		if !ok || !slices.Equal(m.Foreign, want) {
			t.Errorf("%s: got %q, %+v, addressed %q, %s, want %+v", name, m.Text, m.Foreign, m.Addressed, e.Kind, tc)
		}
		reply := `{"update_id":8,"message":{"message_id":4,"from":{"id":1000,"first_name":"Jay"},"chat":{"id":-5,"type":"group"},"date":9,"text":"so","reply_to_message":{"message_id":3,%s}}}`
		u, _, err = decode(fmt.Appendf(nil, reply, raw))
		if err != nil {
			t.Fatal(err)
		}
		if m := testConverter().convert(u).events[0].Message; !slices.Equal(m.Foreign, want) {
			t.Errorf("%s, in a reply of its author: got %+v, want %+v", name, m.Foreign, want)
		}
	}
}

// TestForwardedVoice: a forwarded voice message is not the sender's own words.
func TestForwardedVoice(t *testing.T) {
	for name, m := range map[string]message{
		"voice": {Voice: &file{FileID: "v"}, Forward: &origin{}}, "video note": {VideoNote: &file{FileID: "v"}, Forward: &origin{}},
		"music": {Audio: &file{FileID: "v"}, Forward: &origin{}},
	} {
		own, foreign := m.splitForeign()
		if own != "" || len(foreign) != 1 || foreign[0].Voice != (name != "music") {
			t.Errorf("%s: got %q, %+v, want only foreign content", name, own, foreign)
		}
	}
}

// TestLinkedPost: a post of the linked channel is the channel's own words, a forwarded one is not.
func TestLinkedPost(t *testing.T) {
	news, other := &chat{ID: -7, Title: "News"}, &chat{ID: -8}
	for name, tc := range map[string]struct {
		from *origin
		own  bool
	}{
		"its post": {&origin{Chat: news}, true}, "no author": {&origin{}, true}, "another channel's": {&origin{Chat: other}, false},
		"a user's": {&origin{User: &user{ID: 1001}}, false}, "a hidden user's": {&origin{Hidden: "Zed"}, false},
		"a group's": {&origin{Sender: other}, false},
	} {
		m := message{Text: "words", Sender: news, Linked: true, Forward: tc.from}
		own, foreign := m.splitForeign()
		if m.isAuthorsOwn() != tc.own || (own == "words") != tc.own || (len(foreign) == 0) != tc.own {
			t.Errorf("%s: got own %q, foreign %+v, want own: %v", name, own, foreign, tc.own)
		}
	}
}
