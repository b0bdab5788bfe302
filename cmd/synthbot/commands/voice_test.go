//go:build !race

package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"synthbot/interfaces/telegram/telegramtest"
)

// TestVoiceMessagesAreHeard checks that a voice message's transcript becomes the message's text, in the prompt,
// in the history and for the bot's name, and that the transcription counts against the user's budget.
func TestVoiceMessagesAreHeard(t *testing.T) {
	model := newScribe(t)
	platform, file := atTelegram(t, model.URL, `
person_cost = 0.5
[speech]
ffmpeg = ""
[speech.in]
provider = "program"
program = ["tail", "-c", "+6", "{file}"] # the words are in the file
longest = "1m"
price = 6.0
`)
	platform.AddPerson(telegramtest.Person{ID: 1000, Name: "Jay"})
	platform.AddPerson(telegramtest.Person{ID: 1001, Name: "Ann"})
	platform.AddChat(telegramtest.Chat{ID: -100200, Type: "supergroup", Title: "walkers"})
	say := func(chat, person int64, words string, seconds int) {
		platform.AddFile(words, []byte("OggS "+words))
		platform.Say(chat, person, telegramtest.Saying{Extra: map[string]any{"voice": map[string]any{
			"file_id": words, "file_unique_id": words, "duration": seconds, "mime_type": "audio/ogg", "file_size": 5 + len(words),
		}}})
	}
	say(1000, 1000, "when does the bus leave", 3)
	if got := awaitReplies(t, platform, 1000, 1); got[0] != "ok" {
		t.Errorf("got %q", got)
	}
	asked := model.since(0)
	if !strings.Contains(asked[0], `\"text\":\"when does the bus leave\",\"input_source\":\"voice\"`) {
		t.Errorf("the prompt lacks the transcript: %s", asked[0])
	}
	say(1000, 1000, "and the train", 3)
	if got := awaitReplies(t, platform, 1000, 2); !strings.Contains(got[1], "used up your share") {
		t.Errorf("answer above the budget: %q", got)
	}
	say(1000, 1000, "a lecture", 7200)
	if got := awaitReplies(t, platform, 1000, 3); !strings.Contains(got[2], "1 minute at most") {
		t.Errorf("answer to a long voice message: %q", got)
	}
	say(1000, 1000, "and the boat", 3) // no answer: the bot has mentioned the budget already
	say(-100200, 1001, "nice weather", 1)
	say(-100200, 1001, "Aria, what do you think", 1)
	if got := awaitReplies(t, platform, -100200, 1); len(got) != 1 {
		t.Errorf("answers in the group: %q, want one", got)
	}
	if got := awaitReplies(t, platform, 1000, 3); len(got) != 3 {
		t.Errorf("answers in private: %q, want three", got)
	}
	bot := &daemonUnderTest{t: t, file: file}
	for words, place := range map[string]string{
		"when does the bus leave": "telegram/1000", "nice weather": "telegram/-100200", "Aria, what do you": "telegram/-100200",
	} {
		if status, out, errs := bot.command("", "history", place); status != statusDone || !strings.Contains(out, words) {
			t.Errorf("the history lacks %q: %d, %s%s", words, status, out, errs)
		}
	}
	if status, out, errs := bot.command("", "usage"); status != statusDone || !strings.Contains(out, "speech.in") {
		t.Errorf("usage: %d, %s%s", status, out, errs)
	}
}

// TestCheckFindsSpeech checks that `check` reports missing speech programs, and fails without a required one.
func TestCheckFindsSpeech(t *testing.T) {
	d := &daemonUnderTest{t: t, file: filepath.Join(t.TempDir(), "config.toml")}
	const speech = atDesk + "[speech]\nffmpeg = \"/nowhere/ffmpeg\"\n[speech.in]\nprovider = \"program\"\nprogram = [\"%s\", \"{file}\"]\n"
	d.write(fmt.Sprintf(speech, "cat"))
	status, out, errs := d.command("", "check")
	if status != statusDone || errs != "" || !strings.Contains(out, "ffmpeg was not found: install it") {
		t.Errorf("got %d, %q, %q", status, out, errs)
	}
	d.write(fmt.Sprintf(speech, "/nowhere/hear"))
	if status, out, _ := d.command("", "check"); status == statusDone || !strings.Contains(out, "FAIL speech") {
		t.Errorf("got %d, %q", status, out)
	}
}

