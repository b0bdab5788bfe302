package phrases

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"os"
	"testing"
)

// TestArchive: words.zip has what the folder words has; `go generate` packs it.
func TestArchive(t *testing.T) {
	packed, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	for _, language := range languages() {
		want, err := os.ReadFile("words/" + language + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		got, err := fs.ReadFile(packed, language+".txt")
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s.txt differs in the archive, run go generate: %v", language, err)
		}
	}
}
