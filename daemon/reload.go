package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"synthbot/core/loop"
	"synthbot/core/sorting"
	"synthbot/core/txt"
)

// reloads replaces parts of a running bot, one change at a time.
type reloads struct {
	*Bot
	build func(*Config) (*parts, error) // builds parts, and reuses those in force that did not change

	mu        sync.Mutex     // held during a change
	requested chan struct{}  // holds a token if a reload was requested; nil: the bot cannot reload
	announced chan struct{}  // holds a token if another process has reloaded
	outdated  chan struct{}  // holds a token if the catalogue of actions is out of date
	retiring  sync.WaitGroup // plugins that stop when no turn uses them any more

	postponed atomic.Bool // an outage of the database interrupts the last reload, which is repeated afterwards

	lastRead atomic.Pointer[stamps] // of the files that the last reload read, even if it failed; taken before reading
}

// run makes the requested changes, until the bot begins to stop or, if attended, its first interface ends.
func (r *reloads) run(intake context.Context, l RunOptions) {
	var over <-chan struct{}
	if l.Attended {
		over = r.workers.find(r.InForce().Interfaces[0]).done
	}
	for intake.Err() == nil {
		select {
		case <-l.Reload:
			r.reload(r.Reload)
		case <-r.requested:
			r.reload(r.Reload)
		case <-r.announced:
			r.reload(r.read)
		case <-r.outdated:
			r.mu.Lock()
			r.rebuild()
			r.mu.Unlock()
		case <-over:
			return
		case <-intake.Done():
		}
	}
}

// Reload reads and checks the whole configuration, and then replaces what differs. If the new configuration is
// invalid, the former one stays in force. later lists the keys whose new values apply only after a restart. Other
// processes that use the same store reload, too. Reload blocks while another change is in progress.
func (b *Bot) Reload() (later []string, err error) {
	if later, err = b.reloads.read(); err == nil {
		b.workers.sharing.announceReload(context.Background())
	}
	return later, err
}

// read is Reload for this process alone.
func (r *reloads) read() (later []string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	notifySystemd(r.log, daemon.SdNotifyReloading+"\n"+daemon.SdNotifyMonotonicUsec())
	defer notifySystemd(r.log, daemon.SdNotifyReady)
	r.postponed.Store(false) // this reload replaces it
	old := r.InForce()
	c, err := r.env.loadAgain()
	r.lastRead.Store(&c.stamps)
	if err != nil {
		return nil, err
	}
	if len(c.Enabled) == 0 {
		return nil, c.NoInterface()
	}
	later = old.Config.keepFixed(c)
	r.postponed.Store(true)
	next, err := r.build(c)
	away := r.monitor.away.Load()
	r.postponed.Store(err != nil && away)
	switch {
	case err != nil && away:
		return nil, fmt.Errorf("the database cannot be reached, and the reload is repeated when it can: %w", err)
	case err != nil:
		return nil, err
	}
	r.env.levels.Configure(c.Log.Level, c.roomLevels(), slog.LevelDebug)
	r.log.Info("reloaded", "file", c.File, "keys", later)
	r.replace(old, next)
	return later, nil
}

// AfterRestart lists the changed keys of the file that apply only after a restart; none if the file is invalid.
func (b *Bot) AfterRestart() []string {
	c, err := b.env.loadAgain()
	if err != nil {
		return nil
	}
	return b.InForce().Config.keepFixed(c)
}

// reload calls read, and alerts the admins if the configuration is invalid, or applies only in part.
func (r *reloads) reload(read func() (later []string, err error)) {
	later, err := read()
	if err == nil {
		if len(later) > 0 {
			r.alerts.report("The configuration is in force, except for settings that change only after a restart: " +
				strings.Join(later, ", "))
		}
		return
	}
	c := r.InForce().Config
	since := c.read.Format(time.DateTime)
	r.log.Error("configuration refused, the former one stays in force", "file", c.File, "since", since, "err", err)
	r.alerts.report("The configuration was refused, the one of " + since + " stays in force: " + txt.Line(err.Error()))
}

// replace puts new parts in force, and stops those that are gone. Running turns keep the old ones until they end.
func (r *reloads) replace(old, next *parts) {
	r.putInForce(next)
	for _, i := range old.Interfaces {
		if !slices.Contains(next.Interfaces, i) {
			r.workers.stop(shareKey{i})
			r.workers.stop(i)
		}
	}
	r.startPlugins(old, next)
	var labels []string
	for _, i := range next.Interfaces {
		labels = append(labels, label(i))
	}
	r.alerts.reloaded(next.Engines.Names(), labels)
	drained := r.Turns.Reconfigure(r.turnOptions(next))
	r.startInterfaces(old, next)
	r.retiring.Go(func() {
		drained() // running turns may still need the plugins
		for _, p := range old.runners() {
			if !slices.Contains(next.runners(), p) {
				r.workers.stop(p.Runner)
			}
		}
	})
	old.Engines.Close()
}

