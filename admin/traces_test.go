package admin

import (
	"testing"

	"synthbot/core"
	"synthbot/core/watch"
)

func end(place string, seq uint64) watch.TurnEnd {
	p := core.MustPath(place)
	person, _ := p.Person("jay")
	return watch.TurnEnd{Turn: core.TurnID{Path: p, Seq: seq}, Person: person, Trace: &watch.Trace{}}
}

// TestTracesOfTheForgotten checks that traces of a forgotten user's turns are removed, also of turns that end
// later or have several authors. Other turns lose their memories, which may be about the user.
func TestTracesOfTheForgotten(t *testing.T) {
	var traces Traces
	gone := false
	several := end("room/1", 1)
	several.Person, several.Stale = core.Path{}, func() bool { return gone }
	other := end("room/2", 2)
	other.Person, other.Stale = core.MustPath("room/@user/ann"), func() bool { return false }
	other.Trace.Memories = []string{"jay likes tea"}
	other.Trace.Asks = []watch.Ask{{Prompt: []watch.PromptPart{{Text: "jay likes tea"}}}}
	kept := other.Trace
	traces.Observe(several)
	traces.Observe(other)
	gone = true
	traces.Forget(core.MustPath("room/@user/jay"))
	late := several
	late.Turn.Seq = 3
	traces.Observe(late)
	list, _ := traces.After(0, 9)
	if len(list) != 1 || list[0].Turn.Seq != 2 || len(list[0].Trace.Memories) != 0 ||
		list[0].Trace.Asks[0].Prompt != nil {
		t.Errorf("traces: got %+v", list)
	}
	if len(kept.Memories) != 1 || len(kept.Asks[0].Prompt) != 1 {
		t.Error("the answer of another turn was changed")
	}
}

func TestTraces(t *testing.T) {
	var traces Traces
	if _, ok := traces.Last(func(*watch.TurnEnd) bool { return true }); ok {
		t.Error("there is a trace before the first turn")
	}
	for i := range uint64(maxTraces + 10) {
		traces.Observe(end("room/1", i+1))
	}
	traces.Observe(watch.TurnEnd{Turn: core.TurnID{Path: core.MustPath("room/1")}}) // an event without a turn
	traces.Observe(end("other/1", 7))
	list, last := traces.After(0, 3)
	if len(list) != 3 || list[2].Turn.Path.Interface() != "other" || list[1].Turn.Seq != maxTraces+10 || list[0].Turn.Seq != maxTraces+9 {
		t.Errorf("latest traces: got %v", list)
	}
	if all, _ := traces.After(0, 2*maxTraces); len(all) != maxTraces {
		t.Errorf("got %d traces", len(all))
	}
	if more, same := traces.After(last, 3); len(more) != 0 || same != last {
		t.Errorf("traces after %d: got %v, up to %d", last, more, same)
	}
	traces.Observe(end("room/2", 1))
	if more, next := traces.After(last, 3); len(more) != 1 || more[0].Turn.Path.String() != "room/2" || next != last+1 {
		t.Errorf("traces after one more turn: got %v, up to %d", more, next)
	}
	room := func(e *watch.TurnEnd) bool { return e.Turn.Path == core.MustPath("room/1") }
	if e, ok := traces.Last(room); !ok || e.Turn.Seq != maxTraces+10 {
		t.Errorf("last trace of the place: got %v", e.Turn)
	}
	traces.Forget(core.MustPath("room/@user/jay"))
	if e, ok := traces.Last(room); ok {
		t.Errorf("%v was not forgotten", e.Turn)
	}
}

// TestPromptsOfTheLatest checks that only the latest traces keep their prompts.
func TestPromptsOfTheLatest(t *testing.T) {
	var traces Traces
	for i := range maxPrompts + 5 {
		e := end("room/1", uint64(i+1))
		e.Trace.Asks = []watch.Ask{{Engine: "big", Prompt: []watch.PromptPart{{Text: "x"}}}}
		traces.Observe(e)
	}
	list, _ := traces.After(0, maxPrompts+5)
	for i, e := range list {
		if kept := e.Trace.Asks[0].Prompt != nil; kept != (i >= 5) || e.Trace.Asks[0].Engine != "big" {
			t.Errorf("turn %d: prompt kept = %v", e.Turn.Seq, kept)
		}
	}
}
