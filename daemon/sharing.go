package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"synthbot/core"
	"synthbot/core/gate"
	"synthbot/core/loop"
	"synthbot/memory"
)

// sharing divides the work between the processes that use the store: each interface is served by one
// of them, and so is what runs in the background for all. Where there can be one process only, it
// owns everything.
type sharing struct {
	*Bot
	active atomic.Bool   // it has begun to serve
	served sync.Map      // the interfaces that this process serves
	echoes atomic.Uint64 // what this process said, and heard
	noted  *Config       // whose digest is stored
	reload atomic.Uint64 // 1 more than the version of the item that changes with each reload; 0: not read yet
}

const (
	lookAround = 5 * time.Second // after which it is noticed what came without a hint
	leaveTime  = 10 * time.Second
	graceTime  = 2 * time.Second // for turns to finish when another process continues them
)

// Hints to the other processes, each followed by what it is about.
const (
	hintItems = "items " // of a plugin have changed; by the process of the number that follows
	hintEcho  = "echo "  // hints arrive
	hintUsed  = "used "  // by a user, what a limit counts; see sharing.used
)

// database is the database if several processes may use it; nil otherwise.
func (s *sharing) database() memory.Sharing {
	if s.Data.DB == nil {
		return nil
	}
	return memory.Shared(s.Data.DB)
}

// grace is for how long turns may finish when the bot stops.
func (s *sharing) grace(configured time.Duration) time.Duration {
	if s.database() == nil {
		return configured
	}
	workers, err := s.database().Workers(context.Background())
	if err != nil || len(workers) < 2 {
		return configured
	}
	return min(configured, graceTime)
}

// share is the key of the worker that serves an interface while this process owns it.
type share struct{ core.Interface }

// isShared reports whether an interface is served by one process of several: a terminal belongs to
// its own.
func (s *sharing) isShared(name string) bool {
	kind := s.InForce().Config.kinds[name]
	d, ok := findDriver(kind)
	return s.database() != nil && ok && !d.fixed
}

// serves reports whether this process serves an interface.
func (s *sharing) serves(i core.Interface) bool {
	if !s.active.Load() || !s.isShared(i.Name()) {
		return true
	}
	_, ok := s.served.Load(i)
	return ok
}

// start serves an interface, as long as this process owns it. listen begins to, and ends with leave.
func (s *sharing) start(i core.Interface, listen func()) {
	s.active.Store(true)
	if !s.isShared(i.Name()) {
		listen()
		return
	}
	part := s.InForce().Config.kinds[i.Name()] + " " + label(i)
	s.workers.start(s.workers.tools, "share of "+label(i), share{i}, func(ctx context.Context) error {
		return s.database().Own(ctx, part, func(owned context.Context) error {
			s.log.Info("serving", "interface", label(i))
			s.served.Store(i, true)
			s.readUsage() // another one counted what its users used
			listen()
			if err := s.Turns.Gain(owned); err != nil && owned.Err() == nil {
				s.log.Warn("questions of another process do not expire", "interface", label(i), "err", err)
			}
			<-owned.Done()
			if ctx.Err() == nil { // another process is to serve it
				s.leave(i)
			}
			return nil
		})
	})
}

// leave ends the serving of an interface, with what runs in its places.
func (s *sharing) leave(i core.Interface) {
	s.log.Info("leaving to another process", "interface", label(i))
	s.workers.stop(i)
	s.served.Delete(i)
	s.Turns.Leave(leaveTime)
}

// run runs something in the background; if its work is for all processes, while this one owns it.
func (s *sharing) run(ctx context.Context, r runner) error {
	_, alone := r.Runner.(interface{ RunsAlone() })
	if !alone || s.database() == nil {
		return r.Run(ctx)
	}
	return s.database().Own(ctx, r.name, r.Run)
}

