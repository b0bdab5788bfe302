package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"synthbot/config"
	"synthbot/daemon"
	"synthbot/setup"
)

// draft is the file that init writes, in its present state.
type draft struct {
	file    string // where it is, links followed
	there   bool
	before  []byte
	text    *setup.File
	config  *daemon.Config
	written []string
}

// draft reads the configuration that is there, or begins with the example.
func (p *initializer) draft() (*draft, error) {
	d := &draft{file: cmp.Or(p.File, p.Getenv("SYNTHBOT_CONFIG"), "config.toml")}
	if real, err := filepath.EvalSymlinks(d.file); err == nil {
		d.file = real
	}
	var err error
	d.before, err = os.ReadFile(d.file)
	text := string(d.before)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		text = daemon.Page().Example(new(daemon.Config))
	case err != nil:
		return nil, daemon.Usagef("%w", err)
	default:
		d.there = true
	}
	var faults config.Faults
	if d.config, err = p.Parse(d.file, text); errors.As(err, &faults) && faults[0].Key == "" {
		return nil, err // it is not TOML
	}
	if d.text, err = setup.Open(text); err != nil {
		return nil, daemon.Usagef("%s: %w", d.file, err)
	}
	return d, nil
}

// known is what the file says already.
func (d *draft) known() setup.Known {
	k := setup.Known{There: d.there, Accounts: make(map[string]bool)}
	if !d.there {
		return k
	}
	b := &d.config.Bot
	k.Persona, k.Claim, k.DataDir = d.config.Persona.Path, b.Claim != "", b.DataDir
	for _, e := range d.config.Engines {
		known := setup.Engine{Name: e.Name, Provider: e.Provider, Model: e.Model, BaseURL: e.BaseURL}
		k.Engines = append(k.Engines, known)
	}
	for _, name := range []string{setup.Telegram, setup.Discord} {
		if d.text.Has("token", "interfaces", name) {
			k.Accounts[name] = true
		}
	}
	for _, a := range b.Admins {
		k.Admins = append(k.Admins, a.String())
	}
	if b.Timezone.Location != nil {
		k.Timezone = b.Timezone.String()
	}
	if d.text.Has("language", "bot") {
		k.Language = string(b.Language)
	}
	k.Access = d.text.Has("private", "access")
	return k
}

// besides are the faults of a configuration, but for that of a persona that is
// about to be written.
func besides(err error, coming string) error {
	var faults config.Faults
	if !errors.As(err, &faults) || coming == "" {
		return err
	}
	faults = slices.DeleteFunc(slices.Clone(faults), func(f config.Fault) bool { return f.Key == "persona.path" })
	if len(faults) == 0 {
		return nil
	}
	return faults
}

// personaPath is a persona's file as the configuration names it: relative to
// itself, where it lies below.
func (d *draft) personaPath(answer string) string {
	special := []string{setup.Keep, setup.BuiltIn, setup.New}
	if _, err := os.Stat(answer); err != nil || filepath.IsAbs(answer) || slices.Contains(special, answer) {
		return answer
	}
	full, err1 := filepath.Abs(answer)
	home, err2 := filepath.Abs(filepath.Dir(d.file))
	if err1 != nil || err2 != nil {
		return answer
	}
	if inside, err := filepath.Rel(home, full); err == nil && filepath.IsLocal(inside) {
		return inside
	}
	return full
}

// persona writes a new persona; one that is there is not written over.
func (d *draft) persona(out setup.Outcome) error {
	if out.Persona == "" {
		return nil
	}
	file := d.config.Beside(out.Persona)
	before, err := os.ReadFile(file)
	switch {
	case err == nil && string(before) == out.Text:
		return nil
	case err == nil:
		return daemon.Usagef("%s is there already and says something else; take it as it is with --persona %s, "+
			"or choose another --persona-name", file, file)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return d.replace(file, []byte(out.Text), 0o644)
}

// secrets writes each secret into a file of its own.
func (d *draft) secrets(out setup.Outcome) error {
	for _, name := range out.Names() {
		file := d.config.Beside(name)
		secret := []byte(out.Secrets[name].Reveal() + "\n")
		if err := d.keep(file, secret); err != nil {
			return err
		}
		if err := d.replace(file, secret, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// save writes the configuration. Who could read the former one beside its owner,
// as a service's group, still can; others never.
func (d *draft) save() error {
	text := []byte(d.text.String())
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(d.file); err == nil && info.Mode().Perm()&0o007 == 0 {
		mode = info.Mode().Perm()
	}
	if d.there && bytes.Equal(text, d.before) {
		return os.Chmod(d.file, mode)
	}
	if err := d.keep(d.file, text); err != nil {
		return err
	}
	return d.replace(d.file, text, mode)
}

// keep copies a file that is about to be another one.
func (d *draft) keep(file string, next []byte) error {
	before, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && bytes.Equal(before, next) {
		return nil
	}
	if err != nil {
		return err
	}
	return d.replace(file+".bak", before, 0o600)
}

// replace writes a file, and notes that.
func (d *draft) replace(file string, text []byte, mode fs.FileMode) error {
	if err := writeWhole(file, text, mode); err != nil {
		return err
	}
	d.written = append(d.written, fmt.Sprintf("%s (%04o)", file, mode))
	return nil
}

// writeWhole writes a file whole, or not at all.
func writeWhole(file string, text []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".synthbot-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), sameOwner(f, file), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// sameOwner gives a new file the owner of the one that it is to replace.
func sameOwner(f *os.File, former string) error {
	info, err := os.Stat(former)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	was, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 && int(was.Uid) == os.Geteuid() {
		return nil // it is the owner already
	}
	return f.Chown(int(was.Uid), int(was.Gid))
}
