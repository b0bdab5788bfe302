package phrases

import "testing"

// TestReadBooks: each file of the folder words is a book.
func TestReadBooks(t *testing.T) {
	all, err := files.ReadDir("words")
	books := ReadBooks()
	if err != nil || len(all) != len(books) {
		t.Errorf("%d books of %d files: %v", len(books), len(all), err)
	}
	for _, b := range books {
		if len(b.phrases) == 0 || len(b.Says) == 0 || len(b.Lists) == 0 {
			t.Errorf("%s: %d phrases, %d sayings, %d lists", b.Language, len(b.phrases), len(b.Says), len(b.Lists))
		}
	}
}
