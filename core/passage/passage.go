// Package passage defines the search index for documents: the types of documents and passages, and the Index
// that the store implements and plugins use. It contains no logic.
package passage

import (
	"context"
	"time"
)

// Document is one text of a source, cut into passages.
type Document struct {
	Name     string    // unique in its source: a file's path below the folder, or a URL
	Stamp    string    // changes when the document does; the index only stores it
	Language string    // BCP 47; "": unknown
	Link     string    // a URL that users can open; "": none
	Time     time.Time // when it was last changed; zero: unknown
	Passages []Passage // only in PutDocuments
	Count    int       // the number of passages; only in the result of Index.Documents
}

// Passage is a part of a document. Searches return passages.
type Passage struct {
	ID       uint64 // assigned by the index, never reused
	Source   string
	Document string // its Name
	Title    string // the headings above it, outermost first
	Anchor   string // of the nearest heading; "": the document's beginning
	Text     string
	Link     string // of the document
	Time     time.Time
}

// Mode is what a search compares.
type Mode string

// Modes of a search. Both uses only words for texts that have no vectors.
const (
	Both    Mode = ""
	Words   Mode = "words"
	Meaning Mode = "meaning"
)

// Query asks for passages.
type Query struct {
	Sources   []string // only these are searched
	Text      string
	Languages []string // of the documents
	Mode      Mode
	N         int // how many at most
}

// Match is a passage with its relevance.
type Match struct {
	Passage
	Score float64 // comparable only within one result
	Share float64 // of the query's words, by weight, that the passage contains: 0 … 1
	Near  float64 // similarity of meaning: 0 (chance) … 1
}

// Index finds passages of documents by words and, if the bot has an engine for embeddings, by meaning. It can
// be rebuilt from the sources at any time. Safe for concurrent use.
type Index interface {
	// PutDocuments adds or replaces documents of a source. They are durable when it returns.
	PutDocuments(ctx context.Context, source string, documents ...Document) error
	// DropDocuments removes documents. Unknown names are ignored.
	DropDocuments(ctx context.Context, source string, names ...string) error
	// Documents lists the documents of a source, without their passages.
	Documents(ctx context.Context, source string) ([]Document, error)
	// Sources lists the sources that have documents.
	Sources(ctx context.Context) ([]string, error)
	// Waiting returns how many passages have no vector yet; 0 if the bot has no engine for vectors. failed is the
	// engine's last error, until a call succeeds.
	Waiting(ctx context.Context) (n int, failed, err error)
	// Find returns up to q.N passages, the most relevant first.
	Find(ctx context.Context, q Query) ([]Match, error)
}
