package daemon

import (
	"bytes"
	"strings"
	"testing"
)

// TestThoughtless: what a person is shown of what is kept holds nothing of what the
// bot thought for itself, in whatever pieces it is written.
func TestThoughtless(t *testing.T) {
	const in = `{"item":{"value":{"entries":[{"id":"1","n":12345678901234567890,"private_thought":"Canaria"}]}}}
{"record":{"data":{"actions":[{"payload":{"Private_Thought":"Canaria","summary":"<b>"}},{"payload":{"private\u005fthought":"Canaria"}}]}}}
{"plain":"as it is",  "spaced":1}
`
	const want = `{"item":{"value":{"entries":[{"id":"1","n":12345678901234567890}]}}}
{"record":{"data":{"actions":[{"payload":{"summary":"<b>"}},{"payload":{}}]}}}
{"plain":"as it is",  "spaced":1}
`
	for _, size := range []int{1, 7, len(in)} {
		var out bytes.Buffer
		w := &thoughtless{next: &out}
		for rest := in; rest != ""; rest = rest[min(size, len(rest)):] {
			if n, err := w.Write([]byte(rest[:min(size, len(rest))])); err != nil || n != min(size, len(rest)) {
				t.Fatal(n, err)
			}
		}
		if got := out.String(); got != want || strings.Contains(got, "Canaria") {
			t.Errorf("in pieces of %d: %s", size, got)
		}
	}
}
