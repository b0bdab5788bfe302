// Package passage holds the words in which plugins and the store speak about documents: what
// is indexed of them, and how it is looked up.
package passage

import (
	"context"
	"time"
)

// Document is one text of a source, cut into passages.
type Document struct {
	Name     string // unique in its source: a file's path below the folder, or an address
	Stamp    string // changes when the document does; the index only keeps it
	Language string // BCP 47; "": unknown
	Link     string // an address that people can open; "": none
	Time     time.Time
	Passages []Passage
	Count    int // of its passages, where documents are listed
}

// Passage is a part of a document that is found by itself.
type Passage struct {
	ID       uint64 // given by the index, never given again
	Source   string
	Document string
	Title    string // the headings above it, outermost first
	Anchor   string // of the nearest heading; "": the document's beginning
	Text     string
	Link     string // of the document
	Time     time.Time
}

// Mode is what a search compares.
type Mode string

// Modes. Both falls back to words where texts have no vectors.
const (
	Both    Mode = ""
	Words   Mode = "words"
	Meaning Mode = "meaning"
)

// Query asks for passages.
type Query struct {
	Sources   []string // no others are looked at
	Text      string
	Languages []string // that the documents are in
	Mode      Mode
	N         int // how many at most
}

// Match is a passage and how well it answers.
type Match struct {
	Passage
	Score float64
	Share float64 // of the text's words, by weight, that the passage has: 0 … 1
	Near  float64 // how near its meaning is: 0 (chance) … 1
}

// Index finds passages of documents by words, and by meaning where the bot has an engine for
// that. All that it holds can be made again from the sources. Safe for concurrent use.
type Index interface {
	// PutDocuments replaces documents of a source. It returns when they are on disk.
	PutDocuments(ctx context.Context, source string, documents ...Document) error
	// DropDocuments forgets documents.
	DropDocuments(ctx context.Context, source string, names ...string) error
	// Documents lists the documents of a source, without their passages.
	Documents(ctx context.Context, source string) ([]Document, error)
	// Sources lists the sources that have documents.
	Sources(ctx context.Context) ([]string, error)
	// Waiting returns how many passages have no vector yet; 0 if the bot has no engine for vectors.
	Waiting(ctx context.Context) (int, error)
	// Find returns the passages that answer best, best first.
	Find(ctx context.Context, q Query) ([]Match, error)
}
