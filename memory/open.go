package memory

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/loop"
	"synthbot/core/secret"
	"synthbot/memory/bolt"
	"synthbot/memory/postgres"
)

// FileName is the name of the database within the data directory.
const FileName = "synthbot.db"

// Options of a DB. The zero value prunes nothing.
type Options struct {
	Config
	Log   *slog.Logger     // nil: silent
	Clock func() time.Time // nil: time.Now
	// OnFull, if set, is called with true when the disk is full, and with false when
	// writing works again, by one goroutine at a time. It may use the DB.
	OnFull func(bool)
	// OnStuck, if set, is called once if the writer makes no progress on a job for Patience, or on the disk for ten
	// times that. Nothing can be written any more: the process should end. Job is "" if no job is the cause.
	OnStuck   func(job string)
	Patience  time.Duration    // 0: 30 seconds
	BeforeJob func(job string) // nil, or called by the writer before each job, for tests
	SkipCheck bool             // leaves out the check after an unclean stop
	Server    ServerConfig
	// OnFenced, if set, is called once if another process has taken over the server's database, as it may after this
	// one was suspended or cut off. Nothing can be written any more: the process should end. It must not block.
	OnFenced func(error)
	// OnAway, if set, is called with true when the server cannot be reached, and with false when
	// it can again. It must not block.
	OnAway func(bool)
	// OnHint, if set, is called with each text that a process sends by Hint, and with "" when
	// some may have been lost. It must not block.
	OnHint func(string)
	// BesideBot is for a command, which can only read while a bot uses the server's database.
	// Open does not create a missing database: it returns ErrMissing.
	BesideBot  bool
	KeepFormat bool // leaves a database of an older format as it is: then Open returns ErrOlder
	NoSync     bool // does not wait until writes are on the disk, for tests
}

// ServerConfig selects a server's database instead of the file.
type ServerConfig struct {
	URL    secret.Secret `toml:"url" example:"env:DATABASE_URL" doc:"A PostgreSQL database (postgres://user:password@host:5432/database), which stores everything instead of the file in data_dir. Empty: the file."`
	Worker string        `toml:"worker" example:"one" doc:"The name of this process among those that use the database. Default: the host's name."`
	Lease  time.Duration `toml:"lease" default:"10s" min:"2s" max:"5m" doc:"How long after this process was killed or cut off another one may take its place. It must be long enough for a short outage of the network."`
}

// CheckURL returns an error if URL cannot be the address of a database. It connects to nothing.
func (c ServerConfig) CheckURL() error {
	if c.URL.IsZero() {
		return nil
	}
	return postgres.CheckURL(c.URL.Reveal())
}

// Probe checks the server's database and returns findings for an administrator, each fault with its fix. It
// leaves nothing behind.
func (c ServerConfig) Probe(ctx context.Context) ([]core.Finding, error) {
	return postgres.Probe(ctx, c.URL.Reveal())
}

// Errors of Open.
var (
	ErrMissing = errors.New("there is no database yet")
	ErrOlder   = errors.New("the database has an older format; the bot converts it at its next start and keeps a copy")
)

var (
	_ core.Store = (*DB)(nil)
	_ core.Facts = (*DB)(nil)
)

// DB is the open database. Safe for concurrent use.
type DB struct {
	log        *slog.Logger
	clock      func() time.Time
	engine     engine
	queue      *queue
	writer     *writer
	epochs     epochState
	embeds     *embedWorker
	space      *diskSpace
	unreadable unreadable
	salt       []byte // see loadSalt
	pruning    *pruning

	stepTime time.Duration      // of one step of a long change; see changeAll
	stop     context.CancelFunc // ends the background work
	work     sync.WaitGroup
	starting sync.WaitGroup // background work that is done once after the start
}

