package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"synthbot/core"
	"synthbot/daemon"
)

// What `check --online` goes by.
const (
	onlineTime = 40 * time.Second
	leastDisk  = 200 << 20 // bytes that should be free
)

// errOnline is the error after all findings were printed.
var errOnline = errors.New("something needs to be fixed, see above")

// checkOnline asks each platform and engine who we are, tries speech, and looks at the machine.
// It prints one line each, with a fix if one is needed.
func (p *program) checkOnline(ctx context.Context, b *daemon.Bot) error {
	ctx, cancel := context.WithTimeout(ctx, onlineTime)
	defer cancel()
	cfg := b.InForce().Config
	type group struct {
		name string
		look func() []core.Finding
	}
	groups := []group{{"machine", func() []core.Finding { return machine(cfg, p.Getenv) }}}
	for _, i := range b.InForce().Interfaces {
		if prober, ok := i.(core.Prober); ok {
			groups = append(groups, group{i.Name(), func() []core.Finding { return prober.Probe(ctx) }})
		}
	}
	engines := b.InForce().Engines
	groups = append(groups, group{"engine", func() []core.Finding { return daemon.ProbeEngines(ctx, engines) }})
	groups = append(groups, group{"speech", func() []core.Finding { return cfg.Speech.Try(ctx) }})
	found := make([][]core.Finding, len(groups))
	var all sync.WaitGroup
	for i, g := range groups {
		all.Go(func() { found[i] = g.look() })
	}
	all.Wait()
	fatal := false
	for i, g := range groups {
		for _, f := range found[i] {
			fatal = fatal || f.Fatal && f.Fix != ""
			daemon.PrintFinding(p.Out, g.name, f)
		}
	}
	if fatal {
		return errOnline
	}
	return nil
}

// machine looks at what the daemon will run on.
func machine(c *daemon.Config, getenv func(string) string) []core.Finding {
	list := []core.Finding{modeOf(c.File, 0o037, "the configuration may hold secrets; chmod 600 it")}
	files := c.Document.SecretFiles()
	slices.Sort(files)
	for _, file := range slices.Compact(files) {
		list = append(list, modeOf(file, 0o037, "it holds a secret; chmod 600 it"))
	}
	dir, err := c.DataDir(getenv)
	if err != nil {
		return append(list, core.Finding{What: "data_dir", Found: "unknown", Fix: err.Error(), Fatal: true})
	}
	list = append(list, disk(dir))
	if _, err := os.Stat(dir); err == nil {
		list = append(list, modeOf(dir, 0o077, "it holds private talk; chmod 700 it"))
	}
	return append(list, credentials(getenv("CREDENTIALS_DIRECTORY"))...)
}

// modeOf finds fault with a file that others may read.
func modeOf(file string, not os.FileMode, fix string) core.Finding {
	info, err := os.Stat(file)
	if err != nil {
		return core.Finding{What: "mode", Found: file, Fix: err.Error()}
	}
	f := core.Finding{What: "mode", Found: fmt.Sprintf("%s is %04o", filepath.Base(file), info.Mode().Perm())}
	if info.Mode().Perm()&not != 0 {
		f.Fix = fix
	}
	return f
}

// disk finds fault with a disk that is nearly full.
func disk(dir string) core.Finding {
	for dir != "/" && dir != "." {
		if _, err := os.Stat(dir); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return core.Finding{What: "disk", Found: dir, Fix: err.Error()}
	}
	free := s.Bavail * uint64(s.Bsize)
	f := core.Finding{What: "disk", Found: fmt.Sprintf("%d MiB are free", free>>20)}
	if free < leastDisk {
		f.Fix = "make room, or move data_dir"
	}
	return f
}

// credentials lists what systemd hands over.
func credentials(dir string) []core.Finding {
	if dir == "" {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return []core.Finding{{What: "credentials", Found: dir, Fix: err.Error(), Fatal: true}}
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return []core.Finding{{What: "credentials", Found: "from systemd: " + strings.Join(names, ", ")}}
}
