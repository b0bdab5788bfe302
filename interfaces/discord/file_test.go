package discord

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/markdown"
	"synthbot/interfaces/discord/discordtest"
	"synthbot/interfaces/discord/markup"
)

// TestSendFile: a file is sent once, with a safe name and its description, and the journal describes it.
func TestSendFile(t *testing.T) {
	picture := core.Upload{Name: "cat.png", MIME: "image/png", Data: []byte("PNG"), Alt: "A cat\non a sofa", Kind: core.MediaImage}
	for name, c := range map[string]struct {
		to      string
		caption string
		file    core.Upload
		want    discordtest.File
		text    string // of the message
		noted   string // as it joins the history
	}{
		"a picture":  {hallID, "Your *cat*.", picture, discordtest.File{Name: "cat.png", MIME: "image/png", Alt: "A cat on a sofa"}, "Your *cat*.", "Your *cat*.\n[picture: A cat on a sofa]"},
		"no caption": {dmID, "", picture, discordtest.File{Name: "cat.png", MIME: "image/png", Alt: "A cat on a sofa"}, "", "[picture: A cat on a sofa]"},
		"a voice message": {hallID, "Listen.", core.Upload{Name: "answer.ogg", MIME: "audio/ogg; codecs=opus", Data: []byte("Ogg"), Kind: core.MediaAudio},
			discordtest.File{Name: "answer.ogg", MIME: "audio/ogg"}, "Listen.", "Listen.\n[sound: answer.ogg]"},
		"a voice message of its own": {hallID, "", core.Upload{Name: "voice.ogg", MIME: "audio/ogg", Data: []byte("Ogg"), Kind: core.MediaAudio,
			Length: 2500 * time.Millisecond, Waveform: []byte{0, 128, 255}},
			discordtest.File{Name: "voice.ogg", MIME: "audio/ogg", Seconds: 2.5, Waveform: []byte{0, 128, 255}}, "", "[voice message]"},
		"a voice with a caption": {hallID, "Listen.", core.Upload{Name: "voice.ogg", MIME: "audio/ogg", Data: []byte("Ogg"), Kind: core.MediaAudio,
			Length: time.Second, Waveform: []byte{1}},
			discordtest.File{Name: "voice.ogg", MIME: "audio/ogg"}, "Listen.", "Listen.\n[sound: voice.ogg]"},
		"a bad name": {hallID, "x", core.Upload{Name: `..\..\"a";b.txt`, MIME: "no type", Data: []byte("x")}, discordtest.File{Name: "a_b.txt", MIME: "application/octet-stream"}, "x", "x\n[file: a_b.txt]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			d, parts := s.bot(t), &journal{base: "file"}
			to := core.MustPath("discord/" + guildID + "/" + c.to)
			if c.to == dmID {
				to = core.MustPath("discord/@me/" + dmID)
			}
			for range 2 { // what is journalled is not sent again
				if err := d.SendFile(t.Context(), parts, 3, core.Sent{Path: to, Text: c.caption}, c.file); err != nil {
					t.Fatal(err)
				}
			}
			all := s.Messages(c.to)
			if len(all) != 1 || len(all[0].Files) != 1 {
				t.Fatalf("got %+v, want one message with one file", all)
			}
			m, f := all[0], all[0].Files[0]
			same := f.Name == c.want.Name && f.MIME == c.want.MIME && f.Alt == c.want.Alt &&
				m.Voice == (c.want.Seconds > 0) && f.Seconds == c.want.Seconds &&
				bytes.Equal(f.Waveform, c.want.Waveform)
			if !same || !bytes.Equal(f.Data, c.file.Data) {
				t.Errorf("got file %+v, want %+v", f, c.want)
			}
			units := markdown.UTF16(m.Text)
			if !strings.HasSuffix(m.Text, c.text) || units > markup.MaxContent || parts.done[3].ID != m.ID {
				t.Errorf("got caption %.50q, journalled %+v", m.Text, parts.done)
			}
			if parts.done[3].Text != c.noted {
				t.Errorf("journalled text: got %q, want %q", parts.done[3].Text, c.noted)
			}
		})
	}
}

// TestSendFileLongCaption: a caption that is too long continues in further messages, as parts of their own.
func TestSendFileLongCaption(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, parts := s.bot(t), &journal{base: "file"}
	caption := strings.Repeat("A sentence of some words. ", 200)
	for range 2 {
		if err := d.SendFile(t.Context(), parts, 2, core.Sent{Path: hall(), Text: caption}, core.Upload{Name: "a.txt", Data: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	all := s.Messages(hallID)
	if len(all) != 3 || len(all[0].Files) != 1 || len(all[1].Files) != 0 ||
		parts.done[2].ID != all[0].ID || parts.done[2*restParts+2].ID != all[2].ID {
		t.Errorf("got %+v, journalled %+v, want three messages, the first with the file", all, parts.done)
	}
	if said := strings.Join(strings.Fields(strings.Join(s.Texts(hallID), " ")), " "); said+" " != caption {
		t.Errorf("got %q, want the whole caption", said)
	}
}

// TestSendFileRefuses: empty and large files, users and places of other interfaces are errors.
func TestSendFileRefuses(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d := s.bot(t)
	for name, c := range map[string]struct {
		to   string
		size int
		want core.ErrorKind
	}{
		"nothing":   {"discord/" + guildID + "/" + hallID, 0, core.Broken},
		"too large": {"discord/" + guildID + "/" + hallID, maxFileSize + 1, core.Broken},
		"a person":  {"discord/@user/" + annID, 1, core.Invalid},
		"elsewhere": {"telegram/5", 1, core.Invalid},
	} {
		err := d.SendFile(t.Context(), &journal{}, 1, core.Sent{Path: core.MustPath(c.to), Text: "x"}, core.Upload{Name: "x", Data: make([]byte, c.size)})
		if kind(err) != c.want || len(s.Messages(hallID)) != 0 {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

// TestFilesWithoutPermission: a channel that refuses files and polls still receives messages, and admins
// are not notified.
func TestFilesWithoutPermission(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var notices []string
	d, _ := s.up(t, func(o *Options) { o.Admin = func(text string) { notices = append(notices, text) } })
	s.ChangeChannel(hallID, func(c *discordtest.Channel) {
		c.Over = []discordtest.Overwrite{{ID: guildID, Deny: discordtest.MayAttach | discordtest.MayPoll}}
	})
	err := d.SendFile(t.Context(), &journal{base: "a"}, 1, core.Sent{Path: hall(), Text: "x"}, core.Upload{Name: "x.txt", Data: []byte("x")})
	if kind(err) != core.Broken {
		t.Errorf("a file: got %v, want an error of the interface", err)
	}
	if _, err := act(t, d, "poll_discord", map[string]any{"question": "Which?", "answers": []string{"a", "b"}}); kind(err) != core.Broken {
		t.Errorf("a poll: got %v, want an error of the interface", err)
	}
	if _, err := act(t, d, "message_discord", map[string]any{"text": "words"}); err != nil || len(notices) != 0 {
		t.Errorf("a text: %v; admins received %q, want nothing", err, notices)
	}
}
