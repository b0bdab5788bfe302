package mcp

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"synthbot/core"
	"synthbot/core/schema"
)

func discardLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

// many is a plugin with these actions.
type many []core.Action

func (m many) Name() string           { return "mcp" }
func (m many) Actions() []core.Action { return m }

// toolOf returns a tool as the SDK decodes it.
func toolOf(name, description, schema string) (*mcp.Tool, bool) {
	var v any
	if json.Unmarshal([]byte(schema), &v) != nil {
		return nil, false
	}
	return &mcp.Tool{Name: name, Description: description, InputSchema: v}, true
}

func checkOutput(t *testing.T, text, data string, most int) {
	t.Helper()
	d := &contents{}
	d.add(&mcp.TextContent{Text: text})
	o := output{Foreign: foreign("srv", "the tool x"), Text: d.text()}
	if json.Valid([]byte(data)) {
		o.Data = json.RawMessage(data)
	}
	raw := o.encode(most)
	if len(raw) > most || !json.Valid(raw) || !strings.HasPrefix(string(raw), `{"foreign":"This is what`) {
		t.Errorf("got %d bytes, at most %d allowed: %s", len(raw), most, raw)
	}
}

func TestOutput(t *testing.T) {
	for _, most := range []int{1000, 1001, 5000} {
		for _, text := range []string{"", "short", strings.Repeat("é\"\n", 4000), strings.Repeat("\x01\\", 9000)} {
			for _, data := range []string{"", `{"a":1}`, `"` + strings.Repeat("x", 3000) + `"`} {
				checkOutput(t, text, data, most)
			}
		}
	}
	o := output{Foreign: "f", Text: ` {"b": [1, 2.0]}`, Data: json.RawMessage(`{"b":[1,2]}`)}
	if raw := string(o.encode(1000)); raw != `{"foreign":"f","result":{"b":[1,2]}}` {
		t.Error(raw)
	}
	o = output{Foreign: "f", Text: strings.Repeat("x", 3000)}
	if raw := string(o.encode(1000)); len(raw) < 980 || !strings.HasSuffix(raw, `x…","truncated":true}`) {
		t.Errorf("%d: got %s", len(raw), raw[len(raw)-60:])
	}
}

func TestSchema(t *testing.T) {
	tool, _ := toolOf("t", "", `{"$schema":"x","title":"Do what I say","description":"long","type":"object","additionalProperties":false,
		"properties":{"title":{"type":"string","title":"T","description":"`+strings.Repeat("word ", 100)+`"},"n":{"type":"integer","default":1,"examples":[1]},
		"list":{"type":"array","items":{"$ref":"#/definitions/x"}}},"required":["title"],"definitions":{"x":{"anyOf":[{"type":"string","title":"X"},{"type":"null"}]}}}`)
	form, err := schemaOf(tool.InputSchema, "srv: t")
	if err != nil {
		t.Fatal(err)
	}
	want := `{"additionalProperties":false,"definitions":{"x":{"anyOf":[{"type":"string"},{"type":"null"}]}},` +
		`"properties":{"list":{"items":{"$ref":"#/definitions/x"},"title":"list","type":"array"},"n":{"default":1,"title":"n","type":"integer"},` +
		`"title":{"description":"` + strings.Repeat("word ", 31) + `wo…","type":"string"}},"required":["title"],"title":"srv: t","type":"object"}`
	if string(form) != want {
		t.Errorf("got  %s\nwant %s", form, want)
	}
	if got := string(schema.Sample(form)); got != `{"title":"the title"}` {
		t.Error(got)
	}
	var wordy strings.Builder
	for i := range 100 {
		wordy.WriteString(`,"p` + strings.Repeat("x", i) + `":{"type":"string","description":"` + strings.Repeat("long ", 30) + `"}`)
	}
	tool, _ = toolOf("t", "", `{"type":"object","properties":{"a":{"type":"string"}`+wordy.String()+`}}`)
	if form, err = schemaOf(tool.InputSchema, "srv: t"); err != nil || strings.Contains(string(form), "long") {
		t.Errorf("a large schema of %d bytes keeps its descriptions: %v", len(form), err)
	}
}
