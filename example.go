// Package synthbot holds what is shipped beside the program.
package synthbot

import _ "embed"

//go:embed config.example.toml
var example string

// ExampleConfig returns a configuration file with a sentence for each setting. Optional keys and tables are commented
// out: a key or header begins with "#", a sentence with "# ". A test of package config holds it equal to the tags.
func ExampleConfig() string { return example }