// lookAround notices from time to time, until ctx ends, what other processes did for which no hint
// came.
func (s *sharing) lookAround(ctx context.Context) error {
	db := s.database()
	if db == nil {
		return nil
	}
	loop.Repeat(ctx, nil, func() time.Duration {
		if s.echoes.Swap(0) == 0 {
			s.refresh("")
		}
		s.noticeReload(ctx)
		s.noteConfig(ctx)
		s.readUsage()
		s.Turns.Sweep()
		if err := db.Hint(ctx, fmt.Sprint(hintEcho, db.Self())); err != nil && ctx.Err() == nil {
			s.log.Debug("no hint sent", "err", err)
		}
		return lookAround
	})
	return nil
}

// noteConfig stores a digest of the configuration in force, so that it shows if workers have
// different ones.
func (s *sharing) noteConfig(ctx context.Context) {
	c := s.InForce().Config
	if c == s.noted {
		return
	}
	for _, w := range s.list(ctx) {
		if w.ID == s.database().Self() {
			item := core.Item{Key: configKey + w.Name, Version: core.AnyVersion, Value: core.JSON(c.digest())}
			if _, err := s.Data.Items(sharingItems).Put(ctx, item); err == nil {
				s.noted = c
			}
		}
	}
}

// readUsage lets it be noticed what other processes used.
func (s *sharing) readUsage() {
	if l, ok := s.Data.usage.(*usageStore); ok {
		l.readAgain()
	}
}

// hear takes a hint; "": some may have been lost. It returns at once.
func (s *sharing) hear(hint string) {
	if s.InForce().Engines == nil || s.database() == nil {
		return // the bot is not built yet
	}
	self := fmt.Sprint(s.database().Self())
	switch by, isEcho := strings.CutPrefix(hint, hintEcho); {
	case isEcho && by == self:
		s.echoes.Add(1)
		return
	case isEcho:
		return
	}
	if about, ok := strings.CutPrefix(hint, hintUsed); ok {
		s.hearUsed(about)
		return
	}
	name, by, _ := strings.Cut(strings.TrimPrefix(hint, hintItems), " ")
	if by != self {
		go s.refresh(name)
	}
}

// Who counts what users do, beside plugins.
const (
	turnLimits   = "turns"   // what: how many a minute may have
	actionLimits = "actions" // what: the action's name
)

// usedFormat is what follows hintUsed: the number of a process, the name of who counts, what was done,
// and the path of the user.
const usedFormat = "%d %s %q %s"

// used returns a function for those who count, under a name, what users do: it lets the other processes
// count it, too, if they may hear the user at the same time, where an account is divided. It returns at
// once.
func (s *sharing) used(name string) func(by core.Path, what string) {
	return func(by core.Path, what string) {
		db := s.database()
		if db == nil || len(s.InForce().named(by.Interface())) < 2 {
			return
		}
		hint := hintUsed + fmt.Sprintf(usedFormat, db.Self(), name, what, by)
		s.sending.Go(func() { _ = db.Hint(context.Background(), hint) }) // without it, each has a limit of its own
	}
}

// hearUsed counts what a user did in another process.
func (s *sharing) hearUsed(about string) {
	var process int64
	var name, what, user string
	_, err := fmt.Sscanf(about, usedFormat, &process, &name, &what, &user)
	by, err2 := core.ParsePath(user)
	if errors.Join(err, err2) != nil || process == s.database().Self() {
		return
	}
	switch name {
	case turnLimits:
		if perMinute, err := strconv.Atoi(what); err == nil && perMinute > 0 {
			s.Turns.Asked(by, perMinute)
		}
	case actionLimits:
		s.runtime.Used(by, what)
	}
	for _, l := range s.InForce().plugins {
		if counter, ok := l.Plugin.(gate.Counter); ok && l.name == name {
			counter.Used(by, what)
		}
	}
}

// refresh lets what is held in memory of a plugin's items be read again; "": of all.
func (s *sharing) refresh(name string) {
	if name == "" || name == botItems {
		if _, err := s.changes.Reread(context.Background()); err != nil {
			s.log.Warn("settings not read again", "err", err)
		}
		s.reloads.settingsChanged()
	}
	if name == sharingItems {
		s.noticeReload(context.Background())
	}
	for _, r := range s.refreshers(name) {
		r.Refresh()
	}
}

