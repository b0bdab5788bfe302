package coretest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"synthbot/core"
)

// DraftWorld is one place of a platform on which a driver shows drafts. All methods are
// called from the test's goroutine.
type DraftWorld interface {
	// Start kills the driver's process, if any, and starts a new one with the stored state.
	Start(t testing.TB)
	Draft(text string)
	// Answer sends the answer of a turn. Further attempts have the same parts.
	Answer(ctx context.Context, t testing.TB, parts *Parts, text string) error
	// End ends the turn, or a chat command that ran at the same time.
	End(command bool)
	// Texts returns the bot's messages, oldest first.
	Texts() []string
	// Fail makes the next request of a kind fail; an empty fault cancels that.
	Fail(DraftRequest, DraftFault)
	// Searches reports whether the bot can search for its own messages on the platform.
	Searches() bool
}

// DraftRequest is a kind of request.
type DraftRequest string

// Requests that can fail in a DraftWorld.
const (
	DraftPost DraftRequest = "post"
	DraftEdit DraftRequest = "edit"
)

// DraftFault is a way in which a request fails.
type DraftFault string

// Ways to fail.
const (
	DraftLimited     DraftFault = "limited"      // by a rate limit, for some seconds
	DraftLostRequest DraftFault = "lost request" // not carried out, but the bot does not know that
	DraftLostReply   DraftFault = "lost reply"   // carried out, but the bot does not know that
)

// draftLong is longer than any wait of drafts.
const draftLong = time.Hour

// TestDrafts checks that a driver shows drafts and replaces them with answers. bubble runs a test with
// a new world, in testing/synctest.
func TestDrafts(t *testing.T, bubble func(*testing.T, func(*testing.T, DraftWorld))) {
	for name, test := range map[string]func(*testing.T, DraftWorld){
		"grows and becomes the answer": testDraftGrows,
		"quick answer":                 testDraftQuick,
		"long answer":                  testDraftLong,
		"taken back":                   testDraftWithdrawn,
		"turn without an answer":       testDraftUnanswered,
		"first request limited":        testDraftLimited,
		"death in mid-draft":           testDraftDeath,
	} {
		t.Run(name, func(t *testing.T) { bubble(t, test) })
	}
	for _, fault := range []DraftFault{DraftLostRequest, DraftLostReply} {
		t.Run("draft with a "+string(fault), func(t *testing.T) {
			bubble(t, func(t *testing.T, w DraftWorld) { testDraftLost(t, w, fault) })
		})
		t.Run("answer with a "+string(fault), func(t *testing.T) {
			bubble(t, func(t *testing.T, w DraftWorld) { testDraftUnknown(t, w, fault) })
		})
		for _, restart := range []bool{false, true} {
			name := "answer that its draft showed, " + string(fault)
			if restart {
				name += ", restart"
			}
			t.Run(name, func(t *testing.T) {
				bubble(t, func(t *testing.T, w DraftWorld) { testDraftSameText(t, w, fault, restart) })
			})
		}
	}
}

// answer sends an answer as a turn does.
func answer(t testing.TB, w DraftWorld, text string) {
	t.Helper()
	parts := &Parts{}
	if err := Again(t.Context(), func() error { return w.Answer(t.Context(), t, parts, text) }); err != nil {
		t.Errorf("answer %q: %v", text, err)
	}
}

func wantTexts(t testing.TB, w DraftWorld, want ...string) {
	t.Helper()
	if got := w.Texts(); !slices.Equal(got, want) {
		t.Errorf("shown: %q, want %q", got, want)
	}
}

func testDraftGrows(t *testing.T, w DraftWorld) {
	w.Start(t)
	text := ""
	for range 100 { // 20 s
		text += "word "
		w.Draft(text)
		time.Sleep(200 * time.Millisecond)
	}
	got := w.Texts()
	if len(got) != 1 || len(got[0]) < len("word word word") || !strings.HasPrefix(text, got[0]) {
		t.Errorf("shown while it grows: %q", got)
	}
	answer(t, w, text+"end")
	wantTexts(t, w, text+"end")
	time.Sleep(draftLong)
	answer(t, w, "another")
	wantTexts(t, w, text+"end", "another")
}

func testDraftQuick(t *testing.T, w DraftWorld) {
	w.Start(t)
	w.Draft("quick")
	time.Sleep(50 * time.Millisecond)
	wantTexts(t, w)
	answer(t, w, "quick")
	time.Sleep(draftLong)
	wantTexts(t, w, "quick")
}

