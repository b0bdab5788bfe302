package knowledge

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"synthbot/core/loop"
	"synthbot/core/passage"
	"synthbot/core/txt"
	"synthbot/plugins/knowledge/cut"
)

// Limits of what is read.
const (
	maxFile      = 16 << 20  // bytes of one file
	maxText      = 8 << 20   // bytes of one document's text
	maxDocuments = 100_000   // of one source
	batchSize    = 256 << 10 // bytes of text that are indexed together
	maxName      = 500       // bytes of a document's name
)

// file is a document that a source contains now; see passage.Document.
type file struct {
	name  string
	stamp string
	time  time.Time
	link  string
	read  func(context.Context) (text string, err error) // returns Markdown; nil: unchanged
}

// Summary is the result of reading the sources.
type Summary struct {
	Documents, Changed, Removed, Passages int
	Faults                                []string
}

func (s Summary) String() string {
	return fmt.Sprintf("%d documents, %d read, %d removed, %d new passages, %d not readable",
		s.Documents, s.Changed, s.Removed, s.Passages, len(s.Faults))
}

// Sync reads changed documents of the sources into the index, and removes those that are gone. It blocks until
// that is done, also while another Sync runs. progress, if not nil, is called with lines about the progress.
// Documents that cannot be read are listed in Summary.Faults and do not count as errors.
func (p *Plugin) Sync(ctx context.Context, progress func(string)) (sum Summary, err error) {
	select {
	case p.syncing <- struct{}{}:
		defer func() { <-p.syncing }()
	case <-ctx.Done():
		return sum, ctx.Err()
	}
	report := func(line string) {
		p.setReading(line)
		if progress != nil {
			progress(line)
		}
	}
	p.setReading("looking for changes")
	defer p.setReading("")
	for i := range p.config.Sources {
		r := &sourceReader{Plugin: p, source: &p.config.Sources[i], progress: report, sum: &sum}
		failed := r.run(ctx)
		p.fault(r.source.Name, "", failed)
		if failed != nil {
			sum.Faults = append(sum.Faults, r.source.Name+": "+failed.Error())
			err = errors.Join(err, ctx.Err())
		}
	}
	if err == nil {
		err = p.syncOthers(ctx, &sum)
	}
	if err == nil {
		_, err = escalation{p}.gaps(ctx) // removes stale ones
	}
	if sum.Changed+sum.Removed > 0 {
		p.languages.Store(nil)
		p.host.Log.Info("documents read", "count", sum.Changed)
	}
	return sum, err
}

// Limits of waiting for vectors.
const (
	vectorPause = 250 * time.Millisecond // between two queries
	vectorLine  = 5 * time.Second        // between two calls of progress
	vectorWait  = 30 * time.Second       // without a new vector: the engine may be down
)

// AwaitVectors blocks until all passages have vectors, if the bot has an engine for them. It calls progress with
// lines about how many are left, and about the engine's error. It returns nil if no vector was added for
// vectorWait: the bot makes the rest when it runs.
func (p *Plugin) AwaitVectors(ctx context.Context, progress func(string)) error {
	last, since, next := -1, time.Now(), time.Now()
	for {
		n, failed, err := p.host.Passages.Waiting(ctx)
		now, reason := time.Now(), ""
		if failed != nil {
			reason = ": " + txt.ClipLine(failed.Error(), 300)
		}
		switch {
		case err != nil || n == 0:
			return err
		case n != last:
			last, since = n, now
		case now.Sub(since) > vectorWait:
			progress(fmt.Sprintf("%d passages have no vectors yet; the bot makes them when it runs%s", n, reason))
			return nil
		}
		if !now.Before(next) {
			progress(fmt.Sprintf("%d passages wait for vectors%s", n, reason))
			next = now.Add(vectorLine)
		}
		if !loop.Sleep(ctx, vectorPause) {
			return ctx.Err()
		}
	}
}