// announceReload lets the other processes read their configurations again, too.
func (s *sharing) announceReload(ctx context.Context) {
	if s.database() == nil {
		return
	}
	item := core.Item{Key: reloadKey, Version: core.AnyVersion, Value: core.JSON(s.database().Self())}
	version, err := s.items(sharingItems).Put(ctx, item)
	if err != nil {
		s.log.Warn("other workers do not reload", "err", err)
		return
	}
	s.reload.Store(version + 1)
}

// noticeReload requests a reload if another process has read its configuration again.
func (s *sharing) noticeReload(ctx context.Context) {
	item, _, err := s.Data.Items(sharingItems).Get(ctx, core.Path{}, reloadKey)
	if err != nil {
		return // until the next look around
	}
	version := item.Version + 1 // above 0
	before := s.reload.Swap(version)
	if before != 0 && before < version {
		notify(s.reloads.heard)
	}
}

// refreshers are the plugins that hold something in memory of what a plugin keeps; "": of all.
func (s *sharing) refreshers(name string) (all []core.Refresher) {
	for _, l := range s.InForce().plugins {
		r, ok := l.Plugin.(core.Refresher)
		if ok && (name == "" || name == l.name) {
			all = append(all, r)
		}
	}
	return all
}

// Names under which the bot itself keeps items.
const (
	botItems     = "bot"
	sharingItems = "workers"
	reloadKey    = "reload"
	configKey    = "config " // with the name of a worker behind it
)

// items returns what a plugin keeps. Other processes learn when it changes.
func (s *sharing) items(name string) core.Items {
	items := s.Data.Items(name)
	if s.database() == nil {
		return items
	}
	return &sharedItems{items, s, name}
}

// sharedItems are items of which other processes may hold copies.
type sharedItems struct {
	core.Items
	*sharing
	name string
}

// Put implements core.Items.
func (i *sharedItems) Put(ctx context.Context, item core.Item) (uint64, error) {
	version, err := i.Items.Put(ctx, item)
	i.changed(ctx, err)
	return version, err
}

// PutAll implements core.Items.
func (i *sharedItems) PutAll(ctx context.Context, all ...core.Item) error {
	err := i.Items.PutAll(ctx, all...)
	i.changed(ctx, err)
	return err
}

func (i *sharedItems) changed(ctx context.Context, err error) {
	own := i.name == botItems || i.name == sharingItems
	if err != nil || !own && len(i.refreshers(i.name)) == 0 {
		return
	}
	db := i.database()
	_ = db.Hint(context.WithoutCancel(ctx), fmt.Sprint(hintItems, i.name, " ", db.Self())) // else they look around
}

// elsewhere is how an interface is that another process serves.
const elsewhere = "another worker serves it"

// list lists the processes that use the store; none if there can be one only, or if the store does
// not answer.
func (s *sharing) list(ctx context.Context) []memory.Worker {
	db := s.database()
	if db == nil {
		return nil
	}
	all, err := db.Workers(ctx)
	if err != nil {
		s.log.Warn("workers not listed", "err", err)
	}
	return all
}

// workerLines says of each process that uses the store what it serves, and for how long it may.
func (s *sharing) workerLines(ctx context.Context) (lines []string) {
	own := core.JSON(s.InForce().Config.digest())
	for _, w := range s.list(ctx) {
		item, ok, err := s.Data.Items(sharingItems).Get(ctx, core.Path{}, configKey+w.Name)
		switch {
		case w.ID == s.database().Self():
			w.Name += " (this one)"
		case err == nil && ok && !bytes.Equal(item.Value, own):
			w.Name += " (with another configuration)"
		}
		lines = append(lines, workerLine(w))
	}
	return lines
}

// workerLine says of a worker what it serves, and for how long it may.
func workerLine(w memory.Worker) string {
	lease := "its lease is over"
	if w.Lease > 0 {
		lease = fmt.Sprintf("lease for %v more", w.Lease.Round(time.Second))
	}
	parts := "nothing"
	if len(w.Parts) > 0 {
		parts = strings.Join(w.Parts, ", ")
	}
	return fmt.Sprintf("worker %s, %s: %s", w.Name, lease, parts)
}