// testDraftLong expects each word of an answer of several messages once.
func testDraftLong(t *testing.T, w DraftWorld) {
	w.Start(t)
	w.Draft("many words")
	time.Sleep(30 * time.Second)
	text := strings.Repeat("many words ", 1000)
	answer(t, w, text)
	time.Sleep(draftLong)
	if got := w.Texts(); len(got) < 2 || letters(strings.Join(got, "")) != letters(text) {
		t.Errorf("%d messages show %d letters of %d", len(got), len(letters(strings.Join(got, ""))), len(letters(text)))
	}
}

func testDraftWithdrawn(t *testing.T, w DraftWorld) {
	w.Start(t)
	w.Draft("half a text")
	time.Sleep(30 * time.Second)
	wantTexts(t, w, "half a text")
	w.Draft("")
	time.Sleep(30 * time.Second)
	wantTexts(t, w)
	answer(t, w, "whole")
	wantTexts(t, w, "whole")
}

// testDraftUnanswered: the draft of a turn that ends without sending anything is deleted.
func testDraftUnanswered(t *testing.T, w DraftWorld) {
	w.Start(t)
	w.Draft("half a text")
	time.Sleep(30 * time.Second)
	w.End(true)
	time.Sleep(30 * time.Second)
	wantTexts(t, w, "half a text")
	w.End(false)
	time.Sleep(30 * time.Second)
	wantTexts(t, w)
	answer(t, w, "whole")
	wantTexts(t, w, "whole")
}

func testDraftLimited(t *testing.T, w DraftWorld) {
	w.Start(t)
	w.Fail(DraftPost, DraftLimited)
	w.Draft("half")
	time.Sleep(30 * time.Second)
	w.Draft("half a text")
	time.Sleep(30 * time.Second)
	wantTexts(t, w, "half a text")
	answer(t, w, "whole")
	wantTexts(t, w, "whole")
}

// testDraftLost loses the first request of a draft. If the bot cannot search for the message, it may stay.
func testDraftLost(t *testing.T, w DraftWorld, fault DraftFault) {
	w.Start(t)
	w.Fail(DraftPost, fault)
	w.Draft("half")
	time.Sleep(10 * time.Second)
	w.Draft("half a text")
	time.Sleep(time.Minute)
	answer(t, w, "whole")
	time.Sleep(draftLong)
	if got := w.Texts(); !w.Searches() && fault == DraftLostReply {
		wantTexts(t, w, "half", "whole")
	} else if !slices.Equal(got, []string{"whole"}) {
		t.Errorf("shown: %q", got)
	}
}

func testDraftDeath(t *testing.T, w DraftWorld) {
	begin := func() {
		t.Helper()
		w.Start(t)
		w.Draft("half a text")
		time.Sleep(30 * time.Second)
		w.Start(t)
	}
	begin()
	wantTexts(t, w, "half a text")
	time.Sleep(draftLong)
	wantTexts(t, w)
	begin()
	answer(t, w, "whole")
	wantTexts(t, w, "whole")
	w.Start(t)
	time.Sleep(draftLong)
	answer(t, w, "on")
	wantTexts(t, w, "whole", "on")
}

// testDraftUnknown: if it is unknown whether the draft became the answer, only another attempt at the
// same part changes the message.
func testDraftUnknown(t *testing.T, w DraftWorld, fault DraftFault) {
	w.Start(t)
	w.Draft("half a text")
	time.Sleep(30 * time.Second)
	parts := &Parts{}
	for range 20 { // a driver may try again by itself
		w.Fail(DraftEdit, fault)
	}
	if err := w.Answer(t.Context(), t, parts, "whole"); !errors.Is(err, core.ErrUnknownOutcome) {
		t.Fatalf("the answer: %v", err)
	}
	w.Fail(DraftEdit, "")
	w.Start(t)
	if got := w.Texts(); len(got) != 1 {
		t.Errorf("shown: %q", got)
	}
	if err := Again(t.Context(), func() error { return w.Answer(t.Context(), t, parts, "whole") }); err != nil {
		t.Error(err)
	}
	time.Sleep(draftLong)
	wantTexts(t, w, "whole")
}

// testDraftSameText: answers with the same text as their drafts are not deleted.
func testDraftSameText(t *testing.T, w DraftWorld, fault DraftFault, restart bool) {
	w.Start(t)
	for range 2 {
		w.Fail(DraftPost, fault)
		w.Draft("Sure.")
		time.Sleep(5 * time.Second)
		answer(t, w, "Sure.")
	}
	answers := len(w.Texts())
	if answers < 2 || w.Searches() && answers > 2 {
		t.Errorf("shown: %q", w.Texts())
	}
	if restart {
		w.Start(t)
	}
	answer(t, w, "Anything else?")
	time.Sleep(draftLong)
	want := slices.Repeat([]string{"Sure."}, answers)
	wantTexts(t, w, append(want, "Anything else?")...)
}
