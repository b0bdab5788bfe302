package daemon

import (
	"context"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long a file must stay as it is before it is read: editors write
// in several steps.
const settle = 500 * time.Millisecond

// openWatch begins to watch the configuration file, and the personas and files of
// secrets that it names, and returns what asks for a reload when one has changed, until ctx ends.
func (b *Bot) openWatch(ctx context.Context) (watch func()) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		b.log.Warn("changes of the configuration are not noticed; send SIGHUP", "err", err)
		return func() {}
	}
	watched := b.look(w, nil)
	return func() { b.watch(ctx, w, watched) }
}

func (b *Bot) watch(ctx context.Context, w *fsnotify.Watcher, watched map[string]bool) {
	defer w.Close()
	timer := time.NewTimer(settle)
	timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-w.Events:
			if !ok {
				return
			}
			if watched[filepath.Clean(e.Name)] && !e.Has(fsnotify.Chmod) {
				timer.Reset(settle)
			}
		case err, ok := <-w.Errors:
			if !ok {
				return
			}
			b.log.Warn("watching the configuration", "err", err)
		case <-timer.C:
			select {
			case b.again <- struct{}{}:
			default: // it will be read anyway
			}
		case <-b.reloaded:
			watched = b.look(w, watched) // it may name files that it did not before
		}
	}
}

// look watches the folders of the files that make up the configuration now: a file
// that is replaced is another one, its folder stays.
func (b *Bot) look(w *fsnotify.Watcher, before map[string]bool) map[string]bool {
	watched := make(map[string]bool)
	c := b.InForce().Config
	files := append([]string{c.File}, c.Document.SecretFiles()...)
	for _, file := range append(c.Personas(), c.Persona.Path) {
		if file != "" {
			files = append(files, c.Beside(file))
		}
	}
	for _, file := range files {
		full, err := filepath.Abs(file)
		if err != nil {
			continue
		}
		if watched[full] = true; before[full] {
			continue
		}
		if err := w.Add(filepath.Dir(full)); err != nil {
			b.log.Warn("changes of a file are not noticed; send SIGHUP", "file", file, "err", err)
		}
	}
	return watched
}
