package telegram

import (
	"strings"
	"testing"

	"synthbot/core"
)

// TestLink: messages of supergroups have a link, those of other chats have none.
func TestLink(t *testing.T) {
	d := &Driver{opt: Options{Name: "telegram"}}
	for place, want := range map[string]string{
		"telegram/-1001234567890": "https://t.me/c/1234567890/77", "telegram/-1001234567890/5": "https://t.me/c/1234567890/77",
		"telegram/-123": "", "telegram/123": "", "discord/-1001234567890": "",
	} {
		if got := d.Link(core.MustPath(place), "77"); got != want {
			t.Errorf("%s: got %q, want %q", place, got, want)
		}
	}
}

// TestShowsAddress: a link text shows its address only if it leads to the same place.
func TestShowsAddress(t *testing.T) {
	for _, tc := range []struct {
		text, address string
		want          bool
	}{
		{"example.org", "http://example.org/", true}, {"https://example.org/a", "HTTP://example.org/a", true}, {" example.org ", "https://example.org", true},
		{"example.org", "https://example.org.evil.example/", false}, {"here", "https://example.org/", false}, {"", "https://example.org/", false},
		{"resolve?domain=x", "tg://resolve?domain=x", false}, {"here", "", true},
	} {
		if got := showsAddress(tc.text, tc.address); got != tc.want {
			t.Errorf("showsAddress(%q, %q) = %v, want %v", tc.text, tc.address, got, tc.want)
		}
	}
}

// FuzzLinked: the address of a link is written behind it, wherever its entity claims to be,
// and the rest of the text does not change.
func FuzzLinked(f *testing.F) {
	f.Add("👋 read this", 8, 4, "https://evil.example/")
	f.Add("a", -5, 1<<62, "x y")
	f.Add("😀", 1, 1, "https://half.example")
	f.Add("", 0, 0, "https://empty.example")
	f.Fuzz(func(t *testing.T, text string, offset, length int, address string) {
		text = strings.ToValidUTF8(text, "?")
		list := inBytes(text, []entity{{Type: "text_link", Offset: offset, Length: length, URL: address}})
		got := linked(text, list)
		if got == text && showsAddress(entityText(text, list[0]), address) {
			return
		}
		for at := 0; ; at++ {
			i := strings.Index(got[at:], " ("+oneAddress(address)+")")
			if i < 0 {
				t.Fatalf("%q with a link to %q: got %q, want only the address added", text, address, got)
			}
			if at += i; got[:at]+got[at+len(" ("+oneAddress(address)+")"):] == text {
				return
			}
		}
	})
}

// manyLinks returns a text of n links, each of two UTF-16 units.
func manyLinks(n int) (text string, links []entity) {
	for i := range n {
		links = append(links, entity{Type: "text_link", Offset: 3 * i, Length: 2, URL: "https://example.org/"})
	}
	return strings.Repeat("😀 ", n), links
}

// TestManyLinks: at most maxEntities entities of a message are used.
func TestManyLinks(t *testing.T) {
	text, links := manyLinks(maxEntities + 10)
	m := message{Text: text, Entities: links}
	got := linked(m.content())
	if want := strings.Repeat("😀 (https://example.org/) ", maxEntities) + strings.Repeat("😀 ", 10); got != want {
		t.Errorf("got %d bytes with %d addresses, want %d addresses", len(got), strings.Count(got, "example.org"), maxEntities)
	}
	mention := entity{Type: "text_mention", Offset: 0, Length: 2, User: &user{ID: 1}}
	m.Entities = append(links[:maxEntities:maxEntities], mention)
	if got := spoken(m.content()); got != "" {
		t.Errorf("got %q, want nothing of the entities after the first %d", got, maxEntities)
	}
}

func BenchmarkManyLinks(b *testing.B) {
	text, links := manyLinks(20_000)
	for b.Loop() {
		linked(text, inBytes(text, links))
	}
}
