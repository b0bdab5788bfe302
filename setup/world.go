package setup

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"synthbot/core"
	"synthbot/core/txt"
)

// World is what the questions ask of the world around.
type World struct {
	Providers []string                   // of engines
	NeedsKey  func(provider string) bool // at its public address
	// Models lists the models of an Ollama.
	Models func(ctx context.Context, base string) ([]string, error)
	// Identify asks a platform whose token this is; nil: tokens are not checked.
	Identify func(ctx context.Context, platform string, a Account, token core.Secret) []core.Finding
	// Resolve is the secret that a reference leads to.
	Resolve func(reference string) (core.Secret, error)
	// Persona is what is wrong with a persona file.
	Persona func(file string) error
	// Zone is what is wrong with the name of a time zone.
	Zone func(name string) error

	Ollama   string // where one would be; "" for the usual address
	OwnZone  string // the machine's; "" if it does not say
	Language string // the user's
	DataDir  string // where the database lives if nobody says
}

// UsualOllama is where an Ollama is by default.
const UsualOllama = "http://127.0.0.1:11434"

// Most of an answer that is read.
const maxAnswer = 4 << 20

// Models lists the models of an Ollama, the one that was changed last first.
func Models(ctx context.Context, client *http.Client, base string) ([]string, error) {
	address := strings.TrimSuffix(strings.TrimRight(base, "/"), "/v1") + "/api/tags"
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("%q is no address; write it as http://host:port", txt.Clip(txt.Line(base), 100))
	}
	response, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("no Ollama: %w", err)
	}
	defer response.Body.Close()
	var list struct {
		Models []struct {
			Name string `json:"name"`
		} `json:"models"`
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil || response.StatusCode != http.StatusOK || json.Unmarshal(data, &list) != nil {
		return nil, fmt.Errorf("no Ollama: something else answers at %s", txt.Clip(txt.Line(base), 100))
	}
	names := make([]string, 0, len(list.Models))
	for _, m := range list.Models {
		names = append(names, txt.Clip(txt.Line(m.Name), 100))
	}
	return names, nil
}

// invitePermissions is what the bot uses on a Discord server: view channels, send
// messages, also in threads, open public threads, embed links, attach files, read
// the history, add reactions.
const invitePermissions = 1<<10 | 1<<11 | 1<<38 | 1<<35 | 1<<14 | 1<<15 | 1<<16 | 1<<6

// Address is where people find the bot of a platform, by what the platform said of
// it and by its token; "" where that does not tell.
func Address(platform string, found []core.Finding, token core.Secret) string {
	switch platform {
	case Telegram:
		for _, f := range found {
			if name, ok := strings.CutPrefix(f.Found, "@"); ok && f.What == "identity" {
				return "https://t.me/" + url.PathEscape(name)
			}
		}
	case Discord:
		first, _, _ := strings.Cut(token.Reveal(), ".") // the bot's id
		id, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(first, "="))
		if err == nil && len(id) > 0 && strings.Trim(string(id), "0123456789") == "" {
			return fmt.Sprintf("https://discord.com/oauth2/authorize?client_id=%s&scope=bot+applications.commands&permissions=%d", id, invitePermissions)
		}
	}
	return ""
}
