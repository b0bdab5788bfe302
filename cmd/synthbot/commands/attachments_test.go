//go:build !race

package commands

import (
	"encoding/base64"
	"strings"
	"testing"

	"synthbot/core/coretest"
	"synthbot/interfaces/telegram/telegramtest"
)

// TestAttachmentsReachTheModel checks that a prompt holds attachments in the forms that the engine supports.
func TestAttachmentsReachTheModel(t *testing.T) {
	model := newScribe(t)
	platform, _ := atTelegram(t, model.URL, "[[engine]]\nname = \"other\"\nprovider = \"vllm\"\nmodel = \"m\"\nbase_url = \""+model.URL+"\"\nvision = true\nhearing = true\n[[override]]\npath = \"telegram/1001\"\nengine = \"other\"\n")
	platform.AddPerson(telegramtest.Person{ID: 1000, Name: "Jay"})
	platform.AddPerson(telegramtest.Person{ID: 1001, Name: "Ann"})
	picture := []byte("\x89PNG\r\n\x1a\n and so on")
	voice := []byte("OggS a voice")
	platform.AddFile("doc", coretest.PDF("The treasure is on the island."))
	platform.AddFile("note", []byte("Bring the map."))
	platform.AddFile("pic", picture)
	platform.AddFile("voice", voice)
	extra := map[string]any{
		"doc":   map[string]any{"document": map[string]any{"file_id": "doc", "file_unique_id": "d", "file_name": "a.pdf", "mime_type": "application/pdf", "file_size": 700}},
		"note":  map[string]any{"document": map[string]any{"file_id": "note", "file_unique_id": "n", "file_name": "a.txt", "mime_type": "text/plain", "file_size": 14}},
		"pic":   map[string]any{"photo": []any{map[string]any{"file_id": "pic", "file_unique_id": "p", "width": 10, "height": 10, "file_size": len(picture)}}},
		"voice": map[string]any{"voice": map[string]any{"file_id": "voice", "file_unique_id": "v", "duration": 1, "mime_type": "audio/ogg", "file_size": len(voice)}},
	}
	said := 0
	ask := func(chat int64, file string) string {
		e := map[string]any{"caption": "look at this"}
		for k, v := range extra[file].(map[string]any) {
			e[k] = v
		}
		n := len(platform.Calls("sendMessage"))
		platform.Say(chat, chat, telegramtest.Saying{Extra: e})
		until(t, func() bool { return len(platform.Calls("sendMessage")) > n })
		said++
		all := model.since(0)
		return all[len(all)-1]
	}
	if p := ask(1000, "doc"); !strings.Contains(p, "The treasure is on the island.") {
		t.Errorf("the PDF was not read: %s", p[max(0, len(p)-700):])
	}
	if p := ask(1000, "note"); !strings.Contains(p, "Bring the map.") {
		t.Errorf("the text was not read: %s", p[max(0, len(p)-700):])
	}
	if p := ask(1000, "pic"); strings.Contains(p, base64.StdEncoding.EncodeToString(picture)) || !strings.Contains(p, `\"image\":{`) {
		t.Errorf("an engine that cannot see got %s", p[max(0, len(p)-700):])
	}
	if p := ask(1001, "pic"); !strings.Contains(p, base64.StdEncoding.EncodeToString(picture)) || !strings.Contains(p, `\"shown\":true`) {
		t.Errorf("an engine that sees got %s", p[max(0, len(p)-700):])
	}
	if p := ask(1001, "voice"); !strings.Contains(p, base64.StdEncoding.EncodeToString(voice)) || !strings.Contains(p, `\"input_source\":\"voice\"`) {
		t.Errorf("an engine that hears got %s", p[max(0, len(p)-700):])
	}
}
