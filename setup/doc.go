// Package setup prepares a machine for the bot: `synthbot init` asks questions and writes the
// answers into the configuration, `synthbot service install` writes what systemd needs. It
// runs no bot.
//
// # How a configuration file is changed
//
// The value of an existing key is replaced; the rest of its line stays. A key that exists
// only in a comment, as in the example file ("#name = …" in its table), takes the place of
// that line. Any other key is added at the end of its table. A table that exists only in a
// comment ("#[interfaces.telegram]") is uncommented; any other is added at the end of the
// file. No other byte changes.
package setup
