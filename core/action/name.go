package action

import (
	"strings"
	"unicode"

	"synthbot/core/txt"
)

// maxName is how many bytes a name has at most.
const maxName = 64

var grammar = txt.Pattern(`^[a-z0-9_.-]{1,64}$`)

// normal is what names are compared by: lower case, without '_', '-', '.' and
// spaces.
func normal(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("_-. ", r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// Names of the actions that are built in: they steer the conversation, run no
// code, and are in no catalogue. Check hands them on under these names, Execute
// returns them as Done steps, and what they mean the turn decides.
const (
	None     = "NONE"     // there is nothing to do
	Continue = "CONTINUE" // the model wants to go on after this turn
	Ignore   = "IGNORE"   // the exchange is over, until the bot is addressed again
)

var controls = []string{None, Continue, Ignore}

// MaxContinue is how often in a row a model may ask to go on.
const MaxContinue = 3

// Control returns the built-in action that a name means.
func Control(name string) (string, bool) {
	switch normal(name) {
	case "none", "noaction", "donothing":
		return None, true
	case "continue", "elaborate", "keeptalking":
		return Continue, true
	case "ignore", "stoptalking", "stopchatting":
		return Ignore, true
	}
	return "", false
}

// nearest returns the candidate that a name most likely means; "" where none is
// near enough, or two are equally near. Both sides are normalised.
func nearest(name string, candidates []string) string {
	limit := max(1, len(name)/3)
	best, at, tie := "", limit+1, false
	for _, c := range candidates {
		d := limit + 1
		if len(name) <= maxName {
			d = txt.Distance(name, c)
		}
		if len(name) >= 4 && len(c) >= 4 && (strings.HasPrefix(c, name) || strings.HasPrefix(name, c)) {
			d = min(d, 1)
		}
		if d < at {
			best, at, tie = c, d, false
		} else if d == at {
			tie = true
		}
	}
	if tie {
		return ""
	}
	return best
}
