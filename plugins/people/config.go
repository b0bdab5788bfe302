package people

// Config is the plugin's table.
type Config struct {
	Fields int `toml:"fields" default:"5" min:"1" max:"7" doc:"How many fields of a bio one update may change."`
	Daily  int `toml:"daily" default:"20" min:"1" max:"1000" doc:"How many bio updates per day one user may cause."`
	Bytes  int `toml:"bytes" default:"300" min:"60" max:"400" doc:"How much of a user's bio a prompt contains at most, in bytes."`
}
