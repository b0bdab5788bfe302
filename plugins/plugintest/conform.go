package plugintest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/command"
	"synthbot/core/coretest"
	"synthbot/core/epochs"
	"synthbot/core/hint"
	"synthbot/core/watch"
)

// Canary is a unique word. The payload or text of a [Sample] of Case.Keep contains it, as
// a private fact for the plugin.
const Canary = "kanarienvogel8051"

// Case describes a plugin to [Conform].
type Case struct {
	Name string
	// Make makes the plugin. It may change the host, such as its Asker.
	Make func(t *testing.T, s *Harness) core.Plugin
	// Keep contains calls by which Jay, in private, makes the plugin store something about
	// them with the Canary. Empty: it stores nothing about users.
	Keep []Sample
	// Ask contains calls that show what is stored to those who may see it.
	Ask []Sample
	// Silent says that what is stored is shown to nobody, not even to Jay in private.
	Silent bool
}

// Sample is one use of a plugin: an action with its payload, a command with its
// arguments, or a turn that ended after a message with Text.
type Sample struct {
	Action  string
	Payload string // JSON
	Command string
	Args    map[string]string
	Text    string // of a message, if Action and Command are empty
}

// Conform checks what every plugin must do: [coretest.TestPlugin], valid actions and commands, and privacy: what it
// learns about a user in private appears nowhere else, and is erased with them.
func Conform(t *testing.T, c Case) {
	t.Helper()
	coretest.TestPlugin(t, func(t *testing.T) core.Plugin { return c.Make(t, NewHarness(t, c.Name)) })
	t.Run("catalogue", func(t *testing.T) { testCatalogue(t, c.Make(t, NewHarness(t, c.Name)), c.Name) })
	t.Run("made and dropped", func(t *testing.T) {
		s := NewHarness(t, c.Name)
		before := goleak.IgnoreCurrent()
		c.Make(t, s)
		if err := goleak.Find(before); err != nil {
			t.Errorf("goroutines belong into Run: %v", err)
		}
	})
	if len(c.Keep) > 0 {
		t.Run("privacy", func(t *testing.T) { testPrivacy(t, &c) })
	}
}

// testCatalogue checks that the catalogue accepts the actions together with those of an
// interface, and the registry the commands.
func testCatalogue(t *testing.T, p core.Plugin, name string) {
	if err := checkName(p, name); err != nil {
		t.Error(err)
	}
	snapshot, err := action.Build(coretest.NewRoom("room"), p)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range action.Lint(name, p.Actions()...) {
		t.Error(fault)
	}
	for _, d := range snapshot.All() {
		if d.Owner == name && len(d.PromptSchema()) > maxSchema {
			const text = "%s: every prompt has the schema, which takes %d bytes; at most %d are fair"
			t.Errorf(text, d.Name, len(d.PromptSchema()), maxSchema)
		}
	}
	if x, ok := p.(command.Commander); ok {
		if _, err := command.New(x.Commands()); err != nil {
			t.Error(err)
		}
	}
}

// maxSchema is the maximum size of an action's schema in prompts, in bytes.
const maxSchema = 2500

var (
	jay     = core.Author{ID: "jay", Name: "Jay", Tag: "@jay"}
	eve     = core.Author{ID: "eve", Name: "Eve", Tag: "@eve"}
	jayPath = core.MustPath("room/@user/jay")
	private = core.MustPath("room/jay")
	group   = core.MustPath("room/1")
)

// stage is a plugin in the test of privacy.
type stage struct {
	*Case
	t      *testing.T
	stand  *Harness
	plugin core.Plugin
	count  int
}

