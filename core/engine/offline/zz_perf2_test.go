package offline

import (
	"context"
	"math/rand"
	"strings"
	"testing"
	"time"
)

func TestPerf2(t *testing.T) {
	words := strings.Fields("what is the time and in rome remind me tomorrow at 9 to call mum ? . ; , und mir dass ich merk the a of 3 + 4 % % 20 km in miles y e et que de la le forget that i like tea cancel all my reminders who where when roll dice choose between or from to for every monday until . ? {you} ¿ é 日")
	r := rand.New(rand.NewSource(2))
	worst := time.Duration(0)
	for range 1500 {
		mk := func(n int) string {
			var b []string
			for range n {
				b = append(b, words[r.Intn(len(words))])
			}
			return strings.Join(b, " ")
		}
		text := mk(2 + r.Intn(60))
		persona := mk(r.Intn(100))
		history := []line{{From: "Jay", Text: text}, {Text: persona, Self: true}}
		if r.Intn(2) == 0 {
			history = []line{{From: "Jay", Text: mk(10)}, {Text: "That's 9.", Self: true}, {From: "Jay", Text: mk(20)}, {Text: mk(10), Self: true}}
		}
		q := asked{text: text, actions: manyActions, history: history}.request()
		start := time.Now()
		shared().Generate(context.Background(), q)
		if d := time.Since(start); d > worst {
			worst = d
			t.Log(d, text)
		}
	}
}
