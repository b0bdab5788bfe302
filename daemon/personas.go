package daemon

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	Files  []string // that of the main persona first
	byFile map[string]*persona.Persona
}

// loadPersonas reads every persona that the configuration names.
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

// loadPersona reads a persona file; "" is the built-in persona. Problems become
// faults of the key that names it.
func (c *Config) loadPersona(file string, d *config.Document, at ...any) *persona.Persona {
	if file == "" {
		return persona.Embedded()
	}
	who, err := persona.Load(c.Beside(file))
	if err != nil {
		d.Fault(txt.Line(err.Error()), at...)
		return persona.Embedded()
	}
	return who
}

// personaEditor lets the admin's page edit the persona files that the configuration names, or that admins
// imported there, and no others.
type personaEditor struct{ bot *Bot }

// maxPersona is the largest file that is edited, in bytes.
const maxPersona = 256 << 10

// Files implements adminpage.Personas. A file's ID is what the configuration calls it.
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

// Preview implements adminpage.Personas. A file that is not text is shown as it is in force.
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

// Try implements adminpage.Personas.
func (e personaEditor) Try(
	ctx context.Context, name, text string, talk []adminpage.Exchange,
) (answer, engine string, err error) {
	who, err := e.Preview(name, text)
	if err != nil {
		return "", "", err
	}
	place, err := core.MakePath("page")
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
	a, err := host{e.bot}.Ask(ctx, core.Question{Path: place, Build: build})
	if failed, ok := errors.AsType[*llm.Error](err); ok { // its own words may be anything
		err = errors.New(cmp.Or(failureCause(failed), string(failed.Kind)))
	}
	return a.Text, a.Engine, err
}

// Save implements adminpage.Personas. The file is replaced whole, and the configuration read again.
func (e personaEditor) Save(name, text, was string) error {
	if len(text) > maxPersona {
		return fmt.Errorf("a persona of %d bytes is too large: at most %d", len(text), maxPersona)
	}
	if now, err := e.text(name); err != nil || now != was {
		return errors.New("the file was changed by somebody else meanwhile: open it again, and copy what you wrote")
	}
	if err := e.replace(name, text); err != nil {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			return fmt.Errorf("cannot write the file (%w): let synthbot write in its folder, or edit it by hand", p.Err)
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
