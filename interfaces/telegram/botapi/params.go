package botapi

import (
	"encoding/json"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"
)

// Params are the parameters of a call.
type Params map[string]string

// HTML is the parse_mode of texts in HTML.
const HTML = tgbotapi.ModeHTML

// AddNonEmpty adds a text unless it is empty.
func (p Params) AddNonEmpty(key, value string) { tgbotapi.Params(p).AddNonEmpty(key, value) }

// AddNonZero adds a number unless it is 0.
func (p Params) AddNonZero(key string, value int64) { tgbotapi.Params(p).AddNonZero64(key, value) }

// AddTrue adds a flag that is set.
func (p Params) AddTrue(key string, value bool) { tgbotapi.Params(p).AddBool(key, value) }

// AddJSON adds a value that JSON can express.
func (p Params) AddJSON(key string, value any) {
	data, _ := json.Marshal(value)
	p[key] = string(data)
}

// File is a file of a call: its content, a file on this machine, or what the platform
// finds it by.
type File struct {
	Field string
	Name  string // with Data
	Data  []byte
	Path  string
	Ref   string // an address or the id of a file
}
