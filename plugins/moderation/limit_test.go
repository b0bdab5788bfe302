package moderation

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/plugins/plugintest"
)

func TestLimit(t *testing.T) {
	for text, want := range map[string]Limit{
		"off": {}, "20/1h": {20, time.Hour}, "1/1s": {1, time.Second}, "100000/31d": {100_000, 31 * day}, "5/1h30m": {5, 90 * time.Minute},
		"": {-1, 0}, "20": {-1, 0}, "20/": {-1, 0}, "/1h": {-1, 0}, "0/1h": {-1, 0}, "-1/1h": {-1, 0}, "+1/1h": {-1, 0}, "1/32d": {-1, 0},
		"1e3/1h": {-1, 0}, "20/1h/1h": {-1, 0}, "20/1y": {-1, 0}, "100001/1h": {-1, 0}, "20/0s": {-1, 0}, "Off": {-1, 0}, "1/99999999999w": {-1, 0},
	} {
		l := Limit{7, 7}
		err := l.UnmarshalText([]byte(text))
		if want.Count < 0 {
			want = Limit{7, 7} // as it was
			if err == nil {
				t.Errorf("%q is read as %v", text, l)
			}
		} else if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if l != want {
			t.Errorf("%q: %v", text, l)
		}
	}
}

// Whatever is read is written so that it is read again.
func FuzzLimit(f *testing.F) {
	for _, text := range []string{"20/1h", "off", "1/1w2d3h4m5s", "0x1/1h", "20/1H", "20/ 1h", "9/1d1d"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var l, again Limit
		if l.UnmarshalText([]byte(text)) != nil {
			return
		}
		if l.Count < 0 || l.Count > maxCount || l.Per < 0 || l.Per > maxPer || (l.Count == 0) != (l.Per == 0) {
			t.Errorf("%q: %v is out of bounds", text, l)
		}
		if err := again.UnmarshalText([]byte(l.String())); err != nil || again != l {
			t.Errorf("%q is %v, and written %q it is %v (%v)", text, l, l.String(), again, err)
		}
	})
}

func FuzzSpan(f *testing.F) {
	for _, text := range []string{"30m", "7d", "1w2d", "2h30m", "90s", " 1H ", "h", "5", "3650d", "999999999999999999999d", "١h", "1d-1h"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, ok := parseSpan(text)
		if !ok {
			return
		}
		if d <= 0 || d > maxSpan || d%time.Second != 0 {
			t.Errorf("%q: %v is out of bounds", text, d)
		}
		if again, ok := parseSpan(spanText(d)); !ok || again != d {
			t.Errorf("%q: %v is written %q, which is %v", text, d, spanText(d), again)
		}
	})
}

func TestSpanWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Hour: "this hour", day: "this day", 7 * day: "this week", time.Minute: "this minute", 10 * time.Second: "within 10 seconds",
		90 * time.Minute: "within 1 hour 30 minutes", 2*day + time.Second: "within 2 days 1 second",
	} {
		if got := within(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestMoment(t *testing.T) {
	rome, err := time.LoadLocation("Europe/Rome")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 12, 31, 22, 30, 0, 0, rome)
	for after, want := range map[time.Duration]string{
		time.Hour: "23:30 CET", 2 * time.Hour: "1 Jan 2027 00:30 CET", -3 * day: "28 Dec 22:30 CET", 30 * time.Second: "22:30:30 CET",
	} {
		if got := moment(now.Add(after).UTC(), now); got != want {
			t.Errorf("%v: %q, want %q", after, got, want)
		}
	}
}

// ask is one question of a history that was made up.
type ask struct {
	at    time.Duration // since the one before
	m     *core.Message
	again bool
}

// history makes up what some people ask, now and then in bursts.
func history(r *rand.Rand, n int) (all []ask) {
	for i := range n {
		who := fmt.Sprintf("p%d", r.IntN(3))
		place := []string{who, "1", "2"}[r.IntN(3)]
		a := ask{m: says(place, who, fmt.Sprint("text ", i)), at: time.Duration(r.IntN(40)) * time.Second}
		if r.IntN(20) == 0 {
			a.at = time.Duration(r.IntN(90)) * time.Minute
		}
		switch r.IntN(10) {
		case 0:
			a.again = true
		case 1:
			a.m.Addressed = core.NotAddressed
		}
		all = append(all, a)
	}
	return all
}

// TestRation holds the limits against their promises, over histories of all sorts:
// never more than allowed in a window, never a refusal without cause, one word for
// each window, an answer at the time that was said, nothing counted that is not to
// be answered or is asked again.
func TestRation(t *testing.T) {
	private, inGroup := Limit{5, 10 * time.Minute}, Limit{8, 30 * time.Minute}
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			c := Config{Private: private, Group: inGroup}
			host := core.Host{Name: "moderation", Clock: func() time.Time { return time.Now().UTC() }, Items: nothing{}}
			p, err := New(host, c)
			if err != nil {
				t.Fatal(err)
			}
			twin, err := New(host, c) // never asked again
			if err != nil {
				t.Fatal(err)
			}
			admitted, told := make(map[string][]time.Time), make(map[string]time.Time)
			for i, a := range history(r, 400) {
				time.Sleep(a.at)
				now := time.Now()
				v := p.Judge(a.m, a.again)
				if a.again || a.m.Addressed == core.NotAddressed {
					if v != (core.Verdict{}) {
						t.Fatalf("%d: %+v", i, v)
					}
					continue
				}
				if w := twin.Judge(a.m, false); w != v {
					t.Fatalf("%d: %+v, and %+v where nothing is asked again", i, v, w)
				}
				limit, key := inGroup, "group "+a.m.Author.ID
				if a.m.Private {
					limit, key = private, "private "+a.m.Author.ID
				}
				lately := 0
				for _, at := range admitted[key] {
					if now.Sub(at) < limit.Per {
						lately++
					}
				}
				switch {
				case v.Admission == core.Admit:
					if admitted[key] = append(admitted[key], now); lately >= 2*limit.Count {
						t.Fatalf("%d: %d within %v", i, lately+1, limit)
					}
					if until := told[key]; now.Before(until) {
						t.Fatalf("%d: answered before %v, as was said", i, until)
					}
				case v.Admission != core.Quiet:
					t.Fatalf("%d: %+v", i, v)
				default:
					if lately < limit.Count {
						t.Fatalf("%d: refused after %d within %v", i, lately, limit)
					}
					if (v.Reply == "") != now.Before(told[key]) {
						t.Fatalf("%d: told %q, and before until %v", i, v.Reply, told[key])
					}
					if v.Reply != "" {
						told[key] = now.Add(p.people.find(author(a.m)).asked[kindOf(a.m)].ends(limit).Sub(now))
						if !strings.Contains(v.Reply, moment(told[key], now.UTC())) {
							t.Fatalf("%d: %q does not say %v", i, v.Reply, told[key])
						}
					} else if !now.Before(told[key]) {
						t.Fatalf("%d: refused at %v, after %v", i, now, told[key])
					}
				}
			}
			if len(admitted) != 6 || len(told) == 0 {
				t.Fatalf("the history says little: %d, %d", len(admitted), len(told))
			}
		})
	}
}

func kindOf(m *core.Message) int {
	if m.Private {
		return inPrivate
	}
	return inGroups
}

