// Package config reads a TOML file into structs whose fields carry tags, and
// renders the commented example and the reference page from the same tags. It
// contains no settings itself: each package has its own struct, and a setting's
// name, default, sentence and check are one field.
//
//	type Config struct {
//		Timeout time.Duration `toml:"timeout" doc:"How long an answer may take." default:"30s" min:"1s" max:"1h"`
//	}
//
// Tags of a field:
//
//	toml      the key; a field without it is not read, an embedded struct without it is part of its parent
//	doc       one sentence, for the example and the reference
//	default   the value if the key is missing, as text ("30s"; "a, b" for a list)
//	min, max  bounds of a number or duration, or of the length of a text in characters; of each element of a list
//	oneof     the allowed values, as "a|b|c"; of each element of a list
//	required  "true": the key must be there, if it has no default, and not be empty
//	example   what the example file shows if there is no default
//
// Types of a field: string, bool, the signed integers, float64, time.Duration
// (as text: "30s"), [core.Secret], every encoding.TextUnmarshaler, nested
// structs, slices and string-keyed maps of all of these, pointers to them (nil
// if the key is missing), and [Table] if the shape of a table depends on its name
// or its content. A bad tag or type is a programmer's mistake and panics, whatever
// the file holds; [Page.Lint] finds them all.
//
// A secret is a literal, "env:NAME" or "file:PATH". A relative PATH is looked
// up in $CREDENTIALS_DIRECTORY, then in the folder of the configuration file.
// Nothing else is read from the environment.
//
// One reading reports all faults of a file, each with its line and a fix. No
// fault contains a secret.
package config