// fault records and logs an error of a document, once until the error changes; nil clears it.
func (p *Plugin) fault(source, name string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := source + "/" + name
	if err == nil {
		delete(p.logged, key)
		return
	}
	text := txt.ClipLine(err.Error(), 300)
	if p.logged[key] != text {
		p.host.Log.Warn("document not read", "name", source, "file", name, "err", text)
	}
	p.logged[key] = text
}

type sourceReader struct {
	*Plugin
	source   *Source
	progress func(string)
	sum      *Summary
	framed   map[string]string  // see frames
	batch    []passage.Document // to be indexed
	size     int                // bytes of text in the batch
}

// note is fault for a document of the source. It adds an error to the summary.
func (r *sourceReader) note(name string, err error) {
	r.fault(r.source.Name, name, err)
	if err != nil {
		r.sum.Faults = append(r.sum.Faults, r.source.Name+"/"+name+": "+err.Error())
	}
}

func (r *sourceReader) run(ctx context.Context) error {
	stored, err := r.host.Passages.Documents(ctx, r.source.Name)
	if err != nil {
		return err
	}
	known := make(map[string]passage.Document, len(stored))
	for _, d := range stored {
		known[d.Name] = d
	}
	files, err := r.files(ctx, known)
	if err != nil {
		return err
	}
	r.sum.Documents += len(files)
	var changed, same []file
	edited := false
	for _, f := range files {
		d, ok := known[f.name]
		if !ok || d.Stamp != f.stamp {
			changed = append(changed, f)
			edited = edited || ok
		} else {
			same = append(same, f)
		}
		delete(known, f.name)
	}
	gone := slices.Collect(maps.Keys(known))
	r.sum.Removed += len(gone)
	if err := r.host.Passages.DropDocuments(ctx, r.source.Name, gone...); err != nil {
		return err
	}
	if len(changed)+len(gone) > 0 {
		r.framed = r.frames(ctx, files)
	}
	if edited || len(gone) > 0 { // other documents may have to keep their blocks now, and are read again
		keepers := slices.Collect(maps.Values(r.framed))
		isOther := func(f file) bool { return !slices.Contains(keepers, f.name) }
		changed = append(changed, slices.DeleteFunc(same, isOther)...)
	}
	for i, f := range changed {
		if err := r.readOne(ctx, f); err != nil {
			return err
		}
		if (i+1)%100 == 0 || i+1 == len(changed) {
			r.progress(fmt.Sprintf("%s: %d of %d documents", r.source.Name, i+1, len(changed)))
		}
	}
	return r.flush(ctx)
}

// files lists the documents that the source contains now. Pages that are not due are listed unchanged.
func (r *sourceReader) files(ctx context.Context, known map[string]passage.Document) (files []file, err error) {
	if r.source.Path != "" {
		if files, err = r.folder(); err != nil {
			return nil, err
		}
	}
	files = append(files, r.pages(ctx, known)...)
	if r.source.Feed != "" {
		files = append(files, r.feed(ctx, known)...)
	}
	return files, ctx.Err()
}

// folder lists the readable files of the source's folder, or its single file.
func (r *sourceReader) folder() (files []file, err error) {
	root := r.source.Path
	if !filepath.IsAbs(root) {
		root = filepath.Join(r.config.Dir, root)
	}
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil && name == root:
			return err
		case err != nil, name != root && strings.HasPrefix(entry.Name(), "."):
			if entry != nil && entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir() || formatOf(name) == nil:
			return nil
		}
		info, err := os.Stat(name)
		if err != nil || !info.Mode().IsRegular() {
			return nil // it was deleted, or is not a regular file
		}
		below, _ := filepath.Rel(root, name)
		if below == "." {
			below = filepath.Base(name)
		}
		if len(files) == maxDocuments {
			return fmt.Errorf("more than %d files", maxDocuments)
		}
		if len(below) > maxName || txt.Line(below) != below {
			r.note(strconv.Quote(txt.Clip(below, 100)), errors.New("its name is too long, or not plain text"))
			return nil
		}
		files = append(files, file{
			name: filepath.ToSlash(below), time: info.ModTime(),
			stamp: fmt.Sprintf("%s %d %d", readerVersion, info.Size(), info.ModTime().UnixNano()),
			read:  func(ctx context.Context) (string, error) { return r.readFile(ctx, name) },
		})
		return nil
	})
	return files, err
}

