package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"synthbot/config"
	"synthbot/daemon"
)

// Repair is a change that fixes something safely.
type Repair struct {
	Lines []string // what changes, for users
	Apply func() error
}

// Repairs finds what can be fixed safely in the configuration and beside it: keys that have
// moved, modes of files that hold secrets or private talk, and a missing data directory.
func Repairs(env *daemon.Env) ([]Repair, error) {
	cfg, err := env.MustLoad()
	var faults config.Faults
	if err != nil && !errors.As(err, &faults) {
		return nil, err
	}
	var list []Repair
	if moved, ok := moveKeys(cfg.File, faults); ok {
		list = append(list, moved)
	}
	list = append(list, tighten(cfg.File, 0o037)...)
	if cfg.Document != nil {
		for _, file := range cfg.Document.SecretFiles() {
			list = append(list, tighten(file, 0o037)...)
		}
	}
	isBroken := func(f config.Fault) bool { return f.Key == "" } // it may name another directory
	dir, err := cfg.DataDir(env.Getenv)
	if err != nil || slices.ContainsFunc(faults, isBroken) {
		return list, nil
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		list = append(list, Repair{
			Lines: []string{"mkdir -p -m 700 " + dir}, Apply: func() error { return os.MkdirAll(dir, 0o700) },
		})
	}
	return append(list, tighten(dir, 0o077)...), nil
}

// tighten takes rights to a file away from others. Of a file that others may read, our own group loses
// them, too; a group that the owner is not in is the service's.
func tighten(file string, rights fs.FileMode) []Repair {
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
		Apply: func() error { return os.Chmod(file, before&^rights) },
	}}
}

// moveKeys moves each key with a former name to its name today, unless that is set already. ok is
// false if there is nothing to move.
func moveKeys(file string, faults config.Faults) (r Repair, ok bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return r, false
	}
	f, err := Open(string(data))
	if err != nil {
		return r, false
	}
	for _, fault := range faults {
		if fault.MovedTo == "" {
			continue
		}
		r.Lines = append(r.Lines, f.move(fault.Key, fault.MovedTo)...)
	}
	text := f.String()
	if f.err != nil || text == string(data) {
		return r, false
	}
	r.Lines = slices.Insert(r.Lines, 0, file+" (the former one is kept as "+file+".bak):")
	r.Apply = func() error {
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		mode := info.Mode().Perm()
		return errors.Join(daemon.WriteFile(file+".bak", data, 0o600), daemon.WriteFile(file, []byte(text), mode))
	}
	return r, true
}

// move moves a key, with its value and its comments, and removes a header that nothing follows any more.
// It returns the lines that disappear and appear.
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

// commentsAbove returns where the comments directly above a statement begin, or else the statement.
func (f *File) commentsAbove(i int) int {
	for i > 0 && f.statements[i-1].Kind == config.StatementComment && f.statements[i-1].End == f.statements[i].Start {
		i--
	}
	return f.statements[i].Start
}

// dropEmptyHeader removes the header of a table that has no values. A comment behind it stays.
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