// Open opens the database in dir, or that of a server, and creates what is missing. Its errors name the file, the
// likely cause and the fix; they may wrap core.ErrLocked or core.ErrDamaged. The caller closes the DB.
func Open(dir string, o Options) (*DB, error) {
	db := newDB(filepath.Join(dir, FileName), o)
	if err := openEngine(db, o); err != nil {
		return nil, err
	}
	err := db.prepare(o)
	switch {
	case db.engine.remote && err == nil:
		err = cmp.Or(db.loadSalt(o.BesideBot), applyEpochs(db))
	case db.engine.remote:
		err = db.engine.withName(err)
	case err != nil:
		err = bolt.OpenError(db.engine.name, err)
	}
	if err != nil {
		return nil, errors.Join(err, db.engine.Close())
	}
	background, stop := context.WithCancel(context.Background())
	db.stop = stop
	db.writer.watch.refused = db.writer.refusedJobs()
	go db.writer.run()
	if !o.BesideBot || !db.engine.remote { // else this is the work of the bot
		startWork(background, db, o)
	}
	return db, nil
}

// startWork starts the background work, which runs until ctx ends.
func startWork(ctx context.Context, db *DB, o Options) {
	db.writer.startWatch(ctx, o)
	db.startCheck(ctx, o)
	db.repeat(ctx, db.space.failures, db.space.step)
	if Shared(db) == nil {
		db.starting.Go(db.continueForgets(ctx))
		startSharedWork(ctx, db)
		return
	}
	db.work.Go(func() {
		err := Shared(db).Claim(ctx, sharedPart, func(ctx context.Context) error {
			startSharedWork(ctx, db)
			loop.Repeat(ctx, nil, func() time.Duration { // another process may die during a Forget
				db.continueForgets(ctx)()
				return recheckPause
			})
			return nil
		})
		if err != nil {
			db.log.Error("background work has stopped", "file", db.engine.name, "err", err)
		}
	})
}

// sharedPart is the part of the background work that one process does for all.
const sharedPart = "memory"

func startSharedWork(ctx context.Context, db *DB) {
	db.repeat(ctx, db.embeds.wake, db.embeds.step)
	db.repeat(ctx, db.pruning.changed, db.pruning.step)
	db.startTraceRemoval(ctx)
}

func openEngine(db *DB, o Options) (err error) {
	if db.engine.remote {
		if _, err := db.engine.dir(); err != nil && !o.BesideBot {
			return err
		}
		server, err := postgres.Open(context.Background(), o.Server.URL.Reveal(), postgres.Options{
			Log: db.log, Worker: o.Server.Worker, Lease: o.Server.Lease, JoinOnWrite: o.BesideBot,
			OnFenced: o.OnFenced, OnAway: o.OnAway, OnHint: o.OnHint,
			OnBarrier: func() error { return applyEpochs(db) },
		})
		if err != nil {
			return err
		}
		db.engine.Engine, db.engine.shared, db.engine.name = server, server, server.Name()
		return nil
	}
	if _, err := os.Stat(db.engine.file); o.BesideBot && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", db.engine.file, ErrMissing)
	}
	db.engine.Engine, err = bolt.Open(db.engine.file, bolt.Options{
		Log: db.log, NoSync: o.NoSync, Scattered: []string{bucketPassageWords},
	})
	return err
}

func (db *DB) repeat(ctx context.Context, wake <-chan struct{}, step func(context.Context) time.Duration) {
	db.work.Go(func() {
		loop.Repeat(ctx, wake, func() time.Duration {
			wait := step(ctx)
			if Shared(db) != nil && (wait < 0 || wait > recheckPause) { // other processes do not wake it
				return recheckPause
			}
			return wait
		})
	})
}

// recheckPause is how often a process looks for work that other processes left.
const recheckPause = 5 * time.Second