// TestWindows: what a message is decides on what counts it.
func TestWindows(t *testing.T) {
	s := plugintest.NewStand(t, "moderation")
	p := made(t, s, Config{Private: Limit{2, time.Hour}, Group: Limit{1, time.Hour}, CountAll: []core.Path{core.MustPath("room/7")}})
	button := says("jay", "jay", "")
	command := says("jay", "jay", "/help me")
	aside := says("7", "ann", "among others")
	aside.Addressed = core.NotAddressed
	reminder := says("jay", "jay", "Jay, the cake!")
	reminder.Addressed = core.NotAddressed
	picture := says("jay", "jay", "")
	picture.Attachments = []core.Attachment{{Kind: core.Image}}
	for i, tc := range []struct {
		m     *core.Message
		want  core.Admission
		reply bool
	}{
		{picture, core.Admit, false}, {command, core.Admit, false},
		{command, core.Quiet, false}, {picture, core.Quiet, false}, // in silence: they go on, or have no words
		{reminder, core.Admit, false},
		{button, core.Admit, false}, {button, core.Admit, false}, {button, core.Quiet, false},
		{says("jay", "jay", "well?"), core.Quiet, true}, {says("jay", "jay", "well?"), core.Quiet, false},
		{aside, core.Admit, false}, {aside, core.Quiet, true},
		{says("1", "jay", "hi"), core.Admit, false}, {says("1", "jay", "hi"), core.Quiet, true},
	} {
		if v := p.Judge(tc.m, false); v.Admission != tc.want || (v.Reply != "") != tc.reply {
			t.Errorf("%d: %q is %+v", i, tc.m.Text, v)
		}
	}
}

// TestButtonsAreLogged: a press has no text to answer to, but its limit is logged once,
// and it still holds after a restart, in private as in groups.
func TestButtonsAreLogged(t *testing.T) {
	for place, want := range map[string]string{"jay": "private buttons", "1": "group buttons"} {
		s := plugintest.NewStand(t, "moderation")
		c := Config{Private: Limit{1, 2 * time.Hour}, Group: Limit{1, time.Hour}}
		p := made(t, s, c)
		for i, admission := range []core.Admission{core.Admit, core.Quiet, core.Quiet} {
			if v := p.Judge(says(place, "jay", ""), false); v != (core.Verdict{Admission: admission}) {
				t.Errorf("%s, press %d: %+v", place, i, v)
			}
		}
		if n := len(p.log.events); n != 1 || p.log.events[0].What != wasLimited || p.log.events[0].Detail != want {
			t.Errorf("%s: the log has %+v", place, p.log.events)
		}
		run(t, p)
		s.Advance(30 * time.Minute)
		if v := made(t, s, c).Judge(says(place, "jay", ""), false); v.Admission != core.Quiet {
			t.Errorf("%s: after a restart %+v", place, v)
		}
	}
}

// TestClockPutBack: nobody waits longer than a window because the clock was put
// back.
func TestClockPutBack(t *testing.T) {
	s := plugintest.NewStand(t, "moderation")
	p := made(t, s, Config{Private: Limit{1, time.Hour}})
	p.Judge(says("jay", "jay", "one"), false)
	s.Advance(-100 * day)
	if v := p.Judge(says("jay", "jay", "two"), false); v.Admission != core.Admit {
		t.Errorf("%+v", v)
	}
}

// TestRecent: what was used not long ago is there, and there is never too much.
func TestRecent(t *testing.T) {
	r := newRecent[int, int](100)
	for i := range 10_000 {
		if r.find(i) != nil {
			t.Fatalf("%d is there already", i)
		}
		r.keep(i, &i)
		for back := range min(i, 50) {
			if v := r.find(i - back); v == nil || *v != i-back {
				t.Fatalf("%d is gone after %d others", i-back, back)
			}
		}
		if r.size() > 200 {
			t.Fatalf("there are %d", r.size())
		}
	}
	if r.find(5) != nil {
		t.Error("the fifth is still there")
	}
	r.drop(9_999)
	if r.find(9_999) != nil {
		t.Error("it is not dropped")
	}
}

func TestLimitAsText(t *testing.T) {
	raw, err := json.Marshal(map[string]Limit{"a": {20, time.Hour}, "b": {}})
	if err != nil || string(raw) != `{"a":"20/1h","b":"off"}` {
		t.Errorf("%s, %v", raw, err)
	}
}
