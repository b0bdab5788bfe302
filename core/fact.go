package core

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// Errors of Facts and Items.
var (
	// ErrUnknown is returned for a fact that does not exist, or cannot be seen from the place.
	ErrUnknown = errors.New("no such memory")
	// ErrForgotten is returned if something is not stored because it concerns
	// somebody who was forgotten while it was made. It is an Error, for actions.
	ErrForgotten error = Errorf(Forbidden, "somebody whom it concerns asked to be forgotten meanwhile")
	// ErrVersion is what Put fails with when somebody else was faster.
	ErrVersion = errors.New("it was changed meanwhile")
)

// Fact is something that the bot heard or found out.
type Fact struct {
	ID         string    `json:"id,omitempty"` // given by SaveFact
	Text       string    `json:"text"`
	Tags       []string  `json:"tags,omitempty"`
	About      []Path    `json:"about,omitempty"` // people and places
	Topic      string    `json:"topic,omitempty"` // one fact of a topic about the same replaces another
	Origin     Path      `json:"origin,omitzero"` // where it was said: it is seen there and below, nowhere else
	Importance int       `json:"importance,omitempty"`
	Language   string    `json:"language,omitempty"` // BCP 47, of Text
	Time       time.Time `json:"time,omitzero"`
	By         Path      `json:"by,omitzero"` // who said it; zero: the bot itself
	// Former holds what it said before, newest first.
	Former []Former `json:"former,omitempty"`
	// Rank is that of By where it is said. It matters when the fact is saved, and is not kept.
	Rank Rank `json:"-"`
	// Known says of what SaveFact returns that the same text was there before.
	Known bool `json:"-"`
}

// MayReplace reports whether f may take the place of old: its author said that one,
// too, or is whom it is about, or moderates. Elsewhere both are kept.
func (f *Fact) MayReplace(old *Fact) bool {
	concerned := f.By == old.By || !f.By.IsZero() && slices.Contains(old.About, f.By)
	return concerned || f.Rank == RankModerator || f.Rank == RankAdmin
}

// Former is what a fact said before it was changed.
type Former struct {
	Text string    `json:"text"`
	Time time.Time `json:"time,omitzero"`
	By   Path      `json:"by,omitzero"`
}

// FactQuery asks for facts.
type FactQuery struct {
	// See are the places that the asker is in (Scene.Sees, Call.Sees): only
	// what was said there or above is looked at.
	See   []Path
	Text  string   // words; "": by importance and time alone
	Tags  []string // all of these; a topic counts as a tag
	About []Path   // all of these
	N     int      // how many at most
}

// FactPage asks for a page of facts, for admins.
type FactPage struct {
	Below  Path   // said there or below; the zero Path: anywhere
	About  Path   // a person; the zero Path: anybody
	Before string // the next of the page before; "": the first page
	N      int    // how many at most
}

// Facts is what the bot knows. Safe for concurrent use.
type Facts interface {
	// SaveFact keeps a fact and returns it as it is then. With an ID it replaces that one, and Former continues what
	// is kept. Without, it replaces those of the same origin, about the same, that say the same or have the same
	// Topic, as far as it may (MayReplace): the newest wins, what was said before stays as Former. A fact about or by
	// somebody who was forgotten after the epoch of the context began is not stored; the error wraps ErrForgotten.
	SaveFact(ctx context.Context, f Fact) (Fact, error)
	// DropFact forgets a fact that can be seen from one of these places; else the error wraps ErrUnknown.
	DropFact(ctx context.Context, id string, see ...Path) error
	// Recall returns the facts that answer best, best first.
	Recall(ctx context.Context, q FactQuery) ([]Fact, error)
	// Epoch is the number of times that somebody was forgotten; see WithEpoch.
	Epoch() uint64
}

// Item is one thing that a plugin keeps. The zero Path is the plugin's own, not of any place or person. What is kept
// under a person's path is shown to them, and erased with them, without the plugin's doing.
type Item struct {
	Path    Path
	Key     string
	Version uint64 // 1 when it is first put, rising; 0: not there
	Value   json.RawMessage
}

// AnyVersion lets Put replace whatever is there.
const AnyVersion = ^uint64(0)

// Items is what one plugin keeps. Safe for concurrent use.
type Items interface {
	// Get returns what is kept under path and key; ok is false, and the version 0, where there is nothing.
	Get(ctx context.Context, path Path, key string) (item Item, ok bool, err error)
	// Put keeps an item and returns its new version. item.Version must be the one that is there, 0 for none, or
	// AnyVersion; else the error wraps ErrVersion. A nil Value takes the item away. It is on disk when Put returns.
	// What lies under the path of somebody who was forgotten after the epoch of the context began, names them, or
	// comes of a turn that answers them, is not stored; the error wraps ErrForgotten.
	Put(ctx context.Context, item Item) (version uint64, err error)
	// PutAll is Put for several at once: all of them are on disk when it returns nil, else none is.
	PutAll(ctx context.Context, items ...Item) error
	// List returns what is kept at or below root, by path and key; for the zero Path everything.
	List(ctx context.Context, root Path) ([]Item, error)
}