// TestDeafBotIsHonest checks that a bot without speech recognition says so once.
func TestDeafBotIsHonest(t *testing.T) {
	model := newScribe(t)
	platform, _ := atTelegram(t, model.URL, "")
	platform.AddPerson(telegramtest.Person{ID: 1000, Name: "Jay"})
	say := func() {
		platform.Say(1000, 1000, telegramtest.Saying{Extra: map[string]any{"voice": map[string]any{
			"file_id": "v", "file_unique_id": "v", "duration": 1, "mime_type": "audio/ogg", "file_size": 9,
		}}})
	}
	say()
	if got := awaitReplies(t, platform, 1000, 1); !strings.Contains(got[0], "can't listen to voice messages") {
		t.Errorf("got %q", got)
	}
	say()
	platform.Say(1000, 1000, telegramtest.Saying{Text: "sorry, hello"})
	if got := awaitReplies(t, platform, 1000, 2); got[1] != "ok" {
		t.Errorf("got %q", got)
	}
}

// TestVoiceForAVoice checks that a voice message is answered with a text and then with a voice message in the
// persona's voice.
func TestVoiceForAVoice(t *testing.T) {
	dir := t.TempDir()
	sound, said := filepath.Join(dir, "sound"), filepath.Join(dir, "said")
	write(t, sound, "OggS\x00the answer")
	persona := filepath.Join(dir, "aria.toml")
	write(t, persona, "name = \"Aria\"\nvoice = \"nova\"\n")
	model := newScribe(t)
	platform, file := atTelegram(t, model.URL, fmt.Sprintf(`
[persona]
path = %q
[speech]
ffmpeg = ""
[speech.in]
provider = "program"
program = ["tail", "-c", "+6", "{file}"]
[speech.out]
provider = "program"
program = ["sh", "-c", "sleep 0.5; cat > $1; echo $2 >> $1; cat $0", %q, %q, "{voice}"]
when = "reply"
price = 1.0
`, persona, sound, said))
	platform.AddPerson(telegramtest.Person{ID: 1000, Name: "Jay"})
	platform.Say(1000, 1000, telegramtest.Saying{Text: "in writing"})
	awaitReplies(t, platform, 1000, 1)
	platform.AddFile("v", []byte("OggS and aloud"))
	platform.Say(1000, 1000, telegramtest.Saying{Extra: map[string]any{"voice": map[string]any{
		"file_id": "v", "file_unique_id": "v", "duration": 1, "mime_type": "audio/ogg", "file_size": 14,
	}}})
	awaitReplies(t, platform, 1000, 3)
	var kinds []string
	for _, m := range platform.Messages(1000) {
		if m.From == telegramtest.BotID {
			kinds = append(kinds, m.Kind+" "+m.Text+string(m.File))
		}
	}
	if want := []string{"text ok", "text ok", "voice OggS\x00the answer"}; !slices.Equal(kinds, want) {
		t.Errorf("got %q, want %q", kinds, want)
	}
	if text, err := os.ReadFile(said); err != nil || string(text) != "oknova\n" {
		t.Errorf("text to speak: got %q, %v", text, err)
	}
	var signs []string
	for _, c := range platform.Calls("sendChatAction") {
		signs = append(signs, c.Params["action"])
	}
	if !slices.Contains(signs, "record_voice") {
		t.Errorf("chat actions: got %q, want record_voice among them", signs)
	}
	bot := &daemonUnderTest{t: t, file: file}
	if status, out, errs := bot.command("", "usage"); status != statusDone || !strings.Contains(out, "speech.out") {
		t.Errorf("usage: %d, %s%s", status, out, errs)
	}
}
