package plugintest

import (
	"context"
	"errors"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/command"
	"synthbot/core/hint"
	"synthbot/core/recon"
	"synthbot/core/turn"
	"synthbot/core/watch"
	"synthbot/memory"
)

// life is a run of the bot, from a start to a stop.
type life struct {
	db      *database
	turns   *turn.Turns
	options turn.Options
	runtime *action.Runtime
	plugins []core.Plugin // the script's
	all     []core.Plugin // and the rooms
	changed chan struct{}
	stop    func() error
}

// inbox passes events of plugins to the turns, once these exist.
type inbox struct {
	ready chan struct{}
	life  *life
}

// Receive implements core.Inbox.
func (i inbox) Receive(ctx context.Context, events ...core.Event) error {
	select {
	case <-i.ready:
		return i.life.turns.InternalInbox().Receive(ctx, events...)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// start begins a life.
func (s *Script) start() {
	s.t.Helper()
	s.lived = true
	db, err := memory.Open(s.dir, memory.Options{Clock: s.clock.now, Log: s.log, NoSync: true})
	if err != nil {
		s.Fatalf("%v", err)
	}
	l := &life{db: &database{DB: db, stir: s.poke}, changed: make(chan struct{}, 1)}
	s.world = l
	in := inbox{make(chan struct{}), l}
	if err := s.populate(l, in); err != nil {
		s.world = nil
		s.Fatalf("%v", errors.Join(err, db.Close()))
	}
	l.runtime = action.NewRuntime(action.Options{Clock: s.Now, Log: s.log})
	if l.options, err = s.options(l); err != nil {
		s.world = nil
		s.Fatalf("%v", errors.Join(err, db.Close()))
	}
	l.turns = turn.New(l.options)
	close(in.ready)
	l.stop = s.run(l)
	s.settle()
}

// populate makes the plugins.
func (s *Script) populate(l *life, in core.Inbox) error {
	for _, room := range s.rooms {
		l.all = append(l.all, room)
	}
	for _, b := range s.plan.builders {
		t := s.expand(string(table(s.archive, b.name, len(s.plan.builders) == 1)))
		p, err := b.make(s.host(l, b.name, in), []byte(t), s.Var)
		if err == nil {
			err = checkName(p, b.name)
		}
		if err != nil {
			return err
		}
		l.plugins, l.all = append(l.plugins, p), append(l.all, p)
	}
	return nil
}

func (s *Script) host(l *life, name string, in core.Inbox) core.Host {
	h := core.Host{
		Name: name, Log: s.log.With("plugin", name), Clock: s.Now, Language: s.language,
		Items: items{l.db, name}, Zones: items{l.db, "zones"}, Facts: l.db, Passages: memory.Passages(l.db.DB), Inbox: in, Reader: l.db, Asker: s.model, Messenger: s.messenger,
		Speak: speak,
		Changed: func() {
			select {
			case l.changed <- struct{}{}:
			default:
			}
		},
	}
	if !s.engine {
		h.Asker = none{}
	}
	return h
}

// speak is a voice whose sounds hold the words that they say.
func speak(_ context.Context, _ core.Path, _ []core.Path, text string) (core.Upload, error) {
	return core.Upload{Name: "voice.ogg", MIME: "audio/ogg", Data: []byte("OggS" + text), Kind: core.MediaAudio}, nil
}

func (s *Script) options(l *life) (turn.Options, error) {
	snapshot, err := action.Build(l.all...)
	if err != nil {
		return turn.Options{}, err
	}
	o := turn.Options{
		Store: l.db, Catalogue: snapshot, Runtime: l.runtime, Asker: s.model,
		Clock: s.Now, Log: s.log, Config: turn.Config{History: 20, Recent: 10, Attempts: 2},
		Settings: func(core.Path) turn.Settings { return turn.Settings{Activation: turn.ActivationMention} },
		Prompt: turn.Prompt{Language: s.language, Persona: func(core.Path, string) core.Persona {
			return core.Persona{Name: "Aria", Text: "You are Aria."}
		}},
		Admins: s.admins, Names: func(core.Path) []string { return []string{"Aria"} },
		Plugins: turn.Plugins{Recons: []hint.Source{recon.New()}, Observers: []watch.Observer{observer(s.poke)}},
	}
	if len(s.shares) > 0 {
		o.Prompt.Shares = []turn.Share{{Paths: s.shares}}
	}
	if s.buttons {
		o.Places.Chooser = func(place core.Path) core.Chooser { return s.room(place.Interface()) }
	}
	undo := func(ctx context.Context, c command.Call) (string, error) { return l.turns.Undo(ctx, c) }
	commands := [][]command.Command{{{Spec: turn.UndoSpec(), Do: undo}}}
	for _, p := range l.plugins {
		o.Plugins.Add(p)
		if x, ok := p.(command.Commander); ok {
			commands = append(commands, x.Commands())
		}
	}
	for _, f := range s.plan.tune {
		f(&o)
	}
	o.Plugins.Commands, err = command.New(commands...)
	return o, err
}

// observer calls a function when a turn ends.
type observer func()

// Observe implements watch.Observer.
func (o observer) Observe(watch.TurnEnd) { o() }

// goodbye is how long turns may take to finish.
const goodbye = 5 * time.Second

// run starts the turns and the plugins. The function that it returns stops the turns, and then the plugins.
func (s *Script) run(l *life) func() error {
	begun, end := context.WithCancel(context.Background())
	work, abort := context.WithCancel(context.Background())
	back, leave := context.WithCancel(context.Background())
	var turns, plugins sync.WaitGroup
	errs := make(chan error, len(l.plugins)+2)
	turns.Go(func() { errs <- l.turns.Run(begun, work) })
	plugins.Go(func() { errs <- l.watch(back) })
	for _, p := range l.plugins {
		if r, ok := p.(core.Runner); ok {
			plugins.Go(func() { errs <- r.Run(back) })
		}
	}
	return func() error {
		end()
		late := time.AfterFunc(goodbye, abort)
		turns.Wait()
		late.Stop()
		abort()
		leave()
		plugins.Wait()
		l.runtime.Wait()
		close(errs)
		var all error
		for err := range errs {
			all = errors.Join(all, err)
		}
		return errors.Join(all, l.db.Close())
	}
}

// watch rebuilds the catalogue when a plugin's actions have changed.
func (l *life) watch(ctx context.Context) error {
	for {
		select {
		case <-l.changed:
			snapshot, err := action.Build(l.all...)
			if err != nil {
				return err
			}
			l.options.Catalogue = snapshot
			l.turns.Reconfigure(l.options)
		case <-ctx.Done():
			return nil
		}
	}
}

// end ends the life, if there is one.
func (s *Script) end() {
	if s.world == nil {
		return
	}
	l := s.world
	s.world = nil
	if err := l.stop(); err != nil {
		s.t.Errorf("%s:%d: the bot's end: %v", s.file, s.line.number, err)
	}
}
