package commands

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"synthbot/interfaces/telegram/telegramtest"
)

// TestForgetInMemory checks that /forgetme also drops what other users' turns left in memory, since it may
// concern the forgotten user.
func TestForgetInMemory(t *testing.T) {
	platform := telegramtest.New(t)
	file := filepath.Join(t.TempDir(), "config.toml")
	write(t, file, fmt.Sprintf("[bot]\ndata_dir = \"data\"\n[interfaces.telegram]\ntoken = %q\napi_url = %q\npace = \"off\"\n",
		telegramtest.Token, platform.URL))
	for _, id := range []int64{1000, 2000} {
		platform.AddPerson(telegramtest.Person{ID: id, Name: fmt.Sprint("P", id)})
	}
	sayAndExpect := func(who int64, text string, n int, want string) {
		t.Helper()
		platform.Say(who, who, telegramtest.Saying{Text: text})
		if texts := awaitReplies(t, platform, who, n); !strings.Contains(texts[n-1], want) {
			t.Errorf("user %d: got %q, want %q last", who, texts, want)
		}
	}
	daemonOf(t, file, io.Discard)
	sayAndExpect(1000, "hello", 1, "")
	sayAndExpect(2000, "/remind in 2 hours call Zoe", 1, "call Zoe")
	sayAndExpect(2000, "/undo", 2, "Undone: Set a reminder")
	sayAndExpect(2000, "/remind in 2 hours call Zoe", 3, "call Zoe")
	sayAndExpect(1000, "/forgetme yes", 2, "It is done")
	sayAndExpect(2000, "/undo", 4, "There is nothing to undo")
}