// readerVersion is part of all stamps. A new value makes all documents be read again; change it when they are
// cut or stemmed differently.
const readerVersion = "3"

func (r *sourceReader) readFile(ctx context.Context, name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if info.Size() > maxFile {
		return "", fmt.Errorf("it has %d MB, at most %d are read", info.Size()>>20, maxFile>>20)
	}
	data := make([]byte, info.Size())
	n, err := f.ReadAt(data, 0)
	if int64(n) < info.Size() && err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	return formatOf(name)(ctx, &r.host, data[:n])
}

// readOne reads a document and adds it to the batch. A document that cannot be read is indexed without passages,
// and read again when it changes.
func (r *sourceReader) readOne(ctx context.Context, f file) error {
	text, err := f.read(ctx)
	if err == nil && len(text) > maxText {
		err = fmt.Errorf("its text has %d MB, at most %d are read", len(text)>>20, maxText>>20)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	text = clean(text)
	r.note(f.name, err)
	d := passage.Document{Name: f.name, Stamp: f.stamp, Time: f.time, Link: f.link}
	if err == nil {
		d.Language = r.languageOf(text)
		base := path.Base(f.name)
		title := strings.NewReplacer("-", " ", "_", " ").Replace(strings.TrimSuffix(base, path.Ext(base)))
		d.Passages = cut.Passages(text, title, func(block string) (drops bool) {
			keeper, framed := r.framed[framing(block)]
			return framed && keeper != f.name
		})
	}
	r.sum.Changed++
	r.sum.Passages += len(d.Passages)
	r.batch, r.size = append(r.batch, d), r.size+len(text)
	if r.size > batchSize {
		return r.flush(ctx)
	}
	return nil
}

func (r *sourceReader) flush(ctx context.Context) error {
	batch := r.batch
	r.batch, r.size = nil, 0
	return r.host.Passages.PutDocuments(ctx, r.source.Name, batch...)
}

// A block frames the documents of a source, as headers, footers and navigation do, if enough of them contain it.
const (
	frameMax     = 800 // bytes of such a block
	frameSample  = 64  // how many documents are compared
	frameMin     = 3   // how many of them must contain it, at least
	frameOneIn   = 5   // and at least one in so many of them
	frameLetters = 3   // letters of such a block, at least
)

// framing normalises a block for comparison: all digits count as equal, such as in page numbers and dates. It
// returns "" for a block that is too long or has too few letters.
func framing(text string) string {
	if len(text) > frameMax {
		return ""
	}
	letters := 0
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsDigit(r):
			return '0'
		case unicode.IsLetter(r):
			letters++
		}
		return unicode.ToLower(r)
	}, txt.Line(text))
	if letters < frameLetters {
		return ""
	}
	return text
}

// frames finds the blocks that many documents of the source contain. It returns, for each block, the name of the
// document that keeps it, so that searches still find it once. PDFs are not compared, because reading them takes
// too long.
func (r *sourceReader) frames(ctx context.Context, files []file) (keepers map[string]string) {
	var sample []file
	for i := range files {
		if files[i].read != nil && !strings.HasSuffix(strings.ToLower(files[i].name), ".pdf") {
			sample = append(sample, files[i])
		}
	}
	step := max(len(sample)/frameSample, 1)
	count, keepers := make(map[string]int), make(map[string]string)
	read := 0
	for i := 0; i < len(sample) && ctx.Err() == nil; i += step {
		text, err := sample[i].read(ctx)
		if err != nil || len(text) > maxText {
			continue // readOne reports it
		}
		read++
		found := make(map[string]bool) // see framing
		for _, block := range cut.Blocks(clean(text)) {
			found[framing(block)] = true
		}
		delete(found, "")
		for block := range found {
			if count[block]++; count[block] == 1 {
				keepers[block] = sample[i].name
			}
		}
	}
	for block, n := range count {
		if n < max(frameMin, read/frameOneIn) {
			delete(keepers, block)
		}
	}
	return keepers
}