func testPrivacy(t *testing.T, c *Case) {
	s := &stage{Case: c, t: t, stand: NewHarness(t, c.Name)}
	s.plugin = c.Make(t, s.stand)
	for _, k := range c.Keep {
		s.use(k, private, jay)
	}
	if !s.kept() {
		t.Fatal("it keeps nothing of what it was told; the case's Keep proves nothing")
	}
	if told := s.words(private, jay); !c.Silent && !strings.Contains(told, Canary) {
		t.Errorf("what Jay said in private is not told there, neither unasked nor by Ask: %s", told)
	}
	for _, at := range []struct {
		place core.Path
		who   core.Author
	}{{group, jay}, {group, eve}, {core.MustPath("room/eve"), eve}, {private, eve}} {
		if at.place == private && at.who == eve {
			continue // nobody but Jay is there
		}
		if told := s.words(at.place, at.who); strings.Contains(told, Canary) {
			t.Errorf("what Jay said in private is told to %s in %s: %s", at.who.Name, at.place, told)
		}
	}
	s.forget()
}

// kept reports whether the canary is in the store or in what a DataKeeper returns.
func (s *stage) kept() bool {
	if strings.Contains(s.disk(), Canary) {
		return true
	}
	k, ok := s.plugin.(core.DataKeeper)
	return ok && strings.Contains(s.shown(k), Canary)
}

func (s *stage) disk() string {
	s.t.Helper()
	var b bytes.Buffer
	if err := s.stand.DB.Export(context.Background(), &b, core.Path{}); err != nil {
		s.t.Fatal(err)
	}
	return b.String()
}

func (s *stage) shown(k core.DataKeeper) string {
	s.t.Helper()
	raws, err := k.Kept(context.Background(), jayPath)
	if err != nil {
		s.t.Errorf("Kept: %v", err)
	}
	for _, raw := range raws {
		var object map[string]any
		if err := json.Unmarshal(raw, &object); err != nil {
			s.t.Errorf("Kept shows %s, which is no JSON object", raw)
		}
	}
	return fmt.Sprintf("%s", raws)
}

// forget checks that Jay can see what is stored about them, and that forgetting them erases it.
func (s *stage) forget() {
	ctx := context.Background()
	keeper, ok := s.plugin.(core.DataKeeper)
	shown := s.items()
	if ok {
		shown += s.shown(keeper)
	}
	facts, err := s.stand.DB.Recall(ctx, core.FactQuery{See: []core.Path{private}, N: 50})
	if err != nil {
		s.t.Fatal(err)
	}
	if shown += fmt.Sprint(facts); !strings.Contains(shown, Canary) {
		s.t.Error("what is kept of Jay is neither a fact, nor under his path or his private place in Items, nor shown by Kept")
	}
	if ok {
		if err := keeper.Erase(ctx, jayPath); err != nil {
			s.t.Errorf("Erase: %v", err)
		}
		if left := s.shown(keeper); strings.Contains(left, Canary) {
			s.t.Errorf("after Erase, Kept still shows %s", left)
		}
		if err := keeper.Erase(ctx, jayPath); err != nil {
			s.t.Errorf("Erase once more: %v", err)
		}
	}
	if err := s.stand.DB.Forget(ctx, jayPath); err != nil {
		s.t.Fatal(err)
	}
	if left := s.disk(); strings.Contains(left, Canary) {
		s.t.Errorf("when Jay is forgotten, there is still\n%s", lines(left))
	}
	if told := s.words(private, jay); strings.Contains(told, Canary) {
		s.t.Errorf("when Jay is forgotten, he is still told %s", told)
	}
}

// items returns the items under Jay's path and in their private place, which is forgotten with them.
func (s *stage) items() string {
	var b strings.Builder
	for _, path := range []core.Path{jayPath, private} {
		list, err := s.stand.Items.List(context.Background(), path)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, i := range list {
			fmt.Fprintf(&b, "%s %s\n", i.Key, i.Value)
		}
	}
	return b.String()
}

// lines returns the lines that contain the canary.
func lines(text string) string {
	list := slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return !strings.Contains(l, Canary) })
	return strings.Join(list, "\n")
}

// words returns all that the plugin shows in a place: what it adds to a prompt, and what it answers to Ask.
func (s *stage) words(place core.Path, who core.Author) string {
	s.t.Helper()
	var b strings.Builder
	scene := s.scene(place, who, "what do you know about me?")
	for _, raw := range contributions(s.t, s.plugin, scene) {
		b.WriteString(raw + "\n")
	}
	for _, a := range s.Ask {
		b.WriteString(s.use(a, place, who) + "\n")
	}
	return b.String()
}

