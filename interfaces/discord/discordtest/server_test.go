package discordtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"
)

// ask sends a request as a bot would and returns the status and the body of the response.
func ask(t *testing.T, s *Server, method, path, body string, files ...string) (int, string) {
	t.Helper()
	var content bytes.Buffer
	kind := "application/json"
	if len(files) > 0 {
		form := multipart.NewWriter(&content)
		_ = form.WriteField("payload_json", body)
		for _, f := range files {
			part, _ := form.CreateFormFile("files[0]", f)
			_, _ = part.Write([]byte("data"))
		}
		_ = form.Close()
		kind = form.FormDataContentType()
	} else {
		content.WriteString(body)
	}
	r, err := http.NewRequest(method, s.URL+"/api/v9"+path, &content)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bot "+Token)
	r.Header.Set("Content-Type", kind)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(raw)
}

const nobody = `"allowed_mentions":{"parse":[]}`

// TestServerRefuses: the fake server refuses the requests that the platform refuses.
func TestServerRefuses(t *testing.T) {
	s := New(t)
	hall := "/channels/" + HallID
	theirs := s.Say(HallID, AnnID, "hello")
	s.AddPerson(Person{ID: "5", Closed: true})
	s.AddChannel(Channel{ID: "6", Guild: GuildID, Over: []Overwrite{{ID: GuildID, Deny: MayView}}})
	s.AddChannel(Channel{ID: "7", Guild: GuildID, Over: []Overwrite{{ID: BotRole, Deny: MaySend | MayAttach}}})
	s.AddChannel(Channel{ID: "8", Guild: GuildID, Over: []Overwrite{{ID: GuildID, Deny: MayAttach}}})
	long := strings.Repeat("a", 2001)
	for _, c := range []struct {
		method, path, body string
		want               int
		says               string
	}{
		{"POST", hall + "/messages", `{"content":"hi",` + nobody + `}`, 200, `"content":"hi"`},
		{"POST", hall + "/messages", `{"content":" ",` + nobody + `}`, 400, "50006"},
		{"POST", hall + "/messages", `{"content":"` + long + `",` + nobody + `}`, 400, "50035"},
		{"POST", hall + "/messages", `{"content":"hi","nonce":"12345678901234567890123456",` + nobody + `}`, 400, "NONCE"},
		{"POST", hall + "/messages", `{"content":"hi",` + nobody, 400, "invalid JSON"},
		{"POST", hall + "/messages", `{"content":"hi","message_reference":{"message_id":"1","fail_if_not_exists":false},` + nobody + `}`, 200, "hi"},
		{"POST", hall + "/messages", `{"embeds":[{}],` + nobody + `}`, 400, "embeds"},
		{"POST", hall + "/messages", `{"content":"x","components":[{"type":1,"components":[{"type":2,"style":2,"label":"a","custom_id":"b"},{"type":2,"style":2,"label":"c","custom_id":"b"}]}],` + nobody + `}`, 400, "DUPLICATED"},
		{"POST", hall + "/messages", `{"poll":{"question":{"text":"x"},"answers":[{"poll_media":{"text":"` + long[:56] + `"}}],"duration":1},` + nobody + `}`, 400, "poll"},
		{"POST", "/channels/9/messages", `{"content":"x",` + nobody + `}`, 404, "10003"},
		{"POST", "/channels/6/messages", `{"content":"x",` + nobody + `}`, 403, "50001"},
		{"POST", "/channels/7/messages", `{"content":"x",` + nobody + `}`, 403, "50013"},
		{"POST", "/channels/" + ForumID + "/messages", `{"content":"x",` + nobody + `}`, 400, "50008"},
		{"GET", hall + "/messages?limit=101", "", 400, "limit"},
		{"PATCH", hall + "/messages/" + theirs, `{"content":"x",` + nobody + `}`, 403, "50005"},
		{"DELETE", hall + "/messages/" + theirs, "", 403, "50013"},
		{"PUT", hall + "/messages/" + theirs + "/reactions/x/@me", "", 400, "10014"},
		{"PUT", hall + "/messages/" + theirs + "/reactions/👍/@me", "", 204, ""},
		{"POST", "/channels/" + ForumID + "/threads", `{"name":"x"}`, 400, "message"},
		{"POST", "/channels/" + TopicID + "/threads", `{"name":"x","type":11}`, 400, "50024"},
		{"GET", "/guilds/" + GuildID + "/members/5", "", 404, "10007"},
		{"GET", "/guilds/" + GuildID + "/members/" + BobID, "", 200, KeeperRole},
		{"POST", "/users/@me/channels", `{"recipient_id":"77"}`, 400, "50033"},
		{"POST", "/users/@me/channels", `{"recipient_id":"` + AnnID + `"}`, 200, DirectID},
		{"PUT", "/applications/" + AppID + "/commands", `[{"name":"Up","description":"x"}]`, 400, "Up"},
		{"PUT", "/applications/" + AppID + "/guilds/" + GuildID + "/commands", `[{"name":"up","description":"x","contexts":[0]}]`, 400, "contexts"},
		{"PUT", "/applications/" + AppID + "/commands", `[{"name":"up","description":"x","options":[{"type":3,"name":"a","description":"x"},{"type":3,"name":"b","description":"x","required":true}]}]`, 400, "option b"},
		{"PUT", "/applications/" + AppID + "/commands", `[{"name":"up","description":"x"},{"name":"Keep this","type":3}]`, 200, "up"},
		{"PUT", "/applications/" + AppID + "/commands", someCommands(100, 15), 200, "up99"},
		{"PUT", "/applications/" + AppID + "/commands", someCommands(101, 0), 400, "30032"},
		{"PUT", "/applications/" + AppID + "/commands", someCommands(0, 16), 400, "30032"},
		{"GET", "/nothing", "", 404, "404"},
	} {
		if status, body := ask(t, s, c.method, c.path, c.body); status != c.want || !strings.Contains(body, c.says) {
			t.Errorf("%s %s %.60s: got %d %s, want %d %s", c.method, c.path, c.body, status, body, c.want, c.says)
		}
	}
	if status, body := ask(t, s, "POST", "/channels/8/messages", `{"content":"x",`+nobody+`}`, "a.txt"); status != 403 {
		t.Errorf("a file without permission: got %d %s, want 403", status, body)
	}
	status, body := ask(t, s, "POST", hall+"/messages", `{"attachments":[{"id":0,"description":"words"}],`+nobody+`}`, "a.txt")
	if last := s.Messages(HallID); status != 200 || len(last[len(last)-1].Files) != 1 || last[len(last)-1].Files[0].Alt != "words" {
		t.Errorf("a file: got %d %s, want it sent with its description", status, body)
	}
	if _, err := s.Command(HallID, AnnID, "down", nil); err == nil {
		t.Error("an unknown command was called")
	}
}

