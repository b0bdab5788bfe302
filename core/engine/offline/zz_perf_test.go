package offline

import (
	"context"
	"strings"
	"testing"
	"time"
)

func TestPerf(t *testing.T) {
	for name, text := range map[string]string{
		"ands":   strings.Repeat("what time is it and ", 60),
		"qs":     strings.Repeat("what's 2+2? ", 80),
		"rem":    "remind me tomorrow at 9 to " + strings.Repeat("call mum and at 9 call dad and ", 30),
		"rem40":    "remind me tomorrow at 9 to " + strings.Repeat("call mum and at 9 call dad and ", 4),
		"letters": strings.Repeat("a b c d e f ", 80),
		"digits":  strings.Repeat("1 2 3 % ", 120),
		"digits2":  strings.Repeat("1 2 3 % ", 10),
		"long": strings.Repeat("the quick brown fox jumps over the lazy dog and ", 20),
		"cancel": "cancel " + strings.Repeat("all of my reminders except bread and ", 25),
		"dots": strings.Repeat("a. b. c? ", 100),
		"dots2": strings.Repeat("a. b. c? ", 12),
	} {
		history := []line{}
		for range 10 {
			history = append(history, line{From: "Jay", Text: text}, line{From: "Aria", Text: strings.Repeat("That's 9. ", 20), Self: true})
		}
		start := time.Now()
		shared().Generate(context.Background(), asked{text: text, actions: manyActions, history: history}.request())
		t.Log(name, time.Since(start))
	}
}
