package setup

import (
	"errors"
	"fmt"
	"strings"

	"synthbot/core"
)

// Answers that name nothing.
const (
	Keep    = "keep"     // what the file says stays
	None    = "none"     // without it
	New     = "new"      // a persona that is described now
	BuiltIn = "built-in" // the persona that the program brings
	Offline = "offline"  // the engine that the program brings
	ByCode  = "code"     // who says a code to the bot is its admin
)

// Platforms that a token can be given for, in the order in which they are asked.
const (
	Telegram = "telegram"
	Discord  = "discord"
)

func platforms() []string { return []string{Telegram, Discord} }

// Answers is what was answered so far, by flags or at the terminal. What is empty
// was not answered.
type Answers struct {
	Persona     string // Keep, BuiltIn, New, or a file
	PersonaName string // of a new one
	PersonaText string
	Engine      string // Keep, Offline, or a provider
	Model       string
	BaseURL     string
	Key         Secret
	Accounts    map[string]*Account // by platform
	Admins      []string
	Claim       string // Keep, None, ByCode
	DataDir     string
	Timezone    string
	Language    string
}

// Account is the bot on a platform.
type Account struct {
	Token  Secret
	APIURL string // of a server of one's own
}

// account is the one of a platform, made where there is none.
func (a *Answers) account(platform string) *Account {
	if a.Accounts == nil {
		a.Accounts = make(map[string]*Account)
	}
	if a.Accounts[platform] == nil {
		a.Accounts[platform] = &Account{}
	}
	return a.Accounts[platform]
}

// Secret is the answer to a question for a secret: a reference for the file, or
// the secret itself, which gets a file of its own.
type Secret struct {
	Word  string // Keep, None, env:NAME, file:PATH
	Typed core.Secret
}

func (s Secret) given() bool { return s.Word != "" || !s.Typed.IsZero() }

// fresh reports whether there is a secret in it.
func (s Secret) fresh() bool { return s.given() && s.Word != Keep && s.Word != None }

var errSecret = errors.New("is no place of a secret: write env:NAME, file:PATH, or - to read it from standard input " +
	"(on a command line it could be seen by everybody on this machine)")

// ReadSecret reads the value of a flag. A secret itself is refused there; "-" reads
// one line by next.
func ReadSecret(value string, next func() (string, error)) (Secret, error) {
	switch {
	case value == "", value == Keep, value == None, strings.HasPrefix(value, "env:"), strings.HasPrefix(value, "file:"):
		return Secret{Word: value}, nil
	case value != "-":
		return Secret{}, errSecret
	}
	line, err := next()
	if err != nil {
		return Secret{}, fmt.Errorf("standard input: %w", err)
	}
	if line = strings.TrimSpace(line); line == "" {
		return Secret{}, errors.New("standard input has no line for it")
	}
	return Secret{Typed: core.NewSecret(line)}, nil
}

// Known is what the configuration file says already. The zero value is that there
// is none.
type Known struct {
	There    bool
	Persona  string
	Engines  []Engine
	Accounts map[string]bool // platforms that have a token
	Admins   []string
	Claim    bool
	Access   bool // the file says who may write in private
	DataDir  string
	Timezone string
	Language string
}

// Engine is a language model of the file.
type Engine struct {
	Name, Provider, Model, BaseURL string
}