func (s *stage) scene(place core.Path, who core.Author, text string) core.Scene {
	return core.Scene{
		Path: place, Private: place != group, Author: who, Text: text, Locale: "en", Now: s.stand.Clock(), Sees: []core.Path{place},
	}
}

// contributions returns what a plugin adds to a prompt.
func contributions(t *testing.T, p core.Plugin, s core.Scene) (list []string) {
	t.Helper()
	ctx := context.Background()
	if x, ok := p.(core.Injector); ok {
		raw, err := x.Inject(ctx, s)
		if err != nil {
			t.Errorf("Inject: %v", err)
		}
		list = append(list, string(raw))
	}
	if x, ok := p.(hint.Source); ok {
		hints, err := x.Recon(ctx, s)
		if err != nil {
			t.Errorf("Recon: %v", err)
		}
		list = append(list, fmt.Sprint(hints))
	}
	if x, ok := p.(core.BioSource); ok {
		bios, err := x.Bios(ctx, s, []core.Author{jay, eve})
		if err != nil {
			t.Errorf("Bios: %v", err)
		}
		list = append(list, fmt.Sprintf("%s", bios))
	}
	return list
}

// use executes a sample, and returns its output.
func (s *stage) use(u Sample, place core.Path, who core.Author) string {
	s.t.Helper()
	switch {
	case u.Action != "":
		s.say("please use "+u.Action, place, who)
		return s.call(u, place, who)
	case u.Command != "":
		s.say("/"+u.Command, place, who)
		return s.command(u, place, who)
	}
	s.say(u.Text, place, who)
	return strings.Join(contributions(s.t, s.plugin, s.scene(place, who, u.Text)), "\n")
}

func (s *stage) call(u Sample, place core.Path, who core.Author) string {
	s.t.Helper()
	for _, a := range s.plugin.Actions() {
		if a.Name != u.Action {
			continue
		}
		c := coretest.Call(&a, place, who, json.RawMessage(u.Payload))
		s.count++
		c.Key.Turn.Seq, c.Private = uint64(s.count), place != group
		r, err := a.Do(epochs.With(context.Background(), s.stand.DB.Epoch()), c)
		if err != nil {
			return "error: " + err.Error()
		}
		return fmt.Sprintf("%s %+v %+v", r.Output, r.Next, c.Deliveries.(*coretest.Parts).Sent())
	}
	s.t.Fatalf("there is no action %s", u.Action)
	return ""
}

func (s *stage) command(u Sample, place core.Path, who core.Author) string {
	s.t.Helper()
	person, err := place.Person(who.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	if x, ok := s.plugin.(command.Commander); ok {
		for _, c := range x.Commands() {
			if c.Name != u.Command {
				continue
			}
			if c.Private && place == group {
				return "" // turns carry it out in private places only
			}
			text, err := c.Do(context.Background(), command.Call{
				Path: place, Private: place != group, Author: who, Person: person, Locale: "en",
				Args: u.Args, Sees: []core.Path{place},
			})
			return fmt.Sprint(text, err)
		}
	}
	s.t.Fatalf("there is no command %s", u.Command)
	return ""
}

// say stores a message, and notifies an Observer of the end of its turn.
func (s *stage) say(text string, place core.Path, who core.Author) {
	s.t.Helper()
	s.count++
	m := core.Message{
		Path: place, ID: fmt.Sprintf("c%d", s.count), Author: who, Text: text, Time: s.stand.Clock(), Private: place != group,
	}
	b := core.Batch{Append: []core.Entry{{Event: core.Event{Kind: core.KindMessage, Message: m}}}}
	if err := s.stand.DB.Commit(context.Background(), &b); err != nil {
		s.t.Fatal(err)
	}
	person, err := place.Person(who.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	if x, ok := s.plugin.(watch.Observer); ok {
		x.Observe(watch.TurnEnd{
			Turn:     core.TurnID{Path: place, Seq: b.Append[0].Message.Seq},
			Messages: []string{m.ID}, Answered: true, Person: person, Private: m.Private,
		})
	}
}
