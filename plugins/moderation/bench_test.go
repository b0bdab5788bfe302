package moderation

import (
	"context"
	"fmt"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/gate"
	"synthbot/plugins/filter"
	"synthbot/plugins/limits"
)

// nothing stores nothing, and lists the given items.
type nothing struct{ items []core.Item }

func (nothing) Get(_ context.Context, path core.Path, key string) (core.Item, bool, error) {
	return core.Item{Path: path, Key: key}, false, nil
}
func (nothing) Put(context.Context, core.Item) (uint64, error)         { return 1, nil }
func (nothing) PutAll(context.Context, ...core.Item) error             { return nil }
func (n nothing) List(context.Context, core.Path) ([]core.Item, error) { return n.items, nil }

// The numbers of a large bot.
const (
	manyBlocks = 100_000
	manyPeople = 10_000
)

// crowded returns a plugin after a start with many blocks, half of them of forgotten users.
func crowded(b *testing.B, gates ...Gate) *Plugin {
	b.Helper()
	r := records{hashKey: make([]byte, keySize)}
	items := []core.Item{{Key: hashKey, Value: core.JSON(make([]byte, keySize))}}
	var details []core.Item
	for i := range manyBlocks {
		h := hold{kind: blocked, user: core.MustPath(fmt.Sprintf("telegram/@user/blocked%d", i)), scope: core.MustPath(fmt.Sprintf("telegram/-100%d", i%500))}
		h.digest = r.digest(h.user)
		items = append(items, core.Item{Key: h.key(), Value: core.JSON(holdValue{At: time.Unix(1, 0)})})
		if i%2 == 0 {
			details = append(details, core.Item{Path: h.user, Key: h.detailKey(), Value: core.JSON(detail{Name: "Eve", Reason: "spam", At: time.Unix(1, 0)})})
		}
	}
	rate := limits.Rate{Count: 1_000_000, Per: time.Hour}
	l := limits.Config{Private: rate, Group: rate, Place: rate, Repeat: 1 << 30, Flood: rate, Wall: 1 << 30}
	p, err := New(core.Host{Name: "moderation", Clock: time.Now, Items: nothing{append(items, details...)}}, Config{})
	if err != nil {
		b.Fatal(err)
	}
	p.AddGates(gates...)
	p.AddGates(limits.New(time.Now, l, p))
	return p
}

// rules returns a filter with many rules.
func rules(b *testing.B) *filter.Filter {
	c := filter.Config{Rules: []filter.Rule{{Name: "links", Links: "listed", Allow: []string{"example.org"}}, {Name: "words"}}}
	for i := range 1000 {
		c.Rules[1].Words = append(c.Rules[1].Words, fmt.Sprintf("badword%d", i))
	}
	f, err := filter.New(time.Now, c, nil)
	if err != nil {
		b.Fatal(err)
	}
	return f
}

func from(place string, who int, text string) *core.Message {
	return &core.Message{
		Path: core.MustPath(place), Author: core.Author{ID: fmt.Sprintf("person%d", who), Name: "Jay"}, Addressed: core.AddressedMention, Text: text,
	}
}

// BenchmarkOpen reads 10⁵ blocks at the start.
func BenchmarkOpen(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		p := crowded(b)
		b.StartTimer()
		if err := p.records.open(b.Context()); err != nil {
			b.Fatal(err)
		}
		if len(p.records.holds) != manyBlocks {
			b.Fatalf("got %d blocks", len(p.records.holds))
		}
	}
}

// BenchmarkJudge judges messages of 10⁴ users with 10⁵ blocks.
func BenchmarkJudge(b *testing.B) {
	p := crowded(b, rules(b))
	text := "Aria, what do you think of the weather in Rome these days, and of https://docs.example.org/weather?"
	people := make([]*core.Message, manyPeople)
	for i := range people {
		people[i] = from(fmt.Sprintf("telegram/-100%d", i%500), i, text+fmt.Sprint(i))
		p.Judge(people[i], false)
	}
	stranger := from("telegram/-1007", 0, "hello")
	gone := from("telegram/-1007", 0, "hello")
	gone.Author.ID = "blocked7"
	for name, each := range map[string]func(i int) gate.Verdict{
		"active":  func(i int) gate.Verdict { return p.Judge(people[i%manyPeople], false) },
		"again":   func(i int) gate.Verdict { return p.Judge(people[i%manyPeople], true) },
		"aside":   func(int) gate.Verdict { m := *stranger; m.Addressed = ""; return p.Judge(&m, false) },
		"blocked": func(int) gate.Verdict { return p.Judge(gone, false) },
	} {
		want := gate.Admit
		if name == "blocked" {
			want = gate.Discard
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if v := each(i); v.Admission != want {
					b.Fatalf("got %+v", v)
				}
			}
		})
	}
	p = crowded(b)
	p.Judge(stranger, false)
	b.Run("no rules", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			p.Judge(people[i%manyPeople], false)
		}
	})
}
