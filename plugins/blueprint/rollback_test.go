package blueprint

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/plugins/plugintest"
)

// TestRollback checks that a call is undone by the tool in the file, with values of the call and its output,
// and with another key. A call that cannot be undone says why, when the file is read or later.
func TestRollback(t *testing.T) {
	const cancel = `{"name":"cancel","inputSchema":{"type":"object","required":["booking"],` +
		`"properties":{"booking":{"type":"integer"},"of":{"type":"array"},"why":{"type":"string","default":"undone"},` +
		`"to":{"type":"object","properties":{"n":{"type":"integer","default":1}}}}}}`
	booking := func(rollback string) string {
		return `{"name":"book","inputSchema":{"type":"object"},"rollback":` + rollback + `}`
	}
	for _, tc := range []struct{ rollback, output, want, fault string }{
		{
			rollback: `{"tool":"cancel","input":{"booking":"$output.made.0.id","of":["$input.who","$1"]}}`,
			output:   `{"made":[{"id":7}]}`, want: `{"booking":7,"of":["Jay","$1"],"why":"undone"}`,
		},
		{ // the default for one use of a value does not change the other
			rollback: `{"tool":"cancel","input":{"booking":"$output.id","of":["$output.x"],"to":"$output.x"}}`,
			output:   `{"id":7,"x":{}}`, want: `{"booking":7,"of":[{}],"to":{"n":1},"why":"undone"}`,
		},
		{rollback: `{"tool":"cancel","input":{"booking":"$output.id"}}`, output: `{}`, fault: "the call has no $output.id"},
		{rollback: `{"tool":"cancel","input":{"booking":"$output.id"}}`, output: `{"id":"x"}`, fault: "for cancel, the value"},
		{rollback: `{"tool":"cancel"}`, output: `{}`, fault: "for cancel, the value"},
		{rollback: `{"tool":"cancle","input":{}}`, fault: `the file has no usable tool "cancle"`},
		{rollback: `{"tool":"cancel","input":[]}`, fault: "input is not an object"},
		{rollback: `{"tool":"rule","input":{}}`, fault: "rule is for fewer users"},
	} {
		t.Run(tc.rollback, func(t *testing.T) {
			var tool, input string
			keys := make(map[string]bool)
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				var sent request
				if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
					t.Error(err)
				}
				tool, input = sent.Tool, string(sent.Input)
				keys[r.Header.Get("Idempotency-Key")] = true
				_, _ = io.WriteString(w, tc.output)
			})
			const rule = `{"name":"rule","inputSchema":{"type":"object"},"security":{"permission":"admins"}}`
			s.Path = file(t, with(booking(tc.rollback)+","+cancel+","+rule))
			_, warnings := (&Config{Sources: []Source{s}}).load()
			p, err := New(plugintest.NewHarness(t, "blueprint").Host, Config{Sources: []Source{s}})
			if err != nil {
				t.Fatal(err)
			}
			a := p.Actions()[0]
			if a.Undo == nil {
				if !strings.Contains(fmt.Sprint(warnings), tc.fault) || tc.output != "" {
					t.Errorf("warnings: got %v", warnings)
				}
				return
			}
			c := coretest.Call(&a, core.MustPath("room/1"), core.Author{ID: "jay"}, json.RawMessage(`{"who":"Jay"}`))
			done, err := a.Do(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			err = a.Undo(t.Context(), c, done)
			switch {
			case tc.fault != "":
				if err == nil || !strings.Contains(err.Error(), tc.fault) || tool != "book" {
					t.Errorf("got %v after a call of %s", err, tool)
				}
			case err != nil || tool != "cancel" || input != tc.want || len(keys) != 2:
				t.Errorf("got %v after a call of %s with %s, keys %v", err, tool, input, keys)
			}
		})
	}
}
