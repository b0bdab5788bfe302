package daemon

import (
	"cmp"
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
	"synthbot/core/values"
	"synthbot/memory"
)

// sharing divides the work among the processes of one store: one serves each interface, and one does each piece of
// background work that must not run twice. If the store allows only one process, that one does everything.
type sharing struct {
	*Bot
	active atomic.Bool   // an interface was started
	served sync.Map      // the interfaces that this process serves
	echoes atomic.Uint64 // this process's own echo hints that it received since the last poll
	stored *Config       // the configuration whose digest was stored last
	reload atomic.Uint64 // the version of the item at reloadKey, plus 1; 0: not read yet
}

const (
	pollInterval = 5 * time.Second  // how often poll looks for changes by other processes, in case hints get lost
	handoverTime = 10 * time.Second // how long turns may take to finish when another process takes over an interface
	graceTime    = 2 * time.Second  // the same when the bot stops and another process can continue them
)

// Prefixes of hints to the other processes.
const (
	hintItems = "items " // a plugin's items have changed; the name of the plugin and the number of the process follow
	hintEcho  = "echo "  // tests whether hints arrive; the number of the process follows
	hintUsed  = "used "  // a user did something that a limit counts; see usedFormat
	hintGone  = "gone "  // a user or a place was forgotten; the number of the process and the path follow
)

// database returns the database if several processes can use it; nil otherwise.
func (s *sharing) database() memory.Sharing {
	if s.Data.DB == nil {
		return nil
	}
	return memory.Shared(s.Data.DB)
}

// grace returns how long turns may take to finish when the bot stops: less if another process continues them.
func (s *sharing) grace(configured time.Duration) time.Duration {
	if len(s.processes(context.Background())) < 2 {
		return configured
	}
	return min(configured, graceTime)
}

// shareKey is the key of the worker that serves an interface whenever this process owns it.
type shareKey struct{ core.Interface }

// isShared reports whether other processes can serve an interface. They cannot serve this process's terminal.
func (s *sharing) isShared(name string) bool {
	d, ok := findDriver(s.InForce().Config.kinds[name])
	return s.database() != nil && ok && !d.fixed
}

func (s *sharing) serves(i core.Interface) bool {
	if !s.active.Load() || !s.isShared(i.Name()) {
		return true
	}
	_, ok := s.served.Load(i)
	return ok
}

// start serves an interface whenever this process owns it. listen must return at once. stopServing ends that.
func (s *sharing) start(i core.Interface, listen func()) {
	s.active.Store(true)
	if !s.isShared(i.Name()) {
		listen()
		return
	}
	part := s.InForce().Config.kinds[i.Name()] + " " + label(i)
	s.workers.start(s.workers.tools, "share of "+label(i), shareKey{i}, func(ctx context.Context) error {
		return s.database().Claim(ctx, part, func(owned context.Context) error {
			s.log.Info("serving", "interface", label(i))
			s.served.Store(i, true)
			s.Data.usage.invalidate() // another process counted the usage until now
			listen()
			loop.Repeat(owned, nil, func() time.Duration { // blocks until another process is to serve it
				err := s.Turns.TakeOver(owned)
				if err == nil {
					return -1
				}
				s.log.Warn("turns of the former worker not taken over yet", "interface", label(i), "err", err)
				return pollInterval
			})
			if ctx.Err() == nil {
				s.stopServing(i)
			}
			return nil
		})
	})
}

// stopServing stops serving an interface, and waits up to handoverTime for its running turns.
func (s *sharing) stopServing(i core.Interface) {
	s.log.Info("handing over to another process", "interface", label(i))
	s.workers.stop(i)
	s.served.Delete(i)
	s.Turns.Leave(handoverTime)
}

// run runs background work. Work that only one process may do runs only while this process owns it.
func (s *sharing) run(ctx context.Context, r runner) error {
	_, alone := r.Runner.(interface{ RunsAlone() })
	if !alone || s.database() == nil {
		return r.Run(ctx)
	}
	return s.database().Claim(ctx, r.name, r.Run)
}

// poll looks for changes by other processes until ctx ends, in case hints were lost.
func (s *sharing) poll(ctx context.Context) error {
	db := s.database()
	if db == nil {
		return nil
	}
	loop.Repeat(ctx, nil, func() time.Duration {
		if s.echoes.Swap(0) == 0 {
			s.refresh("")
		}
		s.checkReload(ctx)
		s.storeDigest(ctx)
		s.Data.usage.invalidate()
		s.Turns.Sweep()
		if err := db.Hint(ctx, fmt.Sprint(hintEcho, db.Self())); err != nil && ctx.Err() == nil {
			s.log.Debug("hint not sent", "err", err)
		}
		return pollInterval
	})
	return nil
}

// storeDigest stores a digest of the configuration, so that /status can show that workers have different ones.
func (s *sharing) storeDigest(ctx context.Context) {
	c := s.InForce().Config
	if c == s.stored {
		return
	}
	for _, w := range s.processes(ctx) {
		if w.ID == s.database().Self() {
			items := s.Data.Items(sharingItems)
			if values.Put(ctx, items, core.Path{}, configKey+w.Name, c.digest) == nil {
				s.stored = c
			}
		}
	}
}

// handleHint handles a hint from a process; "" means that some may have been lost. It does not block.
func (s *sharing) handleHint(hint string) {
	if s.InForce().Engines == nil || s.database() == nil {
		return // the bot is not built yet
	}
	self := fmt.Sprint(s.database().Self())
	about, isUsed := strings.CutPrefix(hint, hintUsed)
	gone, isGone := strings.CutPrefix(hint, hintGone)
	name, by, _ := strings.Cut(strings.TrimPrefix(hint, hintItems), " ")
	switch {
	case hint == hintEcho+self:
		s.echoes.Add(1)
	case strings.HasPrefix(hint, hintEcho): // of another process
	case isUsed:
		s.handleUsed(about)
	case isGone:
		s.handleGone(gone)
	case by != self:
		go s.refresh(name)
	}
}

