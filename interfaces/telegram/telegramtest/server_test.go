package telegramtest

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestParseHTML: ParseHTML accepts and refuses what the platform does.
func TestParseHTML(t *testing.T) {
	for source, want := range map[string]string{
		"a &lt;b&gt; &amp; &nope; &#65;":                       "a <b> & &nope; A",
		"<b>x <i>y</i></b> <a href=\"http://x/?a=1&amp;b\">z":  "!Can't find end tag",
		"<pre><code class=\"language-go\">x</code></pre>":      "x",
		"<blockquote expandable><b>x</b></blockquote>":         "x",
		"<b><code>x</code></b>":                                "!inside of bold",
		"<code><b>x</b></code>":                                "!inside of code",
		"<blockquote>a<blockquote>b</blockquote></blockquote>": "!inside of itself",
		"<b>x</i>":    "!Unmatched end tag",
		"x</b>":       "!Unexpected end tag",
		"a < b":       "!Unclosed start tag",
		"a <p>b</p>":  "!Unsupported start tag",
		"<>":          "!Expected a tag name",
		"\xff":        "!UTF-8",
		"<a href=x>y": "!Unexpected attribute",
	} {
		text, _, err := ParseHTML(source)
		if reason, bad := strings.CutPrefix(want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), reason) {
				t.Errorf("%q: %v, want an error with %q", source, err, reason)
			}
		} else if err != nil || text != want {
			t.Errorf("%q: got %q, %v, want %q", source, text, err, want)
		}
	}
	_, entities, _ := ParseHTML("😀<b>é</b><a href=\"http://x\">l</a>")
	if len(entities) != 2 || entities[0] != (Entity{Type: "bold", Offset: 2, Length: 1}) || entities[1].URL != "http://x" {
		t.Errorf("got entities %+v, want bold at 2 and a link", entities)
	}
}

// TestServerRefuses: the fake server refuses the calls that the platform refuses.
func TestServerRefuses(t *testing.T) {
	s := New(t)
	s.AddPerson(Person{ID: 1000, Name: "Jay"})
	s.AddChat(Chat{ID: -1001, Type: "supergroup", Title: "G", Forum: true, Topics: map[int]string{7: "", 8: "closed"}})
	for _, tc := range []struct{ method, query, want string }{
		{"sendMessage", "chat_id=1000&text=hi", `"ok":true`},
		{"sendMessage", "chat_id=1000&text=" + strings.Repeat("a", 4097), "message is too long"},
		{"sendMessage", "chat_id=1000&text=%20", "message text is empty"},
		{"sendMessage", "chat_id=5&text=x", "chat not found"},
		{"sendMessage", "chat_id=1000&text=x&message_thread_id=7", "message thread not found"},
		{"sendMessage", "chat_id=-1001&text=x&message_thread_id=1", "message thread not found"},
		{"sendMessage", "chat_id=-1001&text=x&message_thread_id=8", "TOPIC_CLOSED"},
		{"sendMessage", "chat_id=-1001&text=x&message_thread_id=7", `"message_thread_id":7`},
		{"sendChatAction", "chat_id=-1001&action=typing&message_thread_id=1", `"ok":true`},
		{"sendMessage", `chat_id=1000&text=x&reply_parameters={"message_id":99}`, "message to be replied not found"},
		{"editMessageText", "chat_id=1000&message_id=1&text=hi", "message is not modified"},
		{"sendMessageDraft", "chat_id=1000&draft_id=7&text=half", `"ok":true`},
		{"sendMessageDraft", "chat_id=1000&draft_id=0&text=half", "must be non-zero"},
		{"sendMessageDraft", "chat_id=-1001&draft_id=7&text=half", "TEXTDRAFT_PEER_INVALID"},
		{"sendVoice", "chat_id=1000&voice=unknown", "wrong file identifier"},
		{"sendRichMessage", `chat_id=1000&rich_message={"html":"<table><tr><td>x</td></tr></table>"}`, `"type":"paragraph"`},
		{"sendRichMessage", `chat_id=1000&rich_message={"html":"<td>x</td>"}`, "can't parse rich message"},
		{"nosuch", "", "Not Found"},
	} {
		resp, err := http.PostForm(s.URL+"/bot"+Token+"/"+tc.method, values(tc.query))
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 1024)
		n, _ := resp.Body.Read(b)
		_ = resp.Body.Close()
		if !strings.Contains(string(b[:n]), tc.want) {
			t.Errorf("%s %.60s: got %s, want %q", tc.method, tc.query, b[:n], tc.want)
		}
	}
}

// TestParseRich: ParseRich accepts and refuses what the platform does.
// TestParseRich: ParseRich accepts and refuses what the platform does.
func TestParseRich(t *testing.T) {
	for source, want := range map[string]string{
		"<h1>T &lt;x&gt;</h1><p>a <b>b</b><br>c</p><hr/>":                                       "T <x>\na b\nc",
		"<ul><li>one<ol start=\"1\"><li>two</li></ol></li></ul>":                                "• one1. two",
		`<table bordered><tr><th align="left">a</th><th>b</th></tr><tr><td>c</td></tr></table>`: "a | b | \nc |",
		"<p><p>x</p></p>":            "!inside of",
		"<td>x</td>":                 "!inside of",
		"<b>x</b>":                   "!inside of",
		"<p><b><b>x</b></b></p>":     "!inside of",
		"<p>x":                       "!no end",
		"<p>x</b>":                   "!unexpected end",
		"<script>x</script>":         "!inside of",
		strings.Repeat("<hr/>", 501): "!TOO_LONG",
	} {
		text, err := ParseRich(source)
		if reason, bad := strings.CutPrefix(want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), reason) {
				t.Errorf("%.40q: %v, want an error with %q", source, err, reason)
			}
		} else if err != nil || text != want {
			t.Errorf("%q = %q, %v; want %q", source, text, err, want)
		}
	}
}

func values(query string) url.Values {
	v, err := url.ParseQuery(query)
	if err != nil {
		panic(err)
	}
	return v
}
