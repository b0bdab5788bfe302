//go:build !race

// The process that reads a PDF may take 192 MiB, which the race detector does not fit into.

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"synthbot/core/coretest"
	"synthbot/interfaces/telegram/telegramtest"
)

func TestPDFInItsOwnProcess(t *testing.T) {
	got, err := pdfText(t.Context(), coretest.PDF("The answer is 42."))
	if err != nil || !strings.Contains(got, "The answer is 42.") {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := pdfText(t.Context(), []byte("%PDF-1.4 and no more")); err == nil || !strings.Contains(err.Error(), "pdf") {
		t.Errorf("%q, %v", got, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if got, err := pdfText(ctx, coretest.PDF("x")); err == nil {
		t.Errorf("out of time: %q", got)
	}
}

// TestOnePDFAtATime: of documents that come at once, each is read when the process that
// read the one before has ended.
func TestOnePDFAtATime(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile(onlyPDF, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b := &bot{pdfs: make(chan struct{}, pdfCrowd)}
	data := coretest.PackedPDF("a", 50_000) // takes longer than a process takes to begin
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if _, err := b.pdfText(t.Context(), data); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestPDFThatGrows: a small file that takes a lot of memory ends the process that
// reads it, long before its time, at less than the memory it may have.
func TestPDFThatGrows(t *testing.T) {
	data := coretest.PackedPDF("a", 30_000_000)
	if len(data) > 400<<10 {
		t.Fatalf("a file of %d bytes proves nothing", len(data))
	}
	c, err := pdfProcess(t.Context(), bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Run(); err == nil {
		t.Error("it was read")
	}
	use := c.ProcessState.SysUsage().(*syscall.Rusage)
	t.Logf("%d bytes took %d MiB and %s", len(data), use.Maxrss>>10, c.ProcessState.UserTime())
	if use.Maxrss<<10 > pdfMemory {
		t.Errorf("it took %d KiB", use.Maxrss)
	}
	got, err := pdfText(t.Context(), data)
	if err == nil || len(err.Error()) > 2*pdfReason || !strings.Contains(err.Error(), "memory") {
		t.Errorf("%q, %v", got, err)
	}
}

// TestPDFProcessIsLimited, before it reads anything.
func TestPDFProcessIsLimited(t *testing.T) {
	in, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	c, err := pdfProcess(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	of := func(name string) string {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", c.Process.Pid, name))
		return string(text)
	}
	until(t, func() bool { return strings.TrimSpace(of("oom_score_adj")) == "1000" })
	if limits := of("limits"); !regexp.MustCompile(`Max data size +201326592 +201326592`).MatchString(limits) {
		t.Error(limits)
	}
	w.Close()
	_ = c.Wait() // nothing is no PDF
}

// TestAttachmentsReachTheModel: what people attach is read as far as the engine
// can make use of it.
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
