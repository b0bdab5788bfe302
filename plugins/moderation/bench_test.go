package moderation

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"synthbot/core"
)

// nothing keeps nothing, and lists what it is given.
type nothing struct{ items []core.Item }

func (nothing) Get(_ context.Context, path core.Path, key string) (core.Item, bool, error) {
	return core.Item{Path: path, Key: key}, false, nil
}
func (nothing) Put(context.Context, core.Item) (uint64, error)         { return 1, nil }
func (nothing) PutAll(context.Context, ...core.Item) error             { return nil }
func (n nothing) List(context.Context, core.Path) ([]core.Item, error) { return n.items, nil }

// The size of a large bot.
const (
	manyBlocks = 100_000
	manyPeople = 10_000
)

// crowded is a plugin with many blocks, every second one of somebody who was
// forgotten, and with many rules, as it is after a start.
func crowded(b *testing.B) *Plugin {
	b.Helper()
	var s seal
	s.set(make([]byte, keySize))
	items := []core.Item{{Key: sealKey, Value: encode(make([]byte, keySize))}}
	var details []core.Item
	for i := range manyBlocks {
		h := hold{kind: blocked, person: core.MustPath(fmt.Sprintf("telegram/@user/blocked%d", i)), scope: core.MustPath(fmt.Sprintf("telegram/-100%d", i%500))}
		items = append(items, core.Item{Key: h.key(s.of(whoIs(h.person))), Value: encode(holdValue{At: time.Unix(1, 0)})})
		if i%2 == 0 {
			details = append(details, core.Item{Path: h.person, Key: h.detailKey(), Value: encode(detail{Name: "Eve", Reason: "spam", At: time.Unix(1, 0)})})
		}
	}
	c := Config{
		Private: Limit{1_000_000, time.Hour}, Group: Limit{1_000_000, time.Hour}, Place: Limit{1_000_000, time.Hour},
		Repeat: 1 << 30, Flood: Limit{1_000_000, time.Second}, Wall: 1 << 30,
		Rules: []Rule{{Name: "links", Links: linksListed, Allow: []string{"example.org"}}, {Name: "words"}},
	}
	for i := range 1000 {
		c.Rules[1].Words = append(c.Rules[1].Words, fmt.Sprintf("badword%d", i))
	}
	p, err := New(core.Host{Name: "moderation", Clock: time.Now, Items: nothing{append(items, details...)}}, c)
	if err != nil {
		b.Fatal(err)
	}
	return p
}

func from(place string, who int, text string) *core.Message {
	return &core.Message{
		Path: core.MustPath(place), Author: core.Author{ID: fmt.Sprintf("person%d", who), Name: "Jay"}, Addressed: core.Mention, Text: text,
	}
}

// BenchmarkOpen reads 10⁵ blocks at the start.
func BenchmarkOpen(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		p := crowded(b)
		b.StartTimer()
		if err := p.open(b.Context()); err != nil {
			b.Fatal(err)
		}
		if len(p.holds) != manyBlocks {
			b.Fatalf("%d blocks", len(p.holds))
		}
	}
}

// BenchmarkJudge judges messages of 10⁴ people, in the presence of 10⁵ blocks.
func BenchmarkJudge(b *testing.B) {
	p := crowded(b)
	text := "Aria, what do you think of the weather in Rome these days, and of https://docs.example.org/weather?"
	people := make([]*core.Message, manyPeople)
	for i := range people {
		people[i] = from(fmt.Sprintf("telegram/-100%d", i%500), i, text+fmt.Sprint(i))
		p.Judge(people[i], false)
	}
	stranger := from("telegram/-1007", 0, "hello")
	gone := from("telegram/-1007", 0, "hello")
	gone.Author.ID = "blocked7"
	for name, each := range map[string]func(i int) core.Verdict{
		"active":  func(i int) core.Verdict { return p.Judge(people[i%manyPeople], false) },
		"again":   func(i int) core.Verdict { return p.Judge(people[i%manyPeople], true) },
		"aside":   func(int) core.Verdict { m := *stranger; m.Addressed = core.NotAddressed; return p.Judge(&m, false) },
		"blocked": func(int) core.Verdict { return p.Judge(gone, false) },
	} {
		want := core.Admit
		if name == "blocked" {
			want = core.Discard
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if v := each(i); v.Admission != want {
					b.Fatalf("%+v", v)
				}
			}
		})
	}
	b.Run("no rules", func(b *testing.B) {
		p.policy = &policy{}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			p.Judge(people[i%manyPeople], false)
		}
	})
}

// BenchmarkLong looks through the longest message that patterns see.
func BenchmarkLong(b *testing.B) {
	p := crowded(b)
	m := from("telegram/-1001", 1, strings.Repeat("some words, and a host.name ", maxScan/28))
	b.SetBytes(int64(len(m.Text)))
	for b.Loop() {
		p.policy.judge(m)
	}
}