// rebuild collects the actions again after those of a plugin, or the rules for actions, have changed. r.mu is held.
func (r *reloads) rebuild() {
	next := *r.InForce()
	next.budget = r.newBudget(&next) // changed settings may have changed it
	if err := next.collectActions(); err != nil {
		r.log.Error("changed actions conflict; the former ones stay in force", "err", err)
		return
	}
	r.parts.Store(&next)
	r.Turns.Reconfigure(r.turnOptions(&next))
	r.log.Info("actions have changed", "actions", len(next.Snapshot.All()))
}

// settingsChanged applies changed settings to turns. If another change is in progress, run applies them after
// it. settingsChanged does not wait, because the other change may wait for the turn that called it.
func (r *reloads) settingsChanged() {
	if !r.mu.TryLock() {
		loop.Notify(r.outdated)
		return
	}
	defer r.mu.Unlock()
	r.rebuild()
}

// adminsChanged applies a changed list of admins: to turns at once, and to interfaces with a reload.
func (r *reloads) adminsChanged() {
	r.settingsChanged()
	loop.Notify(r.requested)
}

// keepFixed copies the values that cannot change while the process runs into next, and lists the keys that differed.
func (c *Config) keepFixed(next *Config) (later []string) {
	fixed := func(e enabled) bool { return e.fixed }
	other := func(e enabled) bool { return !e.fixed }
	same := func(a, b enabled) bool { return a.Name == b.Name && reflect.DeepEqual(a.Own, b.Own) }
	was, is := slices.DeleteFunc(slices.Clone(c.Enabled), other), slices.DeleteFunc(slices.Clone(next.Enabled), other)
	if !slices.EqualFunc(was, is, same) {
		later = append(later, "interfaces: the console")
		next.Enabled = append(slices.DeleteFunc(next.Enabled, fixed), was...)
		sorting.Sort(next.Enabled, func(a, b enabled) int { return strings.Compare(a.Name, b.Name) })
	}
	later = keepValue(later, "bot.data_dir", c.Bot.DataDir, &next.Bot.DataDir)
	later = keepValue(later, "store", c.Store, &next.Store)
	later = keepValue(later, "metrics.listen", c.Metrics, &next.Metrics)
	tools := next.toolAccess()
	later = keepValue(later, "plugins.blueprint.serve.listen", c.toolAccess().Listen, &tools.Listen)
	own := next.Blueprints()
	if own != nil {
		own.Serve = tools
	}
	later = keepValue(later, "log.format", c.Log.Format, &next.Log.Format)
	return keepValue(later, "admin.listen", c.Admin, &next.Admin)
}

// keepValue restores a value, and adds its key to the list if it differed.
func keepValue[T comparable](later []string, key string, was T, is *T) []string {
	if *is != was {
		later = append(later, key)
	}
	*is = was
	return later
}

// watchInterval is the time between two checks. Files are read once they stay the same: editors write in several steps.
const watchInterval = 500 * time.Millisecond

// watch requests a reload whenever a file differs from what the last reload read, until ctx ends.
func (r *reloads) watch(ctx context.Context) {
	var last stamps
	loop.Repeat(ctx, nil, func() time.Duration {
		read, now := r.lastRead.Load(), make(stamps)
		for file := range *read {
			now.add(file)
		}
		settled := now.equal(last)
		if settled && !now.equal(*read) && r.lastRead.CompareAndSwap(read, &now) { // else it was reloaded meanwhile
			loop.Notify(r.requested)
		}
		last = now
		return watchInterval
	})
}

// stamps are the states of files by name. The state of a missing file, or a pipe, is nil.
type stamps map[string]os.FileInfo

// add adds the state of a file, unless it is known.
func (s stamps) add(file string) {
	if _, ok := s[file]; ok {
		return
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode()&os.ModeNamedPipe != 0 { // the times of a pipe change while it is read
		info = nil
	}
	s[file] = info
}

// equal reports whether the files are the same, and have not changed.
func (s stamps) equal(other stamps) bool {
	return maps.EqualFunc(s, other, func(a, b os.FileInfo) bool {
		if a == nil || b == nil {
			return a == b
		}
		return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && a.Mode() == b.Mode()
	})
}
