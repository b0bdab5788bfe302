package mcp

import (
	"strings"
	"testing"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/secret"
)

func TestBrief(t *testing.T) {
	for description, want := range map[string]string{
		"Returns the weather. For any city.":                    "Return the weather",
		"This tool allows you to search the web":                "Search the web",
		"A tool that Lists all issues in a repo; use with care": "List all issues in a repo",
		"Copies a file": "Copy a file",
		"Pushes commits, e.g. after a merge. Needs rights.": "Push commits, e.g. after a merge",
		"Weather for a city":   "Run the_tool: Weather for a city",
		"Files of the project": "Run the_tool: Files of the project",
		"":                     "Run the_tool of srv",
		" \n\t ":               "Run the_tool of srv",
		"**Create** a `file`\n\n## Usage\nlots of text":                "Create a file Usage lots of text",
		"查询天气。需要城市。":                                                   "Run the_tool: 查询天气",
		"Get\x00 a\u202e line\u2028break":                              "Get a line break",
		"Use this tool to":                                             "Use this tool to",
		"List " + strings.Repeat("very ", 40) + "long lists of things": "List " + strings.Repeat("very ", 18) + "ver…",
		"v1.2 of the API: fetch":                                       "Run the_tool: v1.2 of the API: fetch",
	} {
		if got := brief("srv", "the_tool", description); got != want {
			t.Errorf("%q: got %q, want %q", description, got, want)
		}
	}
}

func TestActionName(t *testing.T) {
	long := strings.Repeat("a", 80)
	for _, tc := range []struct {
		tool string
		mark bool
		want string
	}{
		{"read_file", false, "srv_read_file"},
		{"Read File", false, "srv_read_file"},
		{"a/b.c-d", false, "srv_a_b.c-d"},
		{"read_file", true, "srv_read_file_"},
		{long, false, "srv_" + strings.Repeat("a", 53) + "_"},
		{"日本", false, "srv_"},
	} {
		got := actionName("srv", tc.tool, tc.mark)
		if !strings.HasPrefix(got, tc.want) || len(got) > maxName {
			t.Errorf("%s: got %s, want %s", tc.tool, got, tc.want)
		}
	}
	if actionName("srv", long+"1", false) == actionName("srv", long+"2", false) {
		t.Error("two long names became equal")
	}
}

// TestClashes checks that clashing names get a suffix, which is always the same.
func TestClashes(t *testing.T) {
	e := func(server, tool string, own bool) entry {
		return entry{server: server, tool: tool, own: own, action: core.Action{Name: actionName(server, tool, false)}}
	}
	entries := []entry{e("a", "read_file", false), e("a", "ReadFile", false), e("a", "resource-read", false), e("a", resourceRead, true), e("b", "other", false), e("a-b", "c", false), e("a", "b_c", false)}
	seen := make(map[string]bool)
	for _, a := range nameActions(entries) {
		if seen[action.Normal(a.Name)] {
			t.Errorf("the name %s occurs twice", a.Name)
		}
		seen[action.Normal(a.Name)] = true
	}
	if !seen["aresourceread"] || !seen["bother"] || seen["areadfile"] || seen["abc"] {
		t.Errorf("got %v", seen)
	}
	first := nameActions(entries)
	entries[0], entries[1] = entries[1], entries[0]
	for i, a := range nameActions(entries) {
		if a.Name != first[i].Name {
			t.Errorf("%s was called %s before", a.Name, first[i].Name)
		}
	}
}

func TestRedact(t *testing.T) {
	redact := newServer(core.Host{Log: discardLog()}, Server{
		Env:     map[string]secret.Secret{"A": secret.New("abcdef"), "B": secret.New("abcdefgh"), "C": secret.New("1")},
		Headers: map[string]secret.Secret{"Authorization": secret.New("Bearer tok-123456")},
	}, nil).redact
	if got := redact("abcdefgh abcdef 1 tok-123456 Bearer tok-123456"); got != "[secret] [secret] 1 [secret] [secret]" {
		t.Error(got)
	}
}

// TestToolsOfOtherDialects checks that a pattern with lookaround, like that of zod's email(), or a keyword of
// an older draft does not disable a tool.
func TestToolsOfOtherDialects(t *testing.T) {
	s := newServer(core.Host{Log: discardLog()}, complete(Server{Name: "srv"}), func() {})
	for _, property := range []string{
		`{"type":"string","format":"email","pattern":"^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$"}`,
		`{"type":"number","minimum":0,"exclusiveMinimum":true}`, `{"type":"string","default":null}`, `{"type":["string",null]}`,
	} {
		tool, ok := toolOf("send", "Sends it.", `{"type":"object","properties":{"a":`+property+`},"required":["a"]}`)
		if !ok {
			t.Fatal(property)
		}
		a, err := s.toolAction(tool)
		if err != nil || strings.Contains(string(a.Schema), "pattern") || !strings.Contains(string(a.Schema), `"required":["a"]`) {
			t.Errorf("%s: got %v, %s", property, err, a.Schema)
		}
	}
}

// FuzzTool checks that any tool becomes an action that the catalogue accepts, or none.
func FuzzTool(f *testing.F) {
	f.Add("read_file", "Reads a file.", `{"type":"object","properties":{"path":{"type":"string","description":"where"}},"required":["path"]}`)
	f.Add("x", "", `{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"enum":[1,2]}}}`)
	f.Add("Ünï/..", "日本語。", `{"properties":{"n":{"type":"integer","default":"no","minimum":3},"l":{"type":"array","minItems":2,"items":{"type":"string","format":"uri"}}},"required":["n","l"]}`)
	s := newServer(core.Host{Log: discardLog()}, complete(Server{Name: "srv"}), func() {})
	f.Fuzz(func(t *testing.T, name, description, schema string) {
		tool, ok := toolOf(name, description, schema)
		if !ok {
			return
		}
		a, err := s.toolAction(tool)
		if err != nil {
			return
		}
		list := nameActions([]entry{{server: "srv", tool: name, action: a}, {server: "srv", tool: name + "2", action: a}})
		if _, err := action.Build(many(list)); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		if !utf8.ValidString(a.Brief) || !utf8.Valid(a.Schema) {
			t.Errorf("got %q", a.Brief)
		}
	})
}

// FuzzOutput checks that any output becomes limited JSON that is marked as foreign.
func FuzzOutput(f *testing.F) {
	f.Add("text", `{"a":1}`, 1000)
	f.Add("\x00\xff<&>\u2028\"\\", `[]`, 1000)
	f.Add(strings.Repeat("\"", 5000), ``, 1500)
	f.Fuzz(func(t *testing.T, text, data string, most int) {
		if most < 1000 || most > 60_000 {
			return
		}
		checkOutput(t, text, data, most)
	})
}
