package limits

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/gate"
	"synthbot/core/txt"
	"synthbot/plugins/moderation"
	"synthbot/plugins/plugintest"
)

func TestScripts(t *testing.T) {
	plugintest.Run(t, "testdata/*.txt", plugintest.Of(func(h core.Host, c Config) (*moderation.Plugin, error) {
		p, err := moderation.New(h, plugintest.Defaults(t, moderation.Config{}))
		if err == nil {
			p.AddGates(New(h.Clock, c, p))
		}
		return p, err
	}))
}

var begins = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

// clock is a clock that tests set.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

// notes is a Log that keeps its lines.
type notes []note

type note struct {
	about        core.Path
	what, detail string
	until        time.Time
}

func (n *notes) LogAuthor(m *core.Message, what, detail string, until time.Time) {
	author, _ := m.Path.Person(m.Author.ID)
	*n = append(*n, note{author, what, detail, until})
}

func (n *notes) LogPlace(place core.Path, what string, until time.Time) {
	*n = append(*n, note{place, what, "", until})
}

func (n *notes) ReachedLimits(use func(about core.Path, detail string, until time.Time)) {
	for _, x := range *n {
		use(x.about, x.detail, x.until)
	}
}

// says returns a message to the bot: in a group if place is a number, else in the private place of that name.
func says(place, who, text string) *core.Message {
	m := &core.Message{
		Path: core.MustPath("room/" + place), Author: core.Author{ID: who, Name: strings.ToUpper(who)}, Text: text,
		Addressed: core.AddressedMention,
	}
	if place[0] > '9' {
		m.Private, m.Addressed = true, core.AddressedDirect
	}
	return m
}

func TestRate(t *testing.T) {
	for text, want := range map[string]Rate{
		"off": {}, "20/1h": {20, time.Hour}, "1/1s": {1, time.Second}, "100000/31d": {100_000, 31 * 24 * time.Hour}, "5/1h30m": {5, 90 * time.Minute},
		"": {-1, 0}, "20": {-1, 0}, "20/": {-1, 0}, "/1h": {-1, 0}, "0/1h": {-1, 0}, "-1/1h": {-1, 0}, "+1/1h": {-1, 0}, "1/32d": {-1, 0},
		"1e3/1h": {-1, 0}, "20/1h/1h": {-1, 0}, "20/1y": {-1, 0}, "100001/1h": {-1, 0}, "20/0s": {-1, 0}, "Off": {-1, 0}, "1/99999999999w": {-1, 0},
	} {
		l := Rate{7, 7}
		err := l.UnmarshalText([]byte(text))
		if want.Count < 0 {
			want = Rate{7, 7} // unchanged
			if err == nil {
				t.Errorf("%q: got %v", text, l)
			}
		} else if err != nil {
			t.Errorf("%q: got %v", text, err)
		}
		if l != want {
			t.Errorf("%q: got %v", text, l)
		}
	}
}

// FuzzRate checks that an accepted rate is read again from its text.
func FuzzRate(f *testing.F) {
	for _, text := range []string{"20/1h", "off", "1/1w2d3h4m5s", "0x1/1h", "20/1H", "20/ 1h", "9/1d1d"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var l, again Rate
		if l.UnmarshalText([]byte(text)) != nil {
			return
		}
		if l.Count < 0 || l.Count > maxCount || l.Per < 0 || l.Per > maxPer || (l.Count == 0) != (l.Per == 0) {
			t.Errorf("%q: %v is out of bounds", text, l)
		}
		if err := again.UnmarshalText([]byte(l.String())); err != nil || again != l {
			t.Errorf("%q is read as %v, and its text %q as %v (%v)", text, l, l.String(), again, err)
		}
	})
}

func TestRateWords(t *testing.T) {
	for r, want := range map[Rate]string{
		{1, time.Hour}: "once this hour", {2, 24 * time.Hour}: "2 times this day", {2, 7 * 24 * time.Hour}: "2 times this week",
		{3, time.Minute}: "3 times this minute", {9, 10 * time.Second}: "9 times within 10 seconds",
		{1, 90 * time.Minute}: "once within 1 hour 30 minutes", {2, 48*time.Hour + time.Second}: "2 times within 2 days 1 second",
	} {
		if got := r.words(); got != want {
			t.Errorf("%v: got %q, want %q", r, got, want)
		}
	}
}

// ask is a message of a generated history.
type ask struct {
	at    time.Duration // since the previous one
	m     *core.Message
	again bool
}

// history generates messages of several users, some of them in bursts.
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
			a.m.Addressed = ""
		}
		all = append(all, a)
	}
	return all
}

