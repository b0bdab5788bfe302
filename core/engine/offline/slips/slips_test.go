package slips

import "testing"

func TestCorrect(t *testing.T) {
	known := make(map[string]bool)
	for _, word := range []string{"what", "remind", "morgen", "fur", "schon", "time", "tide", "no"} {
		known[word] = true
	}
	for said, want := range map[string]string{
		"what": "what", "waht": "what", "whag": "whag", // in words of four letters, only swapped letters are corrected
		"remnd": "remind", "remmind": "remind", "rremmind": "rremmind",
		"morgn": "morgen", "fuer": "fur", "schoen": "schon",
		"tiem": "time", "nn": "nn", "18h30": "18h30", "": "",
	} {
		if got := Correct(said, known); got != want {
			t.Errorf("%q: got %q, want %q", said, got, want)
		}
	}
}

func TestSameWord(t *testing.T) {
	for pair, want := range map[[2]string]bool{
		{"cat", "cat"}: true, {"cat", "cats"}: false, // short words have no endings
		{"flower", "flowers"}: true, {"flowers", "flower"}: true, {"flower", "flowering"}: false,
		{"rosso", "rossa"}: true, {"rose", "rosa"}: false, {"sister", "brother"}: false, {"", ""}: true,
	} {
		if got := SameWord(pair[0], pair[1]); got != want {
			t.Errorf("%v: got %v", pair, got)
		}
	}
}
