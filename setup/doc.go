// Package setup holds what `synthbot init` asks, and how the answers come into a
// configuration file: which questions there are and in which order, how they are
// put on a terminal, and how a TOML file is changed in place, so that nothing that
// stands in it is lost.
//
// It does not know the configuration: its settings, what is in force and whether
// it is right are the business of its caller, who also writes the files.
//
// # How a file is changed
//
// A key that is there gets another value; the rest of its line stays. One that
// only stands there as the example file shows it ("#name = …" in its table) takes
// that line. Any other is added at the end of its table. A table that only stands
// there as an example ("#[interfaces.telegram]") is taken in; any other is added
// at the end of the file. No other byte changes.
package setup
