// Package config reads a TOML file into structs whose fields carry tags, and
// renders the commented example and the reference page from the same tags. It
// knows no setting itself: each package brings its own struct, so that a
// setting's name, default, sentence and check are one field.
//
//	type Config struct {
//		Timeout time.Duration `toml:"timeout" doc:"How long an answer may take." default:"30s" min:"1s" max:"1h"`
//	}
//
// Tags of a field:
//
//	toml      the key; a field without it is not read, an embedded struct without it is part of its parent
//	doc       one sentence, for the example and the reference
//	default   the value where the file says nothing, as text ("30s"; "a, b" for a list)
//	min, max  bounds of a number or duration, or of the length of a text in characters; of each element of a list
//	oneof     the allowed values, as "a|b|c"; of each element of a list
//	required  "true": the file must say it, if there is no default, and not emptily
//	example   what the example file shows where there is no default
//
// Types of a field: string, bool, the signed integers, float64, time.Duration
// (as text: "30s"), [core.Secret], every encoding.TextUnmarshaler, nested
// structs, slices and string-keyed maps of all of these, pointers to them (nil
// where the file says nothing), and [Table] where the shape of a table depends
// on its name or on what stands in it. A bad tag or type is a programmer's
// mistake and panics, whatever the file holds; [Page.Lint] finds them all.
//
// A secret is a literal, "env:NAME" or "file:PATH". A relative PATH is looked
// for in $CREDENTIALS_DIRECTORY, then beside the configuration file. Nothing
// else is ever read from the environment.
//
// All faults of a file are found in one reading, each with its line and the
// mend. No fault holds a secret.
package config
