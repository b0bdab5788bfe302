package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"synthbot/core/txt"
	"synthbot/persona"
)

// ImportFolder is the folder of the persona files that admins imported on the page, below that of the database.
const ImportFolder = "personas"

// maxImported is how many persona files are imported at most.
const maxImported = 100

// imports returns the folder of imported persona files.
func (e *Env) imports(c *Config) (string, error) {
	dir, err := c.DataDir(e.Getenv)
	if err != nil {
		return "", err
	}
	return filepath.Abs(filepath.Join(dir, ImportFolder))
}

// withImported returns the personas of the configuration, and those that were imported. What cannot be read is
// logged and left out.
func (e *Env) withImported(c *Config, log *slog.Logger) *personas {
	folder, err := e.imports(c)
	if err != nil {
		return c.Personas // there is no database either
	}
	files, err := os.ReadDir(folder)
	if err != nil || len(files) == 0 {
		return c.Personas
	}
	all := &personas{Main: c.Personas.Main, Files: slices.Clone(c.Personas.Files)}
	all.byFile = maps.Clone(c.Personas.byFile)
	for _, f := range files {
		file := filepath.Join(folder, f.Name())
		if strings.HasPrefix(f.Name(), ".") || all.byFile[file] != nil {
			continue
		}
		who, err := persona.Load(file)
		if err != nil {
			log.Warn("an imported persona cannot be read", "file", file, "err", txt.Line(err.Error()))
			continue
		}
		all.Files, all.byFile[file] = append(all.Files, file), who
	}
	return all
}

// Import implements adminpage.Personas. The file is kept as it is, as one that the configuration names.
func (e personaEditor) Import(name string, data []byte) (id string, err error) {
	name = txt.ClipLine(filepath.Base(name), maxShownName)
	who, err := persona.Parse(name, data)
	if err != nil {
		return "", errors.New(txt.ClipLine(err.Error(), maxFaultText))
	}
	ending := ".toml"
	if bytes.HasPrefix(bytes.TrimLeft(data, "\ufeff \t\r\n"), []byte("{")) {
		ending = ".json"
	}
	if bytes.HasPrefix(data, []byte("\x89PNG")) {
		ending = ".png"
		if _, err := persona.Picture(data); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
	}
	folder, err := e.bot.env.imports(e.bot.InForce().Config)
	if err != nil {
		return "", err
	}
	known := e.bot.InForce().personas
	count := len(known.Files) - len(e.bot.InForce().Config.Personas.Files)
	file := filepath.Join(folder, txt.FileName(who.Name, "persona")+ending)
	_, taken := known.file(who.Name)
	_, missing := os.Stat(file)
	switch {
	case taken || missing == nil:
		return "", fmt.Errorf("there is a persona %s already: remove it first, or give this one another name", who.Name)
	case count >= maxImported:
		return "", fmt.Errorf("%d personas are imported already: remove one first", count)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	if err := WriteFile(file, data, 0o600); err != nil {
		return "", err
	}
	return file, e.reload()
}

// maxFaultText is how many characters say what is wrong with a file.
const maxFaultText = 300

// reload puts files in force that were imported or removed.
func (e personaEditor) reload() error {
	if _, err := e.bot.Reload(); err != nil {
		return fmt.Errorf("it takes effect once the configuration can be read: %s", txt.Line(err.Error()))
	}
	return nil
}

// Remove implements adminpage.Personas. It removes imported files only.
func (e personaEditor) Remove(id string) error {
	if !e.imported(id) {
		return errors.New("the configuration names this file: take it out there")
	}
	if err := os.Remove(id); err != nil {
		return err
	}
	return e.reload()
}

// imported reports whether a file in force was imported.
func (e personaEditor) imported(id string) bool {
	now := e.bot.InForce()
	return now.personas.byFile[id] != nil && now.Config.Personas.byFile[id] == nil
}

// Avatar implements adminpage.Personas.
func (e personaEditor) Avatar(id string) ([]byte, error) {
	now := e.bot.InForce()
	if now.personas.byFile[id] == nil || !isPNG(id) {
		return nil, os.ErrNotExist
	}
	data, err := persona.ReadFile(now.Config.Beside(id))
	if err != nil {
		return nil, err
	}
	return persona.Picture(data)
}

func isPNG(file string) bool { return strings.EqualFold(filepath.Ext(file), ".png") }
