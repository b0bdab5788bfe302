// Package core holds the words of synthbot: paths, messages, actions, plans,
// and the contracts that interfaces, plugins, engines and stores fulfil.
//
// It does no I/O, starts no goroutine and imports nothing but package llm. It never learns a platform's name: what an
// interface can do, it says through its actions and through the small optional interfaces of this package.
package core
