package commands

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"synthbot/interfaces/telegram/telegramtest"
)

// TestForgetInMemory: what turns of others left in memory, which may concern a user who is forgotten, is dropped.
func TestForgetInMemory(t *testing.T) {
	platform := telegramtest.New(t)
	file := filepath.Join(t.TempDir(), "config.toml")
	write(t, file, fmt.Sprintf("[bot]\ndata_dir = \"data\"\n[interfaces.telegram]\ntoken = %q\napi_url = %q\npace = \"off\"\n",
		telegramtest.Token, platform.URL))
	for _, id := range []int64{1000, 2000} {
		platform.AddPerson(telegramtest.Person{ID: id, Name: fmt.Sprint("P", id)})
	}
	says := func(who int64, text string, n int, want string) {
		t.Helper()
		platform.Say(who, who, telegramtest.Saying{Text: text})
		if texts := hears(t, platform, who, n); !strings.Contains(texts[n-1], want) {
			t.Errorf("%d reads %q, want %q", who, texts, want)
		}
	}
	daemonOf(t, file, io.Discard)
	says(1000, "hello", 1, "")
	says(2000, "/remind in 2 hours call Zoe", 1, "call Zoe")
	says(2000, "/undo", 2, "Undone: Set a reminder")
	says(2000, "/remind in 2 hours call Zoe", 3, "call Zoe")
	says(1000, "/forgetme yes", 2, "It is done")
	says(2000, "/undo", 4, "There is nothing to undo")
}
