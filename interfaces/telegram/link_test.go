package telegram

import (
	"strings"
	"testing"

	"synthbot/core"
)

func TestLink(t *testing.T) {
	d := &Driver{opt: Options{Name: "telegram"}}
	for place, want := range map[string]string{
		"telegram/-1001234567890": "https://t.me/c/1234567890/77", "telegram/-1001234567890/5": "https://t.me/c/1234567890/77",
		"telegram/-123": "", "telegram/123": "", "discord/-1001234567890": "",
	} {
		if got := d.Link(core.MustPath(place), "77"); got != want {
			t.Errorf("a message in %s is at %q, want %q", place, got, want)
		}
	}
}

func TestShows(t *testing.T) {
	for _, tc := range []struct {
		text, address string
		want          bool
	}{
		{"example.org", "http://example.org/", true}, {"https://example.org/a", "HTTP://example.org/a", true}, {" example.org ", "https://example.org", true},
		{"example.org", "https://example.org.evil.example/", false}, {"here", "https://example.org/", false}, {"", "https://example.org/", false},
		{"resolve?domain=x", "tg://resolve?domain=x", false}, {"here", "", true},
	} {
		if got := showsAddress(tc.text, tc.address); got != tc.want {
			t.Errorf("%q shows %q: %v", tc.text, tc.address, got)
		}
	}
}

// FuzzLinked: an address is written wherever an entity claims to be, and the text
// around it stays as it is.
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
				t.Fatalf("%q became %q, with %q", text, got, address)
			}
			if at += i; got[:at]+got[at+len(" ("+oneAddress(address)+")"):] == text {
				return
			}
		}
	})
}

// manyLinks is a text of n links, each one a word of two UTF-16 units.
func manyLinks(n int) (text string, links []entity) {
	for i := range n {
		links = append(links, entity{Type: "text_link", Offset: 3 * i, Length: 2, URL: "https://example.org/"})
	}
	return strings.Repeat("😀 ", n), links
}

func TestManyLinks(t *testing.T) {
	text, links := manyLinks(maxEntities + 10)
	m := message{Text: text, Entities: links}
	got := linked(m.content())
	if want := strings.Repeat("😀 (https://example.org/) ", maxEntities) + strings.Repeat("😀 ", 10); got != want {
		t.Errorf("%d bytes with %d addresses, want %d", len(got), strings.Count(got, "example.org"), maxEntities)
	}
	mention := entity{Type: "text_mention", Offset: 0, Length: 2, User: &user{ID: 1}}
	m.Entities = append(links[:maxEntities:maxEntities], mention)
	if got := spoken(m.content()); got != "" {
		t.Errorf("more than %d entities are read", maxEntities)
	}
}

func BenchmarkManyLinks(b *testing.B) {
	text, links := manyLinks(20_000)
	for b.Loop() {
		linked(text, inBytes(text, links))
	}
}
