package core

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// TestSendsOn: a step continues after a part that arrived or may have arrived, and stops after any other error.
func TestSendsOn(t *testing.T) {
	unsure := Errorf(Unsure, "it may be there")
	refused := Errorf(Broken, "no")
	away := fmt.Errorf("%w: %w", ErrAway, ErrUnknownOutcome)
	for name, tc := range map[string]struct {
		ends []error
		sent int
		kind ErrorKind
		is   error
	}{
		"all arrive":             {[]error{nil, nil}, 2, "", nil},
		"none":                   {nil, 0, "", nil},
		"one is unsure":          {[]error{nil, unsure, nil}, 3, Unsure, nil},
		"all are":                {[]error{unsure, fmt.Errorf("part: %w", unsure)}, 2, Unsure, nil},
		"one is refused":         {[]error{nil, refused, nil}, 2, Broken, refused},
		"unsure, then refused":   {[]error{unsure, refused, nil}, 2, Unsure, refused},
		"the platform goes away": {[]error{unsure, away, nil}, 2, Unsure, ErrUnknownOutcome},
		"away":                   {[]error{away, nil}, 1, "", ErrAway},
	} {
		t.Run(name, func(t *testing.T) {
			var sent []int
			var err error
			for i, end := range tc.ends {
				sent = append(sent, i)
				if !SendsOn(&err, end) {
					break
				}
			}
			var e *Error
			kind := ErrorKind("")
			if errors.As(err, &e) {
				kind = e.Kind
			}
			if len(sent) != tc.sent || !slices.IsSorted(sent) || kind != tc.kind || tc.is != nil && !errors.Is(err, tc.is) || (err == nil) != (tc.kind == "" && tc.is == nil) {
				t.Errorf("sent %v, %v, want %d parts and an error of kind %q", sent, err, tc.sent, tc.kind)
			}
		})
	}
}

// TestPermissionRank: a permission that is unknown or does not depend on the rank is not granted to any user.
func TestPermissionRank(t *testing.T) {
	for p, want := range map[Permission]Rank{
		PermissionEveryone: RankMember, PermissionModerators: RankModerator, PermissionAdmins: RankAdmin,
		PermissionBot: RankBot, PermissionConcerned: RankBot, "": RankBot, "nobody": RankBot,
	} {
		r, ok := p.Rank()
		if r != want || ok == (p == PermissionConcerned || p == "" || p == "nobody") {
			t.Errorf("%q: got %d, %t", p, r, ok)
		}
	}
}
