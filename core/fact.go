package core

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Errors of Facts and Items.
var (
	// ErrUnknown is returned for a fact that does not exist, or cannot be seen from the place.
	ErrUnknown = errors.New("no such memory")
	// ErrForgotten is returned if something is not stored because it concerns
	// a user who was forgotten while it was made. It is an Error, for actions.
	ErrForgotten error = Errorf(Forbidden, "somebody whom it concerns asked to be forgotten meanwhile")
	// ErrVersion is returned by Put if the item was changed since it was read.
	ErrVersion = errors.New("it was changed meanwhile")
)

// Fact is something that the bot heard or found out.
type Fact struct {
	ID         string    `json:"id,omitempty"` // set by SaveFact
	Text       string    `json:"text"`
	Tags       []string  `json:"tags,omitempty"`
	About      []Path    `json:"about,omitempty"` // users and places
	Topic      string    `json:"topic,omitempty"` // a fact replaces another one with the same Topic and About
	Origin     Path      `json:"origin,omitzero"` // where it was said: visible there and below, nowhere else
	Importance int       `json:"importance,omitempty"`
	Language   string    `json:"language,omitempty"` // BCP 47, of Text
	Time       time.Time `json:"time,omitzero"`
	By         Path      `json:"by,omitzero"` // who said it; zero: the bot itself
	// Former holds its earlier texts, newest first.
	Former []Former `json:"former,omitempty"`
	// Rank is the rank of By in Origin. SaveFact uses it, but does not store it.
	Rank Rank `json:"-"`
	// Known is set by SaveFact if the same text was stored before.
	Known bool `json:"-"`
}

// MayReplace reports whether f may replace old: if its author also said old, is
// somebody whom old is about, or is a moderator. Otherwise both are kept.
func (f *Fact) MayReplace(old *Fact) bool {
	concerned := f.By == old.By || !f.By.IsZero() && slices.Contains(old.About, f.By)
	return concerned || f.Rank == RankModerator || f.Rank == RankAdmin
}

// Former is an earlier text of a fact.
type Former struct {
	Text string    `json:"text"`
	Time time.Time `json:"time,omitzero"`
	By   Path      `json:"by,omitzero"`
}

// FactQuery asks for facts.
type FactQuery struct {
	// See are the places whose facts may be shown (Scene.Sees, Call.Sees): only
	// what was said there or above is searched.
	See   []Path
	Text  string   // words; "": only importance and time count
	Tags  []string // all of these; a topic counts as a tag
	About []Path   // all of these
	N     int      // how many at most
}

// FactPage asks for a page of facts, for admins.
type FactPage struct {
	Below  Path   // said there or below; the zero Path: anywhere
	About  Path   // a user; the zero Path: anybody
	Before string // where the previous page says the next one begins; "": the first page
	N      int    // how many at most
}

// Facts is what the bot knows. Safe for concurrent use.
type Facts interface {
	// SaveFact stores a fact and returns it as stored. With an ID, it replaces that fact. Without one, it replaces
	// the facts with the same Origin and About that have the same text or Topic, if it may (MayReplace). The replaced
	// texts become Former. A fact about or by somebody who was forgotten after the epoch of the context began is not
	// stored; the error wraps ErrForgotten.
	SaveFact(ctx context.Context, f Fact) (Fact, error)
	// DropFact deletes a fact that can be seen from one of these places; otherwise the error wraps ErrUnknown.
	DropFact(ctx context.Context, id string, see ...Path) error
	// Recall returns the facts that match best, best first.
	Recall(ctx context.Context, q FactQuery) ([]Fact, error)
	// Epoch is the number of times that somebody was forgotten; see package epochs.
	Epoch() uint64
}

// Item is a value that a plugin stores. The zero Path is for values of no place or user. Items under a user's path
// are shown to that user on request, and erased when the user is forgotten; the plugin does nothing for that.
type Item struct {
	Path    Path
	Key     string
	Version uint64 // 1 at first, one more after each change; 0: does not exist
	Value   json.RawMessage
}

// Decode decodes the value of an item into v. It leaves v as it is if there is none.
func (i *Item) Decode(v any) error {
	if i.Value == nil {
		return nil
	}
	if err := json.Unmarshal(i.Value, v); err != nil {
		return fmt.Errorf("item %q of %q: %w", i.Key, i.Path, err)
	}
	return nil
}

// AnyVersion lets Put replace an item of any version, or none.
const AnyVersion = ^uint64(0)

// Items stores the values of one plugin. Safe for concurrent use.
type Items interface {
	// Get returns the item with this path and key. If there is none, ok is false and the version 0.
	Get(ctx context.Context, path Path, key string) (item Item, ok bool, err error)
	// Put stores an item and returns its new version. item.Version must be the stored version, 0 for none, or
	// AnyVersion; otherwise the error wraps ErrVersion. A nil Value deletes the item. It is on disk when Put returns.
	// If somebody was forgotten after the epoch of the context began, an item is not stored that lies under their
	// path, names them, or comes from a turn that answers them; the error wraps ErrForgotten.
	Put(ctx context.Context, item Item) (version uint64, err error)
	// PutAll is Put for several items: all of them are on disk if it returns nil, otherwise none.
	PutAll(ctx context.Context, items ...Item) error
	// List returns the items at or below root, by path and key; for the zero Path, all items.
	List(ctx context.Context, root Path) ([]Item, error)
}