// newDB returns a DB whose database is not open yet.
func newDB(name string, o Options) *DB {
	log := cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	db := &DB{log: log, clock: o.Clock, stepTime: maxStepTime}
	db.queue = &queue{wake: make(chan struct{}, 1), ended: make(chan struct{})}
	if db.clock == nil {
		db.clock = time.Now
	}
	db.epochs.forgottenIn, db.epochs.inProgress = make(map[core.Path]uint64), make(map[core.Path]int)
	db.epochs.muted, db.epochs.others = make(map[core.TurnID]muted), make(map[string][]core.Path)
	db.epochs.process, db.epochs.forgets = rand.Text(), make(chan struct{}, 1)
	db.engine.log, db.engine.name, db.engine.file, db.engine.remote = log, name, name, !o.Server.URL.IsZero()
	db.writer = &writer{db: db}
	db.writer.beforeJob = func(_ *tx, j *job) {
		if o.BeforeJob != nil {
			o.BeforeJob(j.name)
		}
	}
	db.embeds = &embedWorker{db: db, wake: make(chan struct{}, 1), embedding: &embedding{end: func() {}}}
	db.unreadable.logged = make(map[string]bool)
	if o.OnFull == nil {
		o.OnFull = func(bool) {}
	}
	db.space = &diskSpace{db: db, onFull: o.OnFull, failures: make(chan struct{}, 1)}
	db.pruning = &pruning{db: db, changed: make(chan struct{}, 1)}
	db.SetConfig(o.Config)
	return db
}

// Close writes the queued jobs, ends the background work and closes the database. Views must have ended. Later
// calls of other methods return core.ErrClosed.
func (db *DB) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), traceTimeout)
	defer cancel()
	db.removeTraces(ctx)
	if !db.queue.close() {
		return nil
	}
	db.stop()
	db.starting.Wait()
	db.work.Wait()
	return db.engine.Close()
}

const schema = 6

// Keys of the meta bucket.
const (
	metaSchema = "schema"
	metaClean  = "clean"  // set if the file was closed properly
	metaTraces = "untidy" // set while the file may contain deleted data of forgotten people
	metaFloor  = "floor"  // the highest number of a place that was forgotten
	metaName   = "name"   // the file's own random name
	metaPruned = "pruned" // when old history was deleted last
)

// prepare creates the buckets of a new database, and upgrades an older format after a backup. It refuses a
// newer format and, with BesideBot, a missing database.
func (db *DB) prepare(o Options) error {
	if !db.engine.remote && !o.KeepFormat {
		removeLeftovers(db)
	}
	version, err := db.writer.readMeta()
	switch {
	case err != nil:
		return err
	case version == 0 && o.BesideBot:
		return ErrMissing
	case version > 0 && version < schema && o.KeepFormat:
		return ErrOlder
	case version > schema:
		text, kept := "run that one", db.engine.file+versionSuffix+strconv.Itoa(schema)
		if _, err := os.Stat(kept); err == nil {
			text += ", or restore " + kept + ", which it kept before it changed the format"
		}
		return fmt.Errorf("its format is version %d, this synthbot knows %d: a newer synthbot wrote it; %s",
			version, schema, text)
	}
	// Unless it writes, a command does not mark a server's database as closed properly.
	db.writer.inUse = db.engine.unclean && !(o.BesideBot && db.engine.remote)
	if db.engine.installation == "" { // it is stored with the next write
		db.engine.installation, db.writer.inUse = rand.Text(), false
	}
	switch {
	case db.engine.upToDate:
		return nil
	case version == 0 || version == schema:
		return db.writer.transact(upgrade)
	}
	backup := db.engine.file + versionSuffix + strconv.Itoa(version)
	err = db.Backup(backup)
	if err == nil && !db.engine.remote { // else the folder was created by the user
		err = bolt.KeepOwner(backup, db.engine.file)
	}
	if err != nil {
		return fmt.Errorf("backup before the change of its format: %w", err)
	}
	db.log.Info("the database's format changes",
		"file", db.engine.name, "from", version, "to", schema, "backup", backup)
	if err := db.writer.transact(upgrade); err != nil {
		return fmt.Errorf("change of its format to version %d: %w; the backup is %s", schema, err, backup)
	}
	db.engine.formerCopy = backup
	return nil
}

