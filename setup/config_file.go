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
	"strings"
	"syscall"

	"synthbot"
	"synthbot/config"
	"synthbot/daemon"
)

type configFile struct {
	file   string // as given: relative names in it start from its folder, also if it is a symbolic link
	exists bool
	before []byte
	text   *File
	config *daemon.Config
	output
}

func openConfig(env *daemon.Env) (*configFile, error) {
	file := cmp.Or(env.File, env.Getenv("SYNTHBOT_CONFIG"), "config.toml")
	_, err := daemon.RegularFile(file)
	if err != nil {
		return nil, err
	}
	c := &configFile{output: output{w: env.Out}, file: file}
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

func (c *configFile) tokenFile(platform string) string {
	var own struct {
		Token string `toml:"token"`
	}
	c.config.Interfaces[platform].Peek(&own)
	name, ok := strings.CutPrefix(own.Token, "file:")
	file := c.config.Beside(name)
	if !ok || !exists(file) {
		return ""
	}
	return file
}

// ignoreMissingPersona removes the fault of a missing persona file if init is about to write one.
func ignoreMissingPersona(err error, persona string) error {
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

// personaPath returns an answered file as the configuration names it: relative to its folder if below that.
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

func (c *configFile) apply(out Changes) error {
	if err := c.writePersona(out); err != nil {
		return err
	}
	if err := c.writeSecrets(out); err != nil {
		return err
	}
	return c.save()
}

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
		return daemon.Usagef("%s exists already and is different; use it unchanged with --persona %s, "+
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

// save writes the configuration. A group that could read the former file still can; other users cannot.
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

// output writes files, and prints the name and the mode of each.
type output struct {
	w       io.Writer
	dry     bool // only prints
	written int  // how many files
}

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

// Repair is a safe change that fixes a problem.
type Repair struct {
	Lines []string // what changes, for users
	Apply func() error
}

// Repairs finds what can be fixed safely in the configuration and beside it: keys that have
// moved, modes of files that hold secrets or private messages, and a missing data directory.
func Repairs(env *daemon.Env) ([]Repair, error) {
	if _, err := daemon.RegularFile(env.ConfigFile()); err != nil {
		return nil, err
	}
	cfg, err := env.MustLoad()
	var faults config.Faults
	if err != nil && !errors.As(err, &faults) {
		return nil, err
	}
	list := append(moveKeys(cfg.File, faults), restrictMode(cfg.File, 0o037)...)
	for _, file := range cfg.Document.SecretFiles() {
		if _, err := daemon.RegularFile(file); err == nil {
			list = append(list, restrictMode(file, 0o037)...)
		}
	}
	isBroken := func(f config.Fault) bool { return f.Key == "" } // then data_dir may be unread
	dir, err := cfg.DataDir(env.Getenv)
	if err != nil || slices.ContainsFunc(faults, isBroken) {
		return list, nil
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		list = append(list, Repair{
			Lines: []string{"mkdir -p -m 700 " + dir}, Apply: func() error { return os.MkdirAll(dir, 0o700) },
		})
	}
	if SharedFolder(dir) == "" {
		list = append(list, restrictMode(dir, 0o077)...)
	}
	return list, nil
}

// restrictMode returns the repair that removes rights from the mode of a file, if it has any of them. If the file
// belongs to the current user and group, the group loses all its rights, too. Another group is the service's.
func restrictMode(file string, rights fs.FileMode) []Repair {
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm()&rights == 0 {
		return nil
	}
	before := info.Mode().Perm()
	owner, ok := info.Sys().(*syscall.Stat_t)
	if ok && int(owner.Uid) == os.Geteuid() && int(owner.Gid) == os.Getegid() {
		rights = 0o077
	}
	return []Repair{{
		Lines: []string{fmt.Sprintf("chmod %o %s (was %o)", before&^rights, file, before)},
		Apply: func() error { return os.Chmod(file, info.Mode()&^rights) },
	}}
}

// moveKeys returns the repair that moves each key with a former name to its present one, unless that is set already.
func moveKeys(file string, faults config.Faults) []Repair {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	f, _ := Open(string(data)) // after an error, it does not change
	lines := []string{file + " (the former one is kept as " + file + ".bak):"}
	for _, fault := range faults {
		if fault.MovedTo != "" {
			lines = append(lines, f.move(fault.Key, fault.MovedTo)...)
		}
	}
	text := f.String()
	if f.err != nil || text == string(data) {
		return nil
	}
	return []Repair{{Lines: lines, Apply: func() error {
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		if err := daemon.WriteFile(file+".bak", data, 0o600); err != nil {
			return err
		}
		return daemon.WriteFile(file, []byte(text), info.Mode().Perm())
	}}}
}

// move moves a key with its value and comments, and drops an emptied table. It returns the changed lines, for users.
func (f *File) move(from, to string) (lines []string) {
	full := strings.Split(to, ".")
	key, table := full[len(full)-1], full[:len(full)-1]
	if f.Has(key, table...) {
		return nil
	}
	for i, former := range f.values() {
		if dotted(former) != from {
			continue
		}
		s := f.statements[i]
		start := f.commentsAbove(i)
		above, literal := f.text[start:s.Start], f.text[s.From:s.To]
		behind := strings.TrimRight(f.text[s.To:s.End], "\r\n")
		lines = append(lines, "  - "+from+" = "+literal+behind, "  + "+to+" = "+literal+behind)
		f.replace(start, s.End, "")
		f.dropEmptyHeader(former[:len(former)-1])
		f.setLiteral(literal+behind, key, table...)
		now := f.find(full)
		if f.err == nil {
			f.replace(f.statements[now].Start, f.statements[now].Start, above)
		}
		break
	}
	return lines
}

// commentsAbove returns the offset of the comments directly above a statement, or else of the statement.
func (f *File) commentsAbove(i int) int {
	for i > 0 && f.statements[i-1].Kind == config.StatementComment && f.statements[i-1].End == f.statements[i].Start {
		i--
	}
	return f.statements[i].Start
}

// dropEmptyHeader removes the header of a table without values. It keeps a comment after the header.
func (f *File) dropEmptyHeader(table []string) {
	for _, i := range f.headers(config.StatementHeader, table) {
		if !f.hasValues(i) {
			s := f.statements[i]
			_, comment, ok := strings.Cut(f.text[s.To:s.End], "#")
			if ok {
				comment = "#" + comment
			}
			f.replace(s.Start, s.End, comment)
			return
		}
	}
}
