package setup

import (
	"errors"
	"fmt"
	"strings"

	"synthbot/core"
	"synthbot/core/engine"
)

// Answers with a meaning of their own.
const (
	Keep    = "keep"     // the value of the file stays
	None    = "none"     // without it
	New     = "new"      // a persona that is described now
	BuiltIn = "built-in" // the built-in persona
	Offline = "offline"  // the built-in engine
	ByCode  = "code"     // the first user who sends a code becomes admin
)

// Platforms with a token.
const (
	Telegram = "telegram"
	Discord  = "discord"
)

// platforms lists them in the order of the questions.
func platforms() []string { return []string{Telegram, Discord} }

// Answers are the answers so far, from flags or the terminal. The zero value of a field is
// not answered.
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

// Account is the bot's account on a platform.
type Account struct {
	Token  Secret
	APIURL string // of a server other than the platform's
}

// account returns the account on a platform. It makes a missing one.
func (a *Answers) account(platform string) *Account {
	if a.Accounts == nil {
		a.Accounts = make(map[string]*Account)
	}
	if a.Accounts[platform] == nil {
		a.Accounts[platform] = &Account{}
	}
	return a.Accounts[platform]
}

// Secret is the answer to a question for a secret: a reference for the file, or the secret
// itself, which gets a file of its own.
type Secret struct {
	Word  string // Keep, None, env:NAME, file:PATH
	Typed core.Secret
}

func (s Secret) given() bool { return s.Word != "" || !s.Typed.IsZero() }

// changes reports whether the answer replaces the secret of the file.
func (s Secret) changes() bool { return s.given() && s.Word != Keep && s.Word != None }

var errSecret = errors.New("is not a place of a secret: write env:NAME, file:PATH, or - to read it from " +
	"standard input (other users of this machine can see a command line)")

// ReadSecret reads the value of a flag, which cannot be a secret itself. "-" reads one line
// by next.
func ReadSecret(value string, next func() (string, error)) (Secret, error) {
	switch {
	case value == "", value == Keep, value == None, isReference(value):
		return Secret{Word: value}, nil
	case value != "-":
		return Secret{}, errSecret
	}
	line, err := next()
	if err != nil {
		return Secret{}, fmt.Errorf("standard input: %w", err)
	}
	line = strings.TrimSpace(line)
	if line == "" {
		return Secret{}, errors.New("standard input has no line for it")
	}
	return Secret{Typed: core.NewSecret(line)}, nil
}

// typedSecret returns the answer to a hidden question.
func typedSecret(answer string) Secret {
	answer = strings.TrimSpace(answer)
	if isReference(answer) {
		return Secret{Word: answer}
	}
	return Secret{Typed: core.NewSecret(answer)}
}

func isReference(text string) bool {
	return strings.HasPrefix(text, "env:") || strings.HasPrefix(text, "file:")
}

// Current is what the configuration file contains already. The zero value is for a missing
// file.
type Current struct {
	Exists   bool
	Persona  string
	Engines  []engine.Config
	Accounts map[string]bool // platforms with a token
	Admins   []string
	Claim    bool
	Access   bool // the file sets who may write in private
	DataDir  string
	Timezone string
	Language string
}