// removeLeftovers deletes the copies that interrupted conversions, restores and backups left beside the file: they
// hold what users said.
func removeLeftovers(db *DB) {
	dir := filepath.Dir(db.engine.file)
	for _, pattern := range []string{"." + FileName + ".*", ".restore-*", ".spool-*"} {
		names, _ := filepath.Glob(filepath.Join(dir, pattern)) // it fails with bad patterns only
		for _, name := range names {
			if err := os.RemoveAll(name); err != nil {
				db.log.Warn("a leftover copy cannot be deleted", "file", name, "err", err)
			}
		}
	}
}

// FormerCopy returns the name of the backup that Open made before it changed an older format; "" if it made none.
func FormerCopy(db *DB) string { return db.engine.formerCopy }

// Installation implements core.Store: it returns the database's own random name.
func (db *DB) Installation() string { return db.engine.installation }

// versionSuffix and the version end the name of the backup that an upgrade makes.
const versionSuffix = ".version"

// upgrade converts a file of any older version. Version 1 had no vectors. Version 2 did not mark heads as
// private. Version 3 did not separate words where a script without spaces meets another one. Version 4 writes
// ids and kinds of entries as texts only, which are still read. Version 5 stored each id in its own pair.
func upgrade(t *tx) error {
	for _, name := range buckets() {
		t.fail(name, t.MakeBucket(name))
	}
	meta := t.bucket(bucketMeta)
	version, _ := strconv.Atoi(string(meta.Get([]byte(metaSchema))))
	if version == schema { // its buckets were not right, or another process was faster
		t.db.engine.installation = cmp.Or(string(meta.Get([]byte(metaName))), t.db.engine.installation)
	} else {
		if version < 4 {
			for k, v := range t.bucket(bucketLog).pairs(nil, nil) {
				if path, _, err := parseEntryKey(k); err == nil && isPrivate(v) {
					t.head(placeKey(path)).private = true
				}
			}
			t.deleteBelow(bucketWords, nil)
			for f := range decoded(t, bucketFacts, nil, nil, decodeFact) {
				t.facts().putPostings(&f)
			}
		}
		upgradeIDs(t)
		meta.Put([]byte(metaSchema), []byte(strconv.Itoa(schema)))
	}
	t.fail(bucketFormerIDs, t.DropBucket(bucketFormerIDs))
	return t.err
}

var errNotSynthbot = errors.New("not a database of synthbot")

// readMeta reads the meta bucket, and returns the version of the file's format, 0 if the file is empty.
func (w *writer) readMeta() (version int, err error) {
	err = w.db.view(context.Background(), func(v *view) error {
		meta := v.Bucket(bucketMeta)
		switch {
		case meta == nil && len(v.Buckets()) == 0:
			return nil
		case meta == nil:
			return fmt.Errorf("%w: %w", core.ErrDamaged, errNotSynthbot)
		}
		w.db.engine.unclean = meta.Get([]byte(metaClean)) == nil
		w.db.engine.installation = string(meta.Get([]byte(metaName)))
		floor, _ := strconv.ParseUint(string(meta.Get([]byte(metaFloor))), 10, 64)
		w.db.epochs.raiseFloor(floor)
		version, _ = strconv.Atoi(string(meta.Get([]byte(metaSchema))))
		w.db.engine.upToDate = version == schema && v.Bucket(bucketPassageWords) != nil &&
			v.Bucket(bucketFormerIDs) == nil
		if version < 1 {
			return fmt.Errorf("%w: %w: schema %q", core.ErrDamaged, errNotSynthbot, meta.Get([]byte(metaSchema)))
		}
		return nil
	})
	return version, err
}

// markClean stores that the file was closed properly. The writer calls it last.
func (w *writer) markClean() {
	if !w.inUse {
		return
	}
	err := w.transact(func(t *tx) error {
		t.bucket(bucketMeta).Put([]byte(metaClean), []byte("1"))
		return nil
	})
	if err != nil {
		w.db.log.Error("the database could not be closed properly", "file", w.db.engine.name, "err", err)
	}
}
