package commands

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"synthbot/interfaces/telegram/telegramtest"
	"synthbot/memory"
	"synthbot/memory/bolt"
	"synthbot/memory/kv"
)

// makeOlder creates an empty database of format version 4.
func makeOlder(t *testing.T, dir string) {
	t.Helper()
	db, err := memory.Open(dir, memory.Options{})
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	file, err := bolt.Open(filepath.Join(dir, memory.FileName), bolt.Options{})
	if err == nil {
		err = file.Update(func(t kv.Tx) error { return t.Bucket("meta").Put([]byte("schema"), []byte("4")) })
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestUpgradeNotice checks that admins learn where the copy is when the database was converted, and that later
// starts do not repeat that.
func TestUpgradeNotice(t *testing.T) {
	platform := telegramtest.New(t)
	platform.AddPerson(telegramtest.Person{ID: 1000, Name: "Jay"})
	platform.Say(1000, 1000, telegramtest.Saying{Text: "/help"})
	dir := t.TempDir()
	makeOlder(t, filepath.Join(dir, "data"))
	file := filepath.Join(dir, "config.toml")
	write(t, file, fmt.Sprintf("[bot]\ndata_dir = \"data\"\nadmins = [\"telegram/@user/1000\"]\n"+
		"[interfaces.telegram]\ntoken = %q\napi_url = %q\npace = \"off\"\n", telegramtest.Token, platform.URL))
	repliesAfterStart := func(n int) string {
		stop := daemonOf(t, file, io.Discard)
		defer stop()
		return strings.Join(awaitReplies(t, platform, 1000, n), "\n")
	}
	want := filepath.Join(dir, "data", memory.FileName) + ".version4"
	if texts := repliesAfterStart(2); strings.Count(texts, want) != 1 {
		t.Errorf("first start: got %q, want %q once", texts, want)
	}
	platform.Say(1000, 1000, telegramtest.Saying{Text: "/help"})
	if texts := repliesAfterStart(3); strings.Count(texts, want) != 1 {
		t.Errorf("second start: got %q, want %q once", texts, want)
	}
}
