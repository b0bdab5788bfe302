package diary

// Config is the plugin's table.
type Config struct {
	Daily int `toml:"daily" default:"12" min:"1" max:"100" doc:"How many entries per day the diary of one place may have."`
	Days  int `toml:"days" default:"3" min:"0" max:"14" doc:"How many past days of the diary a prompt contains; 0: none."`
	Bytes int `toml:"bytes" default:"800" min:"100" max:"2000" doc:"How much of the diary a prompt contains at most, in bytes."`
	Keep  int `toml:"keep" default:"365" min:"7" max:"36500" doc:"How many days the diary is kept."`
}