// Names of counters, besides those of plugins, and what the argument what holds for each.
const (
	turnLimits   = "turns"   // counts turns; what is the limit per minute
	actionLimits = "actions" // counts actions; what is the action's name
)

// usedFormat follows hintUsed: the number of the process, the counter, what the user did, and the path of the user.
const usedFormat = "%d %s %q %s"

// used returns a function that a counter calls when a user did something. If the interface has several parts, other
// processes count that, too: they may receive messages of the same user. It does not block.
func (s *sharing) used(name string) func(by core.Path, what string) {
	return func(by core.Path, what string) {
		db := s.database()
		if db == nil || len(s.InForce().interfacesNamed(by.Interface())) < 2 {
			return
		}
		hint := hintUsed + fmt.Sprintf(usedFormat, db.Self(), name, what, by)
		s.sending.Go(func() { _ = db.Hint(context.Background(), hint) }) // if it gets lost, the limit is looser
	}
}

func (s *sharing) forgotten(ctx context.Context, path core.Path) {
	db := s.database()
	if db == nil {
		return
	}
	if err := db.Hint(ctx, fmt.Sprint(hintGone, db.Self(), " ", path)); err != nil {
		s.log.Warn("other processes may show what was forgotten until it is displaced", "err", err)
	}
}

func (s *sharing) handleGone(about string) {
	process, text, _ := strings.Cut(about, " ")
	path, err := core.ParsePath(text)
	if process != fmt.Sprint(s.database().Self()) && (err == nil || text == "") {
		go s.PersonalData().dropFromMemory(path)
	}
}

func (s *sharing) handleUsed(about string) {
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
	for plugin, counter := range pluginsWith[gate.Counter](s.InForce()) {
		if plugin == name {
			counter.Used(by, what)
		}
	}
}

// refresh makes a plugin, or the bot itself, read its cached items again; "" means all of them.
func (s *sharing) refresh(name string) {
	if name == "" || name == botItems {
		if _, err := s.changes.Reread(context.Background()); err != nil {
			s.log.Warn("changed settings not read", "err", err)
		}
		s.reloads.settingsChanged()
	}
	if name == sharingItems {
		s.checkReload(context.Background())
	}
	for _, r := range s.refreshers(name) {
		r.Refresh()
	}
}

func (s *sharing) announceReload(ctx context.Context) {
	if s.database() == nil {
		return
	}
	version, err := s.items(sharingItems).Put(ctx, values.New(core.Path{}, reloadKey, s.database().Self()))
	if err != nil {
		s.log.Warn("other workers not notified of the reload", "err", err)
		return
	}
	s.reload.Store(version + 1)
}

// checkReload requests a reload if another process has reloaded its configuration.
func (s *sharing) checkReload(ctx context.Context) {
	item, _, err := s.Data.Items(sharingItems).Get(ctx, core.Path{}, reloadKey)
	if err != nil {
		return // the next poll tries again
	}
	version := item.Version + 1 // 0 means that it was not read yet
	before := s.reload.Swap(version)
	if before != 0 && before < version {
		loop.Notify(s.reloads.announced)
	}
}

// refreshers returns the plugins that cache items, or only the one with a name.
func (s *sharing) refreshers(name string) (all []core.Refresher) {
	for plugin, r := range pluginsWith[core.Refresher](s.InForce()) {
		if name == "" || name == plugin {
			all = append(all, r)
		}
	}
	return all
}

// Names and keys of the bot's own items.
const (
	botItems     = "bot"
	sharingItems = "workers"
	reloadKey    = "reload"
	configKey    = "config " // the name of a worker follows
)

// items returns the items of a plugin. Other processes are notified of changes.
func (s *sharing) items(name string) core.Items {
	items := s.Data.Items(name)
	if s.database() == nil {
		return items
	}
	return &sharedItems{items, s, name}
}

// sharedItems are items that other processes may have cached.
type sharedItems struct {
	core.Items
	*sharing
	name string
}

func (i *sharedItems) Put(ctx context.Context, item core.Item) (uint64, error) {
	version, err := i.Items.Put(ctx, item)
	i.changed(ctx, err)
	return version, err
}

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
	hint := fmt.Sprint(hintItems, i.name, " ", db.Self())
	_ = db.Hint(context.WithoutCancel(ctx), hint) // if it gets lost, poll finds the change
}

const elsewhere = "another worker serves it" // the state of an interface

// processes lists the processes that use the store; none if it allows only one, or does not answer.
func (s *sharing) processes(ctx context.Context) []memory.Worker {
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

func (s *sharing) workerLines(ctx context.Context) (lines []string) {
	own, items := s.InForce().Config.digest, s.Data.Items(sharingItems)
	for _, w := range s.processes(ctx) {
		digest, ok, err := values.Get[string](ctx, items, core.Path{}, configKey+w.Name)
		switch {
		case w.ID == s.database().Self():
			w.Name += " (this one)"
		case err == nil && ok && digest != own:
			w.Name += " (with another configuration)"
		}
		lease := "lease expired"
		if w.Lease > 0 {
			lease = fmt.Sprintf("lease for %v more", w.Lease.Round(time.Second))
		}
		parts := cmp.Or(strings.Join(w.Parts, ", "), "nothing")
		lines = append(lines, fmt.Sprintf("worker %s, %s: %s", w.Name, lease, parts))
	}
	return lines
}
