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

// openWatch begins to watch the configuration file and the personas and secrets that it
// names. It returns what requests a reload whenever one of them has changed, until ctx
// ends.
func (r *reloads) openWatch(ctx context.Context) (watch func()) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		r.log.Warn("changes of the configuration are not noticed; send SIGHUP", "err", err)
		return func() {}
	}
	watched := r.watchFiles(w, nil)
	return func() { r.watch(ctx, w, watched) }
}

func (r *reloads) watch(ctx context.Context, w *fsnotify.Watcher, watched map[string]bool) {
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
			r.log.Warn("watching the configuration", "err", err)
		case <-timer.C:
			notify(r.requested)
		case <-r.done:
			watched = r.watchFiles(w, watched) // the configuration may name other files now
		}
	}
}

// watchFiles watches the folders of the files that make up the configuration now, since
// a file that is replaced is another one. before are the files watched already.
func (r *reloads) watchFiles(w *fsnotify.Watcher, before map[string]bool) map[string]bool {
	watched := make(map[string]bool)
	c := r.InForce().Config
	files := append([]string{c.File}, c.Document.SecretFiles()...)
	for _, file := range c.Personas.Files {
		if file != "" {
			files = append(files, c.Beside(file))
		}
	}
	for _, file := range files {
		full, err := filepath.Abs(file)
		if err != nil {
			continue
		}
		watched[full] = true
		if before[full] {
			continue
		}
		if err := w.Add(filepath.Dir(full)); err != nil {
			r.log.Warn("changes of a file are not noticed; send SIGHUP", "file", file, "err", err)
		}
	}
	return watched
}
