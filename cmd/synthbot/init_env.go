package main

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"
	"strings"

	"synthbot/config"
	"synthbot/core"
	"synthbot/core/engine"
	"synthbot/daemon"
	"synthbot/persona"
	"synthbot/setup"
)

// world is what the questions ask of the world around.
func (p *initializer) world(d *draft, unchecked bool) setup.World {
	w := setup.World{
		Providers: engine.Providers(),
		NeedsKey:  needsKey,
		Models: func(ctx context.Context, base string) ([]string, error) {
			ctx, cancel := context.WithTimeout(ctx, probing/5)
			defer cancel()
			return setup.Models(ctx, &http.Client{}, base)
		},
		Resolve: func(reference string) (core.Secret, error) { return p.resolve(d.file, reference) },
		Persona: func(file string) error {
			_, err := persona.Load(cmp.Or(existing(file), d.config.Beside(file)))
			return err
		},
		Zone:    func(name string) error { return new(daemon.Zone).UnmarshalText([]byte(name)) },
		Ollama:  ollamaHost(p.Getenv("OLLAMA_HOST")),
		OwnZone: ownZone(p.Getenv("TZ")), Language: cmp.Or(strings.ToLower(strings.Split(p.locale(), "-")[0]), "en"),
	}
	if dir, err := (&daemon.Config{File: d.file}).DataDir(p.Getenv); err == nil {
		w.DataDir = dir
	}
	if !unchecked {
		w.Identify = p.identify
	}
	return w
}

// existing is the file's name if there is one.
func existing(file string) string {
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	return file
}

// needsKey reports whether a provider wants a key at its public address.
func needsKey(provider string) bool {
	err := engine.Config{Provider: provider, Model: "any"}.Check()
	return err != nil && strings.HasPrefix(err.Error(), "api_key:")
}

// ollamaHost is where Ollama's own variable says that it is; "" for the usual
// place.
func ollamaHost(said string) string {
	switch {
	case said == "":
		return ""
	case !strings.Contains(said, "://"):
		said = "http://" + said
	}
	said = strings.TrimRight(said, "/")
	if said == setup.UsualOllama {
		return ""
	}
	return said
}

// ownZone is the machine's time zone, where it says which.
func ownZone(said string) string {
	link, err := os.Readlink("/etc/localtime")
	if _, name, ok := strings.Cut(link, "/zoneinfo/"); err == nil && ok && said == "" {
		said = name
	}
	if new(daemon.Zone).UnmarshalText([]byte(said)) != nil || said == "Local" {
		return ""
	}
	return said
}

// resolve is the secret that a reference of the configuration leads to.
func (p *initializer) resolve(file, reference string) (core.Secret, error) {
	var one struct {
		Secret core.Secret `toml:"secret" doc:"The secret."`
	}
	err := config.Read(file, []byte("secret = "+setup.Text(reference)), &one, config.Options{Getenv: p.Getenv})
	var faults config.Faults
	if errors.As(err, &faults) {
		return one.Secret, errors.New(faults[0].Text)
	}
	return one.Secret, err
}

// identify asks a platform, by its own driver, who the bot is there.
func (p *initializer) identify(
	ctx context.Context, platform string, a setup.Account, token core.Secret,
) []core.Finding {
	fault := func(err error) []core.Finding {
		return []core.Finding{{What: "identity", Found: "unknown", Fix: oneLine(err.Error()), Fatal: true}}
	}
	i, err := p.Account(platform, a.APIURL, token)
	if err != nil {
		return fault(err)
	}
	prober, ok := i.(core.Prober)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, probing)
	defer cancel()
	return prober.Probe(ctx)
}
