package commands

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"synthbot/core/coretest"
	"synthbot/interfaces/telegram/telegramtest"
)

var storm = flag.Duration("storm", coretest.Sample(15*time.Second, time.Second), "how long TestReloadStorm lasts")

// TestReloadStorm changes and reloads the configuration five times a second while users write. Every message is
// answered once, and the driver, whose table does not change, stays connected.
func TestReloadStorm(t *testing.T) {
	platform, file := atTelegram(t, newEchoModel(t), "")
	for i := range killChats {
		platform.AddPerson(telegramtest.Person{ID: int64(1000 + i), Name: fmt.Sprint("P", i)})
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	said, reloads := 0, 0
	say := func() {
		for i := range killChats {
			platform.Say(int64(1000+i), int64(1000+i), telegramtest.Saying{Text: fmt.Sprintf("m%d", said)})
			said++
		}
	}
	say()
	until(t, func() bool { return answered(platform, said) == said })
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(*storm); time.Now().Before(end); <-tick.C {
		write(t, file, strings.Replace(string(raw), "[bot]", fmt.Sprintf("[bot]\nname = \"Aria%d\"\nactivation = %q", reloads%7, []string{"mention", "always"}[reloads%2]), 1)+
			fmt.Sprintf("[prompt]\nhistory = %d\n", 10+reloads%10))
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		reloads++
		say()
	}
	until(t, func() bool { return answered(platform, said) == said })
	words := make(map[string]int)
	for text, n := range replies(platform) {
		for _, word := range strings.Fields(text) {
			words[word] += n
		}
	}
	for i := range said {
		if word := fmt.Sprintf("m%d", i); words[word] != 1 {
			t.Errorf("%s was answered %d times, want once", word, words[word])
		}
	}
	if n := len(platform.Calls("getMe")); n != 1 {
		t.Errorf("the driver connected %d times, want once", n)
	}
	t.Logf("%d reloads, %d messages", reloads, said)
}
