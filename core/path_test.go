package core

import (
	"strings"
	"testing"
)

// TestPathSpelling: elements are escaped where necessary, and read back unchanged.
func TestPathSpelling(t *testing.T) {
	for _, tc := range []struct {
		elements []string
		want     string
	}{
		{[]string{"telegram", "-1001234567890", "7"}, "telegram/-1001234567890/7"},
		{[]string{"console", "a b"}, "console/a%20b"},
		{[]string{"console", "50%/day"}, "console/50%25%2Fday"},
		{[]string{"console", "tab\tnul\x00"}, "console/tab%09nul%00"},
		{[]string{"console", "\u00a0"}, "console/%C2%A0"},
		{[]string{"console", "\xff"}, "console/%FF"},
		{[]string{"console", "猫"}, "console/猫"},
	} {
		p, err := MakePath(tc.elements...)
		if err != nil || p.String() != tc.want {
			t.Errorf("MakePath(%q) = %q, %v; want %q", tc.elements, p, err, tc.want)
		}
		if got := p.Elements(); strings.Join(got, "\n") != strings.Join(tc.elements, "\n") {
			t.Errorf("Elements of %q: got %q, want %q", p, got, tc.elements)
		}
	}
}

// TestPathRefuses: empty elements, wrong or unnecessary escapes and long paths are refused.
func TestPathRefuses(t *testing.T) {
	for _, s := range []string{
		"", "/", "a/", "/a", "a//b", "a b", "a\x00", "a/%", "a/%2", "a/%2f", "a/%41", "a/%zz", "a\xff",
		strings.Repeat("a", maxPath+1),
	} {
		if p, err := ParsePath(s); err == nil || !strings.HasPrefix(err.Error(), "bad path: ") {
			t.Errorf("ParsePath(%q) = %q, %v; want an error", s, p, err)
		}
	}
}

// TestPathWithin: a path is within itself, its ancestors and the zero Path.
func TestPathWithin(t *testing.T) {
	for _, tc := range []struct {
		p, root string
		want    bool
	}{
		{"a/b", "a", true}, {"a/b", "a/b", true}, {"a/b/c", "a/b", true},
		{"a/bc", "a/b", false}, {"a", "a/b", false}, {"ab/c", "a", false},
	} {
		if got := MustPath(tc.p).Within(MustPath(tc.root)); got != tc.want {
			t.Errorf("%s within %s: got %v, want %v", tc.p, tc.root, got, tc.want)
		}
	}
	if !MustPath("a").Within(Path{}) || (Path{}).Within(MustPath("a")) {
		t.Error("the zero Path is not the root of all paths")
	}
}

// TestPathPersonAndParent: Person returns the path of a user of the same interface, and Parent drops the
// last element.
func TestPathPersonAndParent(t *testing.T) {
	place := MustPath("discord/1/2")
	person, err := place.Person("123 4")
	if err != nil || person.String() != "discord/@user/123%204" || !person.IsPerson() || place.IsPerson() {
		t.Errorf("Person = %q, %v", person, err)
	}
	if place.Parent().String() != "discord/1" || !MustPath("discord").Parent().IsZero() {
		t.Errorf("Parent = %q", place.Parent())
	}
}

// FuzzPath: a path that is parsed prints as it was, and any element reads back unchanged.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"telegram/-100/7", "console/a%20b", "a/%2F", "a//b", "%", "a/\xc2\xa0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if p, err := ParsePath(s); err == nil {
			if p.String() != s {
				t.Fatalf("ParsePath(%q) prints %q", s, p)
			}
			again, err := MakePath(p.Elements()...)
			if err != nil || again != p {
				t.Fatalf("the elements of %q make %q, %v", s, again, err)
			}
			text, _ := p.MarshalText()
			var back Path
			if err := back.UnmarshalText(text); err != nil || back != p {
				t.Fatalf("the text of %q reads as %q, %v", s, back, err)
			}
		}
		if p, err := MakePath("x", s); err == nil {
			if got := p.Elements(); len(got) != 2 || got[1] != s {
				t.Fatalf("element %q reads back as %q", s, got)
			}
		}
	})
}

// TestNearer: ancestors of a place are nearer than scopes outside of its path, and those nearer than a guild.
func TestNearer(t *testing.T) {
	channel, place := MustPath("discord/1/22"), MustPath("discord/1/22/3")
	category := MustPath("discord/1/4444") // contains the channel, but is not in its path
	for _, c := range []struct {
		a, b Path
		want bool
	}{
		{channel, category, true}, {category, channel, false}, {place, channel, true}, {category, MustPath("discord/1"), true},
		{MustPath("discord/1"), category, false}, {channel, channel, true}, {channel, Path{}, true}, {Path{}, Path{}, true},
	} {
		if got := place.Nearer(c.a, c.b); got != c.want {
			t.Errorf("Nearer(%s, %s) = %t, want %t", c.a, c.b, got, c.want)
		}
	}
}

// TestPerson: Person returns the same path as MakePath with the same elements.
func TestPerson(t *testing.T) {
	for _, place := range []string{"room/1", "a%20b/c", "x", ""} {
		for _, id := range []string{"1", "a b", "a/b", "50%", "\xff", "\uFFFD", "", "é", strings.Repeat("x", maxPath)} {
			p := Path{place}
			got, err := p.Person(id)
			want, wantErr := MakePath(p.Interface(), personMark, id)
			if got != want || (err == nil) != (wantErr == nil) {
				t.Errorf("%q of %q: got %v, %v, want %v, %v", id, place, got, err, want, wantErr)
			}
		}
	}
}

func TestGroup(t *testing.T) {
	for path, want := range map[string]string{
		"": "", "telegram": "telegram", "telegram/-100": "telegram/-100", "telegram/-100/7": "telegram/-100", "discord/1/2/3": "discord/1",
	} {
		p, _ := ParsePath(path)
		if got := p.Group().String(); got != want {
			t.Errorf("group of %q: got %q, want %q", path, got, want)
		}
	}
}
