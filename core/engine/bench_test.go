package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// BenchmarkReadStream measures a call that is answered with a stream of 50 events.
func BenchmarkReadStream(b *testing.B) {
	var in strings.Builder
	for i := range 48 {
		piece, _ := json.Marshal(fmt.Sprintf("piece %d ", i))
		fmt.Fprintf(&in, `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":%s},"finish_reason":null}]}`+"\n\n", piece)
	}
	in.WriteString(`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":48}}` + "\n\ndata: [DONE]\n\n")
	b.ReportAllocs()
	for b.Loop() {
		if c, err := streamed(b.Context(), openAI{}, in.String(), func(string) {}); err != nil || c.got.stop != "stop" {
			b.Fatal(err)
		}
	}
}
