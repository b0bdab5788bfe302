package action

import (
	"strings"
	"testing"

	"synthbot/core"
)

// TestNearest: a name matches the nearest action if at most a third of its letters differ or if it
// begins that action's name, and if there is only one such action.
func TestNearest(t *testing.T) {
	names := []string{"websearch", "webfetch", "ban", "pin", "remember", "rememberall", "go", "forget", "quiz"}
	for name, want := range map[string]string{
		"websearch":                            "websearch",
		"websaerch":                            "websearch",
		"wibsoarth":                            "websearch", // 3 of 9 letters differ
		"wibsoarts":                            "",          // 4 letters differ
		"ebsearch":                             "websearch",
		"websearchs":                           "websearch",
		"webs":                                 "websearch",
		"web":                                  "",
		"webf":                                 "webfetch",
		"webfetchthenread":                     "webfetch",
		"bun":                                  "ban",
		"bin":                                  "", // could be ban or pin
		"b":                                    "", // no action is near enough
		"goal":                                 "",
		"remembr":                              "remember",
		"remembera":                            "", // could be remember or rememberall
		"search":                               "",
		"for":                                  "",
		"goals":                                "",
		"quizzesandmore":                       "quiz",
		"xbanx":                                "",
		strings.Repeat("x", 1000):              "",
		"webfetch" + strings.Repeat("x", 1000): "webfetch",
		"":                                     "",
	} {
		if got := nearest(name, names); got != want {
			t.Errorf("%.40q means %q, want %q", name, got, want)
		}
	}
	long := strings.Repeat("x", 64)
	if got := nearest(long[:63]+"y", []string{long, long + "zzz"}); got != long {
		t.Errorf("a long name means %q", got)
	}
}

// TestControl: built-in names are recognised in any spelling.
func TestControl(t *testing.T) {
	for name, want := range map[string]string{
		"NONE": None, "no_action": None, "Do Nothing": None, "continue": Continue, "ELABORATE": Continue, "keep-talking": Continue,
		"ignore": Ignore, "stop.talking": Ignore, "Stop Chatting": Ignore, "nothing": "", "": "", "nöne": "",
	} {
		if got, ok := Control(name); got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %v; want %q", name, got, ok, want)
		}
	}
}

// TestOddNames: names may contain digits, signs and letters beyond ASCII.
func TestOddNames(t *testing.T) {
	var w world
	s := w.catalogue(t, w.act("tool1"), w.act("tool2", func(a *core.Action) { a.Similes = []string{"[Über] {tool}@"} }))
	for name, want := range map[string]string{"Tool 1": "tool1", "TOOL-2": "tool2", "[über]{TOOL}@": "tool2", "tool@": "", "toolQ": "", "[über][tool]`": ""} {
		d, ok := s.Resolve(name)
		if ok != (want != "") || ok && d.Name != want {
			t.Errorf("%q: got %v, %v", name, d, ok)
		}
	}
}
