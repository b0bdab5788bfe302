// Package lore reads collections of lore (background knowledge) from character cards and files.
package lore

// Book is a collection of lore. An entry is shown to a model when one of its keys comes up.
// Texts may contain {{char}} and {{user}}.
type Book struct {
	ScanDepth   int // messages that are searched for keys; 0: not set
	TokenBudget int // 0: not set
	Recursive   bool
	Entries     []Entry
}

// Entry is one piece of lore.
type Entry struct {
	Keys          []string
	SecondaryKeys []string
	Content       string
	Enabled       bool
	Constant      bool // always shown
	Selective     bool // one of SecondaryKeys must come up too
	CaseSensitive bool
	Regex         bool // Keys are regular expressions
	Order         int  // lower is shown earlier
	Priority      int  // lower is left out earlier
}