// someCommands returns a list of n chat commands and m commands of the context menu.
func someCommands(n, m int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"name":"up%d","description":"x"}`, i))
	}
	for i := range m {
		list = append(list, fmt.Sprintf(`{"name":"Keep %d","type":3}`, i))
	}
	return "[" + strings.Join(list, ",") + "]"
}

// TestServerNotesBreaches: mentions of more than the author of a replied message are recorded as breaches.
func TestServerNotesBreaches(t *testing.T) {
	s, end := InMemory()
	defer end()
	for text, raw := range map[string]string{"nothing": ``, "everybody": `{"parse":["everyone"]}`, "no list": `{}`, "somebody": `{"parse":[],"users":["5"]}`} {
		before := len(s.Breaches())
		s.allowed(&Call{Method: "POST", Path: "/" + text}, json.RawMessage(raw))
		if len(s.Breaches()) != before+1 {
			t.Errorf("%s: no breach was recorded", text)
		}
	}
	s.allowed(&Call{}, json.RawMessage(`{"parse":[],"replied_user":true}`))
	if len(s.Breaches()) != 4 {
		t.Errorf("got breaches %q, want 4", s.Breaches())
	}
}

// TestServerHonoursNonces: a message with a known nonce is not sent again, until the nonce expires.
func TestServerHonoursNonces(t *testing.T) {
	s := New(t)
	send := func(nonce string) {
		if status, body := ask(t, s, "POST", "/channels/"+HallID+"/messages", `{"content":"x","nonce":"`+nonce+`","enforce_nonce":true,`+nobody+`}`); status != 200 {
			t.Fatal(status, body)
		}
	}
	send("a")
	send("a")
	send("b")
	if n := len(s.Messages(HallID)); n != 2 {
		t.Fatalf("got %d messages, want 2", n)
	}
	s.HonourNonces(0)
	send("a")
	if n := len(s.Messages(HallID)); n != 3 {
		t.Errorf("after the nonce expired, got %d messages, want 3", n)
	}
}

// TestServerLimits: the fake server enforces rate limits by channel and globally.
func TestServerLimits(t *testing.T) {
	s := New(t)
	s.Limit(2, time.Hour, 0)
	for i, want := range []int{200, 200, 429, 429} {
		if status, body := ask(t, s, "GET", "/channels/"+HallID, ""); status != want {
			t.Errorf("request %d: got %d %s, want %d", i, status, body, want)
		}
	}
	if status, _ := ask(t, s, "GET", "/channels/"+RoomID, ""); status != 200 {
		t.Errorf("another channel: got %d, want 200", status)
	}
	if hits, early := s.Hits(); hits != 2 || early != 0 {
		t.Errorf("got %d exceeded limits and %d early requests, want 2 and 0", hits, early)
	}
	s.FailNext("GET /channels/"+RoomID, Fault{Kind: Global, After: time.Hour})
	for range 2 {
		if status, _ := ask(t, s, "GET", "/channels/"+RoomID, ""); status != 429 {
			t.Errorf("global limit: got %d, want 429", status)
		}
	}
	if _, early := s.Hits(); early != 1 {
		t.Errorf("got %d early requests, want 1", early)
	}
}
