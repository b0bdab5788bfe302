package people

// Config is the plugin's table.
type Config struct {
	Fields int `toml:"fields" default:"5" min:"1" max:"7" doc:"How many fields of a bio one update may change."`
	Daily  int `toml:"daily" default:"20" min:"1" max:"1000" doc:"How many updates of bios a day one person may cause."`
	Bytes  int `toml:"bytes" default:"300" min:"60" max:"400" doc:"How much of a person's bio a prompt tells at most, in bytes."`
}
