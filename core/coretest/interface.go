package coretest

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"synthbot/core"
)

// World is a platform, played by a local server, as a test of its driver sees
// it: people talk, the bot's messages are in places. All methods are called
// from the test's goroutine and may fail the test.
type World interface {
	// Start makes a driver that knows what its predecessors of this world kept,
	// as after a restart of the process.
	Start(t testing.TB) core.Interface
	// Places lists places where the bot and the people are, different ones: at
	// least one private and one not.
	Places() []Place
	// Say lets a person say something in a place, and returns its id.
	Say(t testing.TB, p Place, s Say) string
	// Shown returns the bot's messages in a place, oldest first.
	Shown(t testing.TB, p Place) []Shown
	// Fail makes the next sends to a place fail, one after the other.
	Fail(t testing.TB, p Place, faults ...SendFault)
	// Thinking counts the signs of being at work that were shown in a place.
	Thinking(t testing.TB, p Place) int
	// Limit is the length of the longest message, in Measure's units.
	Limit() int
	Measure(text string) int
	// Secrets must show nowhere.
	Secrets() []string
	// Log is what the drivers logged so far, at every level.
	Log() string
}

// Place is one place of a World.
type Place struct {
	Path    core.Path
	Private bool
}

// Say is what a person says.
type Say struct {
	Person  string // an id that the World gives to its person; empty: its first one
	Text    string
	ReplyTo string
	Mention bool // the text is preceded by the platform's own mention of the bot
}

// Shown is a message as a person sees it: Text is without markup.
type Shown struct {
	ID      string
	Text    string
	ReplyTo string
}

// SendFault is a way in which a platform fails to send.
type SendFault string

// Ways to fail to send. A World fails in that way before it has sent.
const (
	SendLimited SendFault = "limited" // asked to wait a moment
	SendBroken  SendFault = "broken"  // the platform has trouble
	SendReset   SendFault = "reset"   // the connection breaks
)

// TestInterface holds a driver against what the core expects of every
// interface. open makes a new World; it is called for each subtest.
func TestInterface(t *testing.T, open func(t *testing.T) World) {
	for name, test := range map[string]func(*testing.T, World){
		"actions":             testActions,
		"takes in":            testTakesIn,
		"addressing":          testAddressing,
		"nothing unconfirmed": testConfirms,
		"inbox fails":         testInboxFails,
		"bad event":           testBadEvent,
		"restart":             testRestart,
		"ends":                testEnds,
		"sends":               testSends,
		"sends long":          testSendsLong,
		"sends on":            testSendsOn,
		"sends the rest":      testSendsRest,
		"sends files":         testSendsFiles,
		"shows everything":    testShowsEverything,
		"replies":             testReplies,
		"refuses":             testRefuses,
		"faults":              testFaults,
		"many places":         testManyPlaces,
		"sends alone":         testSendsAlone,
		"thinks":              testThinks,
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			test(t, w)
			for _, secret := range w.Secrets() {
				if secret != "" && strings.Contains(w.Log(), secret) {
					t.Error("the log holds a secret")
				}
			}
		})
	}
}

// message finds the message action of a driver.
func message(t testing.TB, d core.Interface) core.Action {
	t.Helper()
	for _, a := range d.Actions() {
		if a.Name == core.MessagePrefix+d.Name() {
			return a
		}
	}
	t.Fatalf("%s has no action %s%s", d.Name(), core.MessagePrefix, d.Name())
	return core.Action{}
}

func pick(t testing.TB, w World, private bool) Place {
	t.Helper()
	for _, p := range w.Places() {
		if p.Private == private {
			return p
		}
	}
	t.Fatalf("the world has no place that is private: %v", private)
	return Place{}
}

// joined is what is shown, one message after the other.
func joined(list []Shown) string {
	var all []string
	for _, s := range list {
		all = append(all, s.Text)
	}
	return strings.Join(all, "\n")
}

// letters keeps what nobody may lose: letters, digits and emoji.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.So, r) {
			return r
		}
		return -1
	}, s)
}

func quoted(list []string) string { return fmt.Sprintf("%q", list) }
