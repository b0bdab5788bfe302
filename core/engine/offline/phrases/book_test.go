package phrases

import "testing"

// TestReadBooks checks that each file in the folder words is read as a book.
func TestReadBooks(t *testing.T) {
	all, err := files.ReadDir("words")
	books := ReadBooks()
	if err != nil || len(all) != len(books) {
		t.Errorf("got %d books, want %d: %v", len(books), len(all), err)
	}
	for _, b := range books {
		if len(b.phrases) == 0 || len(b.Says) == 0 || len(b.Lists) == 0 {
			t.Errorf("%s: %d phrases, %d sayings, %d lists", b.Language, len(b.phrases), len(b.Says), len(b.Lists))
		}
	}
}
