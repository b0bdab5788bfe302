package txt

import (
	"slices"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "äö", 2}, {"search", "saerch", 1}, {"kitten", "sitting", 3}, {"tür", "tur", 1},
	} {
		if got := Distance(c.a, c.b); got != c.want || Distance(c.b, c.a) != c.want {
			t.Errorf("%q and %q: got %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestWords(t *testing.T) {
	for _, c := range []struct {
		text, words string
		want        []int
	}{
		{"ann, annika and ann", "ann", []int{0, 16}}, {"joanna", "ann", nil}, {"an_n", "an", nil}, {"", "a", nil},
		{"aa aa", "aa", []int{0, 3}}, {"こんにちはアリア", "アリア", []int{15}}, {"...", ".", []int{0, 1, 2}},
	} {
		if got := slices.Collect(Words(c.text, c.words)); !slices.Equal(got, c.want) {
			t.Errorf("%q in %q: got %v, want %v", c.words, c.text, got, c.want)
		}
	}
}