// TestRation checks limits with generated histories: never more than allowed in a window, no refusal without
// reason, one notice for each window, an answer at the announced time, and nothing counted that is not answered
// or is repeated.
func TestRation(t *testing.T) {
	private, inGroup := Rate{5, 10 * time.Minute}, Rate{8, 30 * time.Minute}
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			c := Config{Private: private, Group: inGroup}
			clock := func() time.Time { return time.Now().UTC() }
			p := New(clock, c, new(notes))
			twin := New(clock, c, new(notes)) // gets no repeated messages
			admitted, told := make(map[string][]time.Time), make(map[string]time.Time)
			for i, a := range history(r, 400) {
				time.Sleep(a.at)
				now := time.Now()
				v := p.Judge(a.m, a.again)
				if a.again || a.m.Addressed == "" {
					if v != (gate.Verdict{}) {
						t.Fatalf("%d: %+v", i, v)
					}
					continue
				}
				if w := twin.Judge(a.m, false); w != v {
					t.Fatalf("%d: got %+v, and %+v without repetitions", i, v, w)
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
				case v.Admission == gate.Admit:
					if admitted[key] = append(admitted[key], now); lately >= 2*limit.Count {
						t.Fatalf("%d: got %d answers within %v", i, lately+1, limit)
					}
					if until := told[key]; now.Before(until) {
						t.Fatalf("%d: answered before the announced time %v", i, until)
					}
				case v.Admission != gate.Quiet:
					t.Fatalf("%d: %+v", i, v)
				default:
					if lately < limit.Count {
						t.Fatalf("%d: refused after %d answers within %v", i, lately, limit)
					}
					if (v.Reply == "") != now.Before(told[key]) {
						t.Fatalf("%d: second notice %q; the first was until %v", i, v.Reply, told[key])
					}
					if v.Reply != "" {
						user, _ := a.m.Path.Person(a.m.Author.ID)
						told[key] = now.Add(p.user(user).asked[kindOf(a.m)].end(limit).Sub(now))
						if !strings.Contains(v.Reply, txt.Moment(told[key], now.UTC())) {
							t.Fatalf("%d: %q does not contain %v", i, v.Reply, told[key])
						}
					} else if !now.Before(told[key]) {
						t.Fatalf("%d: refused at %v, after the announced time %v", i, now, told[key])
					}
				}
			}
			if len(admitted) != 6 || len(told) == 0 {
				t.Fatalf("the history is too short: %d answers, %d notices", len(admitted), len(told))
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

// TestWindows checks which limit counts which kind of message.
func TestWindows(t *testing.T) {
	c := &clock{now: begins}
	config := Config{Private: Rate{2, time.Hour}, Group: Rate{1, time.Hour}, CountAll: []core.Path{core.MustPath("room/7")}}
	p := New(c.Now, config, new(notes))
	button := says("jay", "jay", "")
	command := says("jay", "jay", "/help me")
	aside := says("7", "ann", "among others")
	aside.Addressed = ""
	reminder := says("jay", "jay", "Jay, the cake!")
	reminder.Addressed = ""
	picture := says("jay", "jay", "")
	picture.Attachments = []core.Attachment{{Kind: core.MediaImage}}
	for i, tc := range []struct {
		m     *core.Message
		want  gate.Admission
		reply bool
	}{
		{picture, gate.Admit, false}, {command, gate.Admit, false},
		{command, gate.Quiet, false}, {picture, gate.Quiet, false}, // commands run, and pictures have no text
		{reminder, gate.Admit, false},
		{button, gate.Admit, false}, {button, gate.Admit, false}, {button, gate.Quiet, false},
		{says("jay", "jay", "well?"), gate.Quiet, true}, {says("jay", "jay", "well?"), gate.Quiet, false},
		{aside, gate.Admit, false}, {aside, gate.Quiet, true},
		{says("1", "jay", "hi"), gate.Admit, false}, {says("1", "jay", "hi"), gate.Quiet, true},
	} {
		if v := p.Judge(tc.m, false); v.Admission != tc.want || (v.Reply != "") != tc.reply {
			t.Errorf("%d: %q is %+v", i, tc.m.Text, v)
		}
	}
}

// TestUsedElsewhere checks that a user's messages to another process count once.
func TestUsedElsewhere(t *testing.T) {
	c := &clock{now: begins}
	var both [2]*Limiter
	for i := range both {
		announce := func(by core.Path, what string) { both[1-i].Used(by, what) }
		config := Config{Group: Rate{4, time.Hour}, Flood: Rate{3, time.Minute}}
		both[i] = New(c.Now, config, new(notes))
		both[i].Announce(announce)
	}
	ask := func(who string, n int) gate.Admission {
		return both[n%2].Judge(says(fmt.Sprint(n), who, "hi"), false).Admission
	}
	for n := range 3 {
		if got := ask("jay", n); got != gate.Admit {
			t.Errorf("question %d: got %v", n, got)
		}
	}
	if got := ask("jay", 3); got != gate.Quiet {
		t.Errorf("fourth question within a minute: got %v", got)
	}
	c.now = c.now.Add(time.Minute)
	if four, five, six := ask("jay", 3), ask("jay", 4), ask("jay", 5); four != gate.Admit || five != gate.Quiet || six != gate.Quiet {
		t.Errorf("fourth to sixth question within the hour: got %v, %v, %v", four, five, six)
	}
	if got := ask("ann", 3); got != gate.Admit {
		t.Errorf("another user: got %v", got)
	}
	c.now = c.now.Add(time.Hour)
	if got := ask("jay", 6); got != gate.Admit {
		t.Errorf("an hour later: got %v", got)
	}
	both[0].Used(core.MustPath("room/user/jay"), "unknown")
}

// TestButtonsAreLogged checks that a limit that a button press reaches is logged once, although it gets no
// notice. It also applies after a restart, in private chats and in groups.
func TestButtonsAreLogged(t *testing.T) {
	for place, want := range map[string]string{"jay": "private buttons", "1": "group buttons"} {
		c, log := &clock{now: begins}, new(notes)
		config := Config{Private: Rate{1, 2 * time.Hour}, Group: Rate{1, time.Hour}}
		l := New(c.Now, config, log)
		for i, admission := range []gate.Admission{gate.Admit, gate.Quiet, gate.Quiet} {
			if v := l.Judge(says(place, "jay", ""), false); v != (gate.Verdict{Admission: admission}) {
				t.Errorf("%s, press %d: got %+v", place, i, v)
			}
		}
		if len(*log) != 1 || (*log)[0].what != limited || (*log)[0].detail != want {
			t.Errorf("%s: log %+v", place, *log)
		}
		c.now = c.now.Add(30 * time.Minute)
		if v := New(c.Now, config, log).Judge(says(place, "jay", ""), false); v.Admission != gate.Quiet {
			t.Errorf("%s: after a restart: got %+v", place, v)
		}
	}
}

// TestClockPutBack checks that no user waits longer than a window after the clock was set back.
func TestClockPutBack(t *testing.T) {
	c := &clock{now: begins}
	p := New(c.Now, Config{Private: Rate{1, time.Hour}}, new(notes))
	p.Judge(says("jay", "jay", "one"), false)
	c.now = c.now.AddDate(0, 0, -100)
	if v := p.Judge(says("jay", "jay", "two"), false); v.Admission != gate.Admit {
		t.Errorf("got %+v", v)
	}
}

func TestRateAsText(t *testing.T) {
	raw, err := json.Marshal(map[string]Rate{"a": {20, time.Hour}, "b": {}})
	if err != nil || string(raw) != `{"a":"20/1h","b":"off"}` {
		t.Errorf("got %s, %v", raw, err)
	}
}

// TestRepeats checks that the same greeting every morning does not count as a repetition.
func TestRepeats(t *testing.T) {
	c := &clock{now: begins}
	p := New(c.Now, Config{Repeat: 2}, new(notes))
	for i := range 5 {
		if v := p.Judge(says("1", "jay", "good morning"), false); v.Admission != gate.Admit {
			t.Errorf("%d: got %+v", i, v)
		}
		c.now = c.now.Add(repeatWithin + time.Second)
	}
	p.Judge(says("1", "jay", "well?"), false)
	if v := p.Judge(says("1", "jay", "well?"), false); v.Admission != gate.Quiet {
		t.Errorf("got %+v", v)
	}
}

// TestDeliveredAgain checks that a message that is delivered twice counts once and gets the same verdict, and
// that an equal text in another message counts.
func TestDeliveredAgain(t *testing.T) {
	p := New(time.Now, Config{Private: Rate{2, time.Hour}}, new(notes))
	judge := func(id string) gate.Verdict {
		m := says("jay", "jay", "hello")
		m.ID = id
		return p.Judge(m, false)
	}
	for _, id := range []string{"1", "1", "1", "2", "2"} {
		if v := judge(id); v.Admission != gate.Admit {
			t.Errorf("%s: got %+v", id, v)
		}
	}
	full := judge("3")
	if full.Admission != gate.Quiet || full.Reply == "" || judge("3") != full || judge("1").Admission != gate.Admit {
		t.Errorf("third message: got %+v, delivered again %+v", full, judge("3"))
	}
	for i := range 3 * maxDelivered {
		judge(fmt.Sprint("x", i))
	}
	if n := p.delivered.Len(); n > 2*maxDelivered {
		t.Errorf("got %d remembered deliveries", n)
	}
}
