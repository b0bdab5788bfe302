package coretest

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"synthbot/core"
)

// World is a platform in a test of its driver, usually a local server. All methods are
// called from the test's goroutine and may fail the test.
type World interface {
	// Start returns a driver with the stored state of the previous ones, as after a restart of the process.
	Start(t testing.TB) core.Interface
	// Places returns places where the bot and users are: at least one private one and one that is not.
	Places() []Place
	// Say lets a user write in a place, and returns the message's id.
	Say(t testing.TB, p Place, s Say) string
	// Shown returns the bot's messages in a place, oldest first.
	Shown(t testing.TB, p Place) []Shown
	// Fail makes the next messages to a place fail, one with each fault.
	Fail(t testing.TB, p Place, faults ...SendFault)
	// Thinking counts how often a typing indicator was shown in a place.
	Thinking(t testing.TB, p Place) int
	// Limit is the maximum length of a message, in units of Measure.
	Limit() int
	Measure(text string) int
	// Secrets returns what must not be logged.
	Secrets() []string
	// Log returns what the drivers logged so far, at every level.
	Log() string
}

// Place is one place of a World.
type Place struct {
	Path    core.Path
	Private bool
}

// Say is a message of a user.
type Say struct {
	Person  string // the id of a user of the World; empty: the first one
	Text    string
	ReplyTo string
	Mention bool // the text is preceded by the platform's own mention of the bot
}

// Shown is a message as a user sees it: Text is without markup.
type Shown struct {
	ID      string
	Text    string
	ReplyTo string
}

// SendFault is a way in which sending a message fails.
type SendFault string

// Ways to fail. The message is not sent.
const (
	SendLimited SendFault = "limited" // a short rate limit
	SendBroken  SendFault = "broken"  // an error of the server
	SendReset   SendFault = "reset"   // the connection breaks
)

// TestInterface checks that a driver does what the core expects of every
// interface. open returns a new World; it is called for each subtest.
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

// message returns the message action of a driver.
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

// joined returns the texts of messages, one after the other.
func joined(list []Shown) string {
	var all []string
	for _, s := range list {
		all = append(all, s.Text)
	}
	return strings.Join(all, "\n")
}

// letters returns only the letters, digits and emoji of a text, which no conversion may lose.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.So, r) {
			return r
		}
		return -1
	}, s)
}

func quoted(list []string) string { return fmt.Sprintf("%q", list) }
