package setup

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"synthbot/config"
	"synthbot/core"
	"synthbot/core/secret"
	"synthbot/core/txt"
	"synthbot/daemon"
	"synthbot/persona"
)

// Probes check files, platforms and engines for the questions.
type Probes struct {
	// Models lists the models of an Ollama server.
	Models func(ctx context.Context, base string) ([]string, error)
	// Identify asks a platform which bot a token belongs to. If it is nil, tokens are not checked.
	Identify func(ctx context.Context, platform string, a Account, token secret.Secret) []core.Finding
	// Resolve returns the secret of a reference.
	Resolve func(reference string) (secret.Secret, error)
	// Persona returns what is wrong with a persona file.
	Persona func(file string) error
}

// Defaults are the usual answers on this machine; a field may be empty.
type Defaults struct {
	Ollama   string // the address of Ollama, if it is not usualOllama
	Timezone string
	Language string
}

const usualOllama = "http://127.0.0.1:11434"

const probeTime = 15 * time.Second // how long platforms and engines may take to answer

const maxAnswer = 4 << 20

func newDefaults(env *daemon.Env) Defaults {
	language, _, _ := strings.Cut(env.Locale(), "-")
	return Defaults{
		Ollama: ollamaHost(env.Getenv("OLLAMA_HOST")), Timezone: machineZone(env.Getenv("TZ")),
		Language: cmp.Or(strings.ToLower(language), "en"),
	}
}

func newProbes(env *daemon.Env, c *configFile) Probes {
	return Probes{
		Models:  ollamaModels,
		Resolve: func(reference string) (secret.Secret, error) { return resolve(env, c.file, reference) },
		Persona: func(file string) error {
			if !exists(file) {
				file = c.config.Beside(file)
			}
			_, err := persona.Load(file)
			return err
		},
		Identify: func(ctx context.Context, platform string, a Account, token secret.Secret) []core.Finding {
			i, err := env.Account(platform, a.APIURL, token)
			if err != nil {
				return []core.Finding{{What: "identity", Found: "unknown", Fix: txt.Line(err.Error()), Fatal: true}}
			}
			prober, ok := i.(core.Prober)
			if !ok {
				return nil
			}
			ctx, cancel := context.WithTimeout(ctx, probeTime)
			defer cancel()
			return prober.Probe(ctx)
		},
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// ollamaHost returns the address in $OLLAMA_HOST; "" for the usual one.
func ollamaHost(host string) string {
	if host == "" {
		return ""
	}
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	host = strings.TrimRight(host, "/")
	if host == usualOllama {
		return ""
	}
	return host
}

// machineZone returns the time zone of $TZ, or else of the machine; "" if it is unknown.
func machineZone(zone string) string {
	zone = strings.TrimPrefix(zone, ":")
	if zone == "" {
		zone, _ = os.Readlink("/etc/localtime")
	}
	if _, name, ok := strings.Cut(zone, "/zoneinfo/"); ok {
		zone = name
	}
	if zone == "Local" || new(daemon.Zone).UnmarshalText([]byte(zone)) != nil {
		return ""
	}
	return zone
}

func resolve(env *daemon.Env, file, reference string) (secret.Secret, error) {
	var one struct {
		Secret secret.Secret `toml:"secret" doc:"The secret."`
	}
	err := config.Read(file, []byte("secret = "+config.Quote(reference)), &one, config.Options{Getenv: env.Getenv})
	if faults, ok := errors.AsType[config.Faults](err); ok {
		err = errors.New(faults[0].Text)
	}
	return one.Secret, err
}

// ollamaModels lists the models of an Ollama server, in its order: the last changed one first.
func ollamaModels(ctx context.Context, base string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime/5)
	defer cancel()
	shown := txt.Clip(txt.Line(base), 100)
	address := strings.TrimSuffix(strings.TrimRight(base, "/"), "/v1") + "/api/tags"
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("%q is not an address; write it as http://host:port", shown)
	}
	response, err := http.DefaultClient.Do(r)
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
		return nil, fmt.Errorf("no Ollama: something else answers at %s", shown)
	}
	names := make([]string, len(list.Models))
	for i, m := range list.Models {
		names[i] = txt.Clip(txt.Line(m.Name), 100)
	}
	return names, nil
}

func canChat(model string) bool { return !strings.Contains(strings.ToLower(model), "embed") }

// invitePermissions are the permissions that the bot uses on a Discord server: view channels, send messages, send
// messages in threads, create public threads, embed links, attach files, read message history, add reactions.
const invitePermissions int64 = 1<<10 | 1<<11 | 1<<38 | 1<<35 | 1<<14 | 1<<15 | 1<<16 | 1<<6

// botAddress returns the link with which users reach or invite the bot; "" if it is unknown.
func botAddress(platform string, found []core.Finding, token secret.Secret) string {
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
			const address = "https://discord.com/oauth2/authorize?client_id=%s&scope=bot+applications.commands"
			return fmt.Sprintf(address+"&permissions=%d", id, invitePermissions)
		}
	}
	return ""
}

// SharedFolder returns what to do about a data directory that other users can enter and whose mode must stay, because
// it has a sticky bit or holds more than the bot's files; "" otherwise.
func SharedFolder(dir string) string {
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return ""
	}
	why := ""
	if info.Mode()&fs.ModeSticky != 0 {
		why = "is for all users"
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		why = "cannot be read"
	}
	for _, e := range entries {
		if why == "" && !daemon.OwnsFile(e.Name()) {
			why = "also holds " + e.Name()
		}
	}
	if why == "" {
		return ""
	}
	return dir + " " + why + ", and other users can enter it; set data_dir in [bot] to a folder of the bot's own"
}

// MissingPrograms returns plugins' programs that are not installed, without paths relative to where they run.
func MissingPrograms(c *daemon.Config) (list []core.Finding) {
	c.Walk(func(s config.Setting) {
		argv, ok := s.Value.Interface().([]string)
		if s.Kind != "program" || !ok || len(argv) == 0 || s.Key[0] != "plugins" {
			return
		}
		relative := strings.Contains(argv[0], "/") && !filepath.IsAbs(argv[0])
		if _, err := exec.LookPath(argv[0]); err != nil && !relative {
			fix := fmt.Sprintf("install it, or set its path in %s", s.Key)
			list = append(list, core.Finding{Found: argv[0] + " was not found", Fix: fix, Fatal: true})
		}
	})
	return list
}
