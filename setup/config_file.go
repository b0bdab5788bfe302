package setup

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"synthbot"
	"synthbot/config"
	"synthbot/daemon"
)

// configFile is the configuration that init writes.
type configFile struct {
	file   string // without symbolic links
	exists bool
	before []byte
	text   *File
	config *daemon.Config
	output
}

// openConfig reads the existing configuration, or else the example.
func openConfig(env *daemon.Env) (*configFile, error) {
	c := &configFile{output: output{w: env.Out}, file: cmp.Or(env.File, env.Getenv("SYNTHBOT_CONFIG"), "config.toml")}
	real, err := filepath.EvalSymlinks(c.file)
	if err == nil {
		c.file = real
	}
	c.before, err = os.ReadFile(c.file)
	text := string(c.before)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		text = synthbot.ExampleConfig()
	case err != nil:
		return nil, daemon.Usagef("%w", err)
	default:
		c.exists = true
	}
	c.config, err = env.Parse(c.file, text)
	if faults, ok := errors.AsType[config.Faults](err); ok && faults[0].Key == "" {
		return nil, err // it is not TOML
	}
	if c.text, err = Open(text); err != nil {
		return nil, daemon.Usagef("%s: %w", c.file, err)
	}
	return c, nil
}

// current returns what the file contains already.
func (c *configFile) current() Current {
	k := Current{Exists: c.exists, Accounts: make(map[string]bool), Servers: make(map[string]string)}
	if !c.exists {
		return k
	}
	b := &c.config.Bot
	k.Persona, k.Engines, k.Claim = c.config.Persona.Path, c.config.Engines, b.Claim != ""
	for _, name := range platforms() {
		if c.text.Has("token", "interfaces", name) {
			k.Accounts[name] = true
		}
		var own struct {
			APIURL string `toml:"api_url"`
		}
		c.config.Interfaces[name].Peek(&own)
		k.Servers[name] = own.APIURL
	}
	for _, a := range b.Admins {
		k.Admins = append(k.Admins, a.String())
	}
	if b.Timezone.Location != nil {
		k.Timezone = b.Timezone.String()
	}
	if c.text.Has("language", "bot") {
		k.Language = string(b.Language)
	}
	k.Access = c.text.Has("private", "access")
	return k
}

// withoutPersona removes the fault of a missing persona that is about to be written.
func withoutPersona(err error, persona string) error {
	faults, ok := errors.AsType[config.Faults](err)
	if !ok || persona == "" {
		return err
	}
	faults = slices.DeleteFunc(slices.Clone(faults), func(f config.Fault) bool { return f.Key == "persona.path" })
	if len(faults) == 0 {
		return nil
	}
	return faults
}

// personaPath returns the path of a persona file in the configuration. It is relative to
// the configuration if the file is below its folder.
func (c *configFile) personaPath(answer string) string {
	special := []string{Keep, BuiltIn, New}
	if !exists(answer) || filepath.IsAbs(answer) || slices.Contains(special, answer) {
		return answer
	}
	full, err1 := filepath.Abs(answer)
	home, err2 := filepath.Abs(filepath.Dir(c.file))
	if err1 != nil || err2 != nil {
		return answer
	}
	inside, err := filepath.Rel(home, full)
	if err == nil && filepath.IsLocal(inside) {
		return inside
	}
	return full
}

// apply writes the files of the changes, and the configuration last.
func (c *configFile) apply(out Changes) error {
	if err := c.writePersona(out); err != nil {
		return err
	}
	if err := c.writeSecrets(out); err != nil {
		return err
	}
	return c.save()
}

// writePersona writes a new persona. It does not overwrite another one.
func (c *configFile) writePersona(out Changes) error {
	if out.Persona == "" {
		return nil
	}
	file := c.config.Beside(out.Persona)
	before, err := os.ReadFile(file)
	switch {
	case err == nil && string(before) == out.Text:
		return nil
	case err == nil:
		return daemon.Usagef("%s exists already and has another content; use it as it is with --persona %s, "+
			"or choose another --persona-name", file, file)
	}
	return c.write(file, []byte(out.Text), 0o644)
}

func (c *configFile) writeSecrets(out Changes) error {
	for _, name := range slices.Sorted(maps.Keys(out.Secrets)) {
		file := c.config.Beside(name)
		secret := []byte(out.Secrets[name].Reveal() + "\n")
		if err := c.backUp(file, secret); err != nil {
			return err
		}
		if err := c.write(file, secret, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// save writes the configuration. A group that could read the former one still can; other users cannot.
func (c *configFile) save() error {
	text := []byte(c.text.String())
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(c.file); err == nil && info.Mode().Perm()&0o007 == 0 {
		mode = info.Mode().Perm()
	}
	if c.exists && bytes.Equal(text, c.before) {
		return os.Chmod(c.file, mode)
	}
	if err := c.backUp(c.file, text); err != nil {
		return err
	}
	return c.write(c.file, text, mode)
}

// output writes files, and prints the name of each.
type output struct {
	w       io.Writer
	dry     bool // writes nothing
	written int  // how many files
}

// backUp copies a file that is about to change.
func (o *output) backUp(path string, next []byte) error {
	before, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && bytes.Equal(before, next) {
		return nil
	}
	if err != nil {
		return err
	}
	return o.write(path+".bak", before, 0o600)
}

func (o *output) write(path string, data []byte, mode fs.FileMode) error {
	if o.dry {
		return o.print("would write", path, mode)
	}
	if err := daemon.WriteFile(path, data, mode); err != nil {
		return err
	}
	o.written++
	return o.print("written", path, mode)
}

func (o *output) print(what, path string, mode fs.FileMode) error {
	line := fmt.Sprintf("%-8s %s", what, path)
	if mode != 0 {
		line += fmt.Sprintf(" (%04o)", mode)
	}
	_, err := fmt.Fprintln(o.w, line)
	return err
}
