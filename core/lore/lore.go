// Package lore holds collections of lore, as character cards and files bring them.
package lore

// Book is a collection of lore, shown to a model when a key of an entry comes up.
// Texts may hold {{char}} and {{user}}.
type Book struct {
	ScanDepth   int // messages that are searched for keys; 0: not said
	TokenBudget int // 0: not said
	Recursive   bool
	Entries     []Entry
}

// Entry is one piece of lore.
type Entry struct {
	Keys          []string
	SecondaryKeys []string
	Content       string
	Enabled       bool
	Constant      bool // shown always
	Selective     bool // one of SecondaryKeys must come up too
	CaseSensitive bool
	Regex         bool // Keys are regular expressions
	Order         int  // lower is shown earlier
	Priority      int  // lower is left out earlier
}
