package daemon

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	adminpage "synthbot/admin/page"
	"synthbot/config"
	"synthbot/core"
	"synthbot/core/llm"
	"synthbot/core/loop"
	"synthbot/core/txt"
	"synthbot/persona"
)

type personas struct {
	Main   *persona.Persona
	Files  []string // the main persona's first
	byFile map[string]*persona.Persona
}

func (c *Config) loadPersonas(d *config.Document) {
	main := c.Persona.Path
	a := &personas{Files: []string{main}, byFile: make(map[string]*persona.Persona)}
	a.Main = c.loadPersona(main, d, "persona", "path")
	a.byFile[main] = a.Main
	for i := range c.Overrides {
		file := c.Overrides[i].personaFile()
		if file != "" && a.byFile[file] == nil {
			a.Files = append(a.Files, file)
			a.byFile[file] = c.loadPersona(file, d, "override", i, "persona")
		}
	}
	slices.Sort(a.Files[1:])
	c.Personas = a
}

func (a *personas) file(name string) (file string, ok bool) {
	for _, file := range a.Files {
		if strings.EqualFold(name, a.byFile[file].Name) {
			return file, true
		}
	}
	return "", false
}

func (a *personas) known() (names []string) {
	for _, file := range a.Files {
		names = append(names, a.byFile[file].Name)
	}
	return slices.Compact(names)
}

// loadPersona reads a persona file; "" is the built-in persona. A problem becomes a fault at the key.
func (c *Config) loadPersona(file string, d *config.Document, at ...any) *persona.Persona {
	if file == "" {
		return persona.Embedded()
	}
	if c.stamps != nil {
		c.stamps.add(c.Beside(file))
	}
	who, err := persona.Load(c.Beside(file))
	if err != nil {
		d.Fault(txt.Line(err.Error()), at...)
		return persona.Embedded()
	}
	return who
}

// personaEditor implements adminpage.Personas for the files that the configuration names or that were imported.
type personaEditor struct{ bot *Bot }

const maxPersona = 256 << 10 // bytes of the largest file that is edited

// Files lists all persona files. A file's ID is its name in the configuration, or the path of an import.
func (e personaEditor) Files() (list []adminpage.File) {
	c := e.bot.InForce().personas
	for _, name := range c.Files {
		f := adminpage.File{ID: name, Name: c.byFile[name].Name, Path: cmp.Or(name, "built in")}
		f.Imported, f.Avatar = e.imported(name), isPNG(name)
		text, err := e.text(name)
		f.Text, f.Editable = text, err == nil
		list = append(list, f)
	}
	return list
}

// text reads a persona file. Character cards and the built-in persona are not text.
func (e personaEditor) text(name string) (string, error) {
	raw, err := os.ReadFile(e.bot.InForce().Config.Beside(name))
	if err != nil {
		return "", err
	}
	if len(raw) > maxPersona || !utf8.Valid(raw) || bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		return "", errors.New("is not a text that can be edited here")
	}
	return strings.ReplaceAll(string(raw), "\r\n", "\n"), nil
}

// Preview returns the persona of a text, or the one in force for a file that is not text.
func (e personaEditor) Preview(name, text string) (core.Persona, error) {
	current := e.bot.InForce().personas.byFile[name]
	if _, err := e.text(name); current != nil && text == "" && err != nil {
		return current.For(""), nil
	}
	who, err := persona.Parse(filepath.Base(name), []byte(text))
	if err != nil {
		return core.Persona{}, err
	}
	return who.For(""), nil
}

func (e personaEditor) Try(
	ctx context.Context, name, text string, talk []adminpage.Exchange,
) (answer, engine string, err error) {
	who, err := e.Preview(name, text)
	if err != nil {
		return "", "", err
	}
	r := llm.Request{System: []string{who.Text}}
	if who.Dialogue != "" {
		r.System = append(r.System, who.Dialogue)
	}
	for i, x := range talk {
		r.Messages = append(r.Messages, llm.Utterance{Role: llm.RoleUser, Text: x.Said})
		if i+1 < len(talk) {
			r.Messages = append(r.Messages, llm.Utterance{Role: llm.RoleModel, Text: x.Answer})
		}
	}
	build := func(llm.Limits) (llm.Request, error) { return r, nil }
	a, err := host{e.bot}.Ask(ctx, core.Question{Path: core.MustPath("page"), Build: build})
	if failed, ok := errors.AsType[*llm.Error](err); ok { // the error text may quote the prompt
		err = errors.New(cmp.Or(failureCause(failed), string(failed.Kind)))
	}
	return a.Text, a.Engine, err
}

// Save replaces the file, and requests a reload.
func (e personaEditor) Save(name, text, was string) error {
	if len(text) > maxPersona {
		return fmt.Errorf("a persona of %d bytes is too large: at most %d", len(text), maxPersona)
	}
	if now, err := e.text(name); err != nil || now != was {
		return errors.New("the file was changed meanwhile: copy what you wrote, and open it again")
	}
	if err := e.replace(name, text); err != nil {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			const text = "cannot write the file (%w): allow synthbot to write in its folder, or edit it by hand"
			return fmt.Errorf(text, p.Err)
		}
		return err
	}
	loop.Notify(e.bot.reloads.requested)
	return nil
}

func (e personaEditor) replace(name, text string) error {
	file, err := filepath.EvalSymlinks(e.bot.InForce().Config.Beside(name))
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	ours := func(*os.File, string) error { return nil }
	return writeFile(file, []byte(text), info.Mode().Perm(), ours)
}

// ImportFolder is the folder for persona files that admins import on the page, inside the data directory.
const ImportFolder = "personas"

const maxImported = 100

func (e *Env) imports(c *Config) (string, error) {
	dir, err := c.DataDir(e.Getenv)
	if err != nil {
		return "", err
	}
	return filepath.Abs(filepath.Join(dir, ImportFolder))
}

// withImported adds the imported personas to those of the configuration. It logs and leaves out unreadable files.
func (e *Env) withImported(c *Config, log *slog.Logger) *personas {
	folder, err := e.imports(c)
	if err != nil {
		return c.Personas // without a data directory there are no imports
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

// Import stores the file unchanged, and puts its persona in force.
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
	e.reload()
	return file, nil
}

const maxFaultText = 300 // characters of a parse error that are shown

// reload puts imported or removed files in force, without reading the configuration, which may be invalid now.
func (e personaEditor) reload() {
	r := e.bot.reloads
	r.mu.Lock()
	next := *r.InForce()
	next.personas = r.env.withImported(next.Config, r.log)
	r.parts.Store(&next)
	r.rebuild()
	r.mu.Unlock()
	r.workers.sharing.announceReload(context.Background())
}

// Remove removes imported files only.
func (e personaEditor) Remove(id string) error {
	if !e.imported(id) {
		return errors.New("the configuration names this file: remove it there")
	}
	if err := os.Remove(id); err != nil {
		return err
	}
	e.reload()
	return nil
}

func (e personaEditor) imported(id string) bool {
	now := e.bot.InForce()
	return now.personas.byFile[id] != nil && now.Config.Personas.byFile[id] == nil
}

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
