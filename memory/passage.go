package memory

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/passage"
)

// Limits of documents.
const (
	maxDocumentName = 1024
	passageJob      = 256 // passages that one transaction writes or drops, so that turns do not wait long
)

// passageRoot is the first element of the paths under which sources have their words and
// vectors. No interface has such a name. It is short because many keys begin with it.
const passageRoot = "@d"

// firstPassage is the number below that of the first passage. Facts have lower ones, so that both can have vectors.
const firstPassage = 1 << 62

type passages struct{ db *DB }

// Passages returns the index of documents that the database holds.
func Passages(db *DB) passage.Index { return passages{db} }

type passageTx struct{ *tx }

// sourcePath returns the path under which a source has its words and vectors.
func sourcePath(source string) (core.Path, error) {
	path, err := core.MakePath(passageRoot, source)
	if err != nil {
		return path, fmt.Errorf("%w: source: %w", ErrBatch, err)
	}
	return path, nil
}

// storedDocument is a document as it is stored. It has no stamp until all its passages are stored.
type storedDocument struct {
	Stamp    string    `json:"s,omitempty"`
	Language string    `json:"l,omitempty"`
	Link     string    `json:"u,omitempty"`
	Time     time.Time `json:"t,omitzero"`
	Numbers  []span    `json:"n,omitempty"` // of its passages
}

// span is a range of numbers, from the first on, to exclusive.
type span struct{ From, To uint64 }

// add adds a passage, whose number is above those of the others.
func (d *storedDocument) add(number uint64) {
	last := len(d.Numbers) - 1
	if last >= 0 && d.Numbers[last].To == number {
		d.Numbers[last].To++
	} else {
		d.Numbers = append(d.Numbers, span{number, number + 1})
	}
}

type storedPassage struct {
	Source   string `json:"s"`
	Document string `json:"d"`
	Title    string `json:"t,omitempty"`
	Anchor   string `json:"a,omitempty"`
	Language string `json:"l,omitempty"`
	Text     string `json:"x"`
}

// words returns the stemmed words of a passage. The value is true for those in the title, or that occur more than once.
func (p *storedPassage) words() map[string]bool {
	stem := stemmer(p.Language)
	found := make(map[string]bool)
	words(p.Title, func(word string) bool {
		found[stemmed(word, stem)] = true
		return len(found) < maxWords
	})
	words(p.Text, func(word string) bool {
		word = stemmed(word, stem)
		_, again := found[word]
		found[word] = again
		return len(found) < maxWords
	})
	return found
}

func (p *storedPassage) embedded() string { return strings.TrimSpace(p.Title + "\n" + p.Text) }

// newPassage is a passage to be stored, with its postings. One without a value marks the end of its document.
type newPassage struct {
	document *passage.Document
	value    []byte
	postings map[string]uint16 // by term; see passagePosting
}

func encodePassage(to *flate.Writer, source string, d *passage.Document, p *passage.Passage) newPassage {
	stored := storedPassage{source, d.Name, p.Title, p.Anchor, d.Language, p.Text}
	var packed bytes.Buffer
	to.Reset(&packed)
	_, _ = to.Write(core.JSON(stored)) // it does not fail in memory
	_ = to.Close()
	n := newPassage{document: d, value: packed.Bytes(), postings: make(map[string]uint16)}
	lengths := passageLengths()
	i, _ := slices.BinarySearch(lengths[:], uint16(min(len(p.Text)/6, math.MaxUint16)))
	length := uint16(min(i, len(lengths)-1)) // the index of the first length that the text does not exceed
	n.postings[termAll] = length
	for word, strong := range stored.words() {
		n.postings[termWord+word] = length
		if strong {
			n.postings[termWord+word] |= strongPosting
		}
	}
	return n
}

// PutDocuments implements passage.Index.
func (x passages) PutDocuments(ctx context.Context, source string, documents ...passage.Document) error {
	origin, err := sourcePath(source)
	if err != nil {
		return err
	}
	var names []string
	for i := range documents {
		name := documents[i].Name
		if name == "" || len(name) > maxDocumentName || strings.ContainsRune(name, terminator) {
			return fmt.Errorf("%w: a document's name of %d bytes", ErrBatch, len(name))
		}
		names = append(names, name)
	}
	if err := x.DropDocuments(ctx, source, names...); err != nil {
		return err
	}
	var next []newPassage
	size := 1
	write := func() error {
		err := x.db.write(ctx, &job{name: "documents of " + source, size: size, run: func(t *tx) error {
			return passageTx{t}.putPassages(origin, next)
		}})
		next, size = nil, 1
		return err
	}
	packer, _ := flate.NewWriter(nil, flate.BestSpeed) // it fails for unknown levels only
	for i := range documents {
		d := &documents[i]
		for k := range d.Passages {
			p := &d.Passages[k]
			if len(p.Text) > maxFactText {
				return fmt.Errorf("%w: a passage of %d bytes", ErrBatch, len(p.Text))
			}
			next, size = append(next, encodePassage(packer, source, d, p)), size+3*len(p.Text)
			if len(next) >= passageJob {
				if err := write(); err != nil {
					return err
				}
			}
		}
		next = append(next, newPassage{document: d})
	}
	return write()
}

func (t passageTx) putPassages(origin core.Path, all []newPassage) (err error) {
	place, added, stored := placeKey(origin), make(postingChanges), t.bucket(bucketPassages)
	var d storedDocument
	var key []byte
	for i, n := range all {
		if i == 0 || n.document != all[i-1].document {
			if d, key, err = t.document(origin, n.document.Name); err != nil {
				return err
			}
			d.Language, d.Link, d.Time = n.document.Language, n.document.Link, n.document.Time
		}
		if n.value == nil {
			d.Stamp = n.document.Stamp
		} else {
			next, _ := stored.NextSequence() // it fails in views only
			number := firstPassage + next
			stored.Put(numberKey(number), n.value)
			for term, info := range n.postings {
				added.add(place, number, term, info)
			}
			t.saved = append(t.saved, number)
			d.add(number)
		}
		if n.value == nil || i == len(all)-1 {
			t.bucket(bucketDocuments).Put(key, core.JSON(d))
		}
	}
	postings := t.bucket(bucketPassageWords)
	for _, key := range slices.Sorted(maps.Keys(added)) {
		value := bytes.Clone(postings.Get([]byte(key)))
		postings.Put([]byte(key), append(value, added[key]...))
	}
	return nil
}

func (t passageTx) document(origin core.Path, name string) (d storedDocument, key []byte, err error) {
	key = append(placeKey(origin), name...)
	value := t.bucket(bucketDocuments).Get(key)
	if value == nil {
		return d, key, nil
	}
	if err := json.Unmarshal(value, &d); err != nil {
		return d, key, fmt.Errorf("document %q: %w", key, err)
	}
	return d, key, nil
}

// DropDocuments implements passage.Index.
func (x passages) DropDocuments(ctx context.Context, source string, names ...string) error {
	origin, err := sourcePath(source)
	if err != nil {
		return err
	}
	err = x.db.read(ctx, func(v *view) {
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			return v.bucket(bucketDocuments).Get(append(placeKey(origin), name...)) == nil
		})
	})
	for len(names) > 0 && err == nil {
		rest := names
		err = x.db.write(ctx, &job{name: "documents of " + source, run: func(t *tx) (err error) {
			rest, err = passageTx{t}.dropSome(origin, names)
			return err
		}})
		names = rest
	}
	return err
}

// dropSome drops as many passages as one transaction may, and returns the names of the documents that are left.
func (t passageTx) dropSome(origin core.Path, names []string) (rest []string, err error) {
	place, dropped, room := placeKey(origin), make(postingChanges), passageJob
	for i, name := range names {
		d, key, err := t.document(origin, name)
		if err != nil {
			t.db.logUnreadable(err) // its passages stay until the index is rebuilt
		}
		for len(d.Numbers) > 0 && room > 0 {
			first := &d.Numbers[0]
			if p, ok := t.passage(first.From); ok {
				dropped.add(place, first.From, termAll, 0)
				for word := range p.words() {
					dropped.add(place, first.From, termWord+word, 0)
				}
			}
			t.bucket(bucketPassages).Delete(numberKey(first.From))
			t.facts().dropVector(origin, first.From)
			room--
			if first.From++; first.From == first.To {
				d.Numbers = d.Numbers[1:]
			}
		}
		if len(d.Numbers) > 0 {
			d.Stamp = ""
			t.bucket(bucketDocuments).Put(key, core.JSON(d))
			rest = names[i:]
			break
		}
		t.bucket(bucketDocuments).Delete(key)
	}
	postings := t.bucket(bucketPassageWords)
	for _, key := range slices.Sorted(maps.Keys(dropped)) {
		postings.set([]byte(key), removePostings(postings.Get([]byte(key)), dropped[key]))
	}
	return rest, nil
}

// passage reads a passage; ok is false if there is none.
func (t passageTx) passage(number uint64) (p storedPassage, ok bool) {
	key := numberKey(number)
	value := t.bucket(bucketPassages).Get(key)
	if value == nil {
		return p, false
	}
	err := json.NewDecoder(flate.NewReader(bytes.NewReader(value))).Decode(&p)
	if err != nil {
		t.db.logUnreadable(fmt.Errorf("passage %x: %w", key, err))
	}
	return p, err == nil
}

// Documents implements passage.Index.
func (x passages) Documents(ctx context.Context, source string) (all []passage.Document, err error) {
	origin, err := sourcePath(source)
	if err != nil {
		return nil, err
	}
	err = x.db.read(ctx, func(v *view) {
		place := placeKey(origin)
		for key, value := range v.bucket(bucketDocuments).prefixed(place) {
			var d storedDocument
			if err := json.Unmarshal(value, &d); err != nil {
				v.db.logUnreadable(fmt.Errorf("document %q: %w", key, err))
			}
			listed := passage.Document{
				Name: string(key[len(place):]), Stamp: d.Stamp, Language: d.Language, Link: d.Link, Time: d.Time,
			}
			for _, n := range d.Numbers {
				listed.Count += int(n.To - n.From)
			}
			all = append(all, listed)
		}
	})
	return all, err
}

// Sources implements passage.Index.
func (x passages) Sources(ctx context.Context) (all []string, err error) {
	err = x.db.read(ctx, func(v *view) {
		for _, origin := range v.placesIn(bucketDocuments, core.Path{}) {
			all = append(all, origin.Elements()[1]) // see sourcePath
		}
	})
	return all, err
}

// Waiting implements passage.Index.
func (x passages) Waiting(ctx context.Context) (n int, failed, err error) {
	m := x.db.embeds
	m.mu.Lock()
	e, length, refused, failed := m.embedding, m.length, maps.Clone(m.refused), m.failed
	m.mu.Unlock()
	err = x.db.read(ctx, func(v *view) {
		if e.Embed == nil {
			return
		}
		done := v.passagesWithVector(e.Model, length, firstPassage)
		for number := range v.numbersFrom(firstPassage) {
			if !done[number] && !refused[number] {
				n++
			}
		}
	})
	return n, failed, err
}

// maxSame is how many more passages Find fetches, as some may be copies of others.
const maxSame = 20

// Find implements passage.Index. It leaves out passages with the text of a better one.
func (x passages) Find(ctx context.Context, q passage.Query) (found []passage.Match, err error) {
	var meant *vector
	if q.Mode != passage.Words {
		meant = x.db.embeds.query(ctx, q.Text, x.db.pruning.config.Load().Recall)
	}
	if meant != nil {
		meant.model ^= coarseTag // it is compared with coarse vectors
	}
	var origins []core.Path
	for _, source := range q.Sources {
		origin, err := sourcePath(source)
		if err != nil {
			return nil, err
		}
		origins = append(origins, origin)
	}
	err = x.db.read(ctx, func(v *view) {
		s := &search{
			view: v, from: newPassageIndex(v), maxPostings: 8192, text: q.Text, n: q.N + maxSame,
			languages: append([]string{""}, q.Languages...), meaningOnly: q.Mode == passage.Meaning, vector: meant,
		}
		s.total = v.bucket(bucketPassages).Sequence()
		same := make(map[string]bool)
		for _, h := range s.run(origins) {
			if len(found) >= q.N {
				break
			}
			p, ok := passageTx{&v.tx}.passage(h.id)
			said := strings.Join(strings.Fields(lower(p.Text)), " ")
			if ok && !same[said] {
				same[said] = true
				found = append(found, s.newMatch(&h, &p))
			}
		}
	})
	return found, err
}

func (s *search) newMatch(h *hit, p *storedPassage) passage.Match {
	d, _, _ := passageTx{&s.tx}.document(h.origin, p.Document)
	m := passage.Match{Score: h.score, Passage: passage.Passage{
		ID: h.id, Source: p.Source, Document: p.Document, Title: p.Title, Anchor: p.Anchor, Text: p.Text,
		Link: d.Link, Time: d.Time,
	}}
	counted := make(map[int]bool)
	for i, word := range s.wordOf {
		if h.words&(1<<i) != 0 && !counted[word] {
			counted[word] = true
			m.Share += s.wordWeights[word] / s.maxWeight
		}
	}
	if s.vector != nil && s.baseline.threshold > 0 {
		m.Near = s.baseline.scaled(h.similarity)
	}
	return m
}

// A posting of a passage has 16 bits: its number within its group, whether the word counts
// more, and the passage's length (2 bits). A group's postings of a term are one value.
const (
	groupBits     = 13
	strongPosting = 1 << 2
)

// passageLengths returns the lengths, in words, that a posting can express.
func passageLengths() [4]uint16 { return [4]uint16{25, 70, 140, 260} }

// postingChanges are postings that are added or dropped, by key.
type postingChanges map[string][]byte

func (c postingChanges) add(place []byte, number uint64, term string, info uint16) {
	key := string(groupKey(place, uint16((number-firstPassage)>>groupBits), term))
	c[key] = binary.BigEndian.AppendUint16(c[key], uint16(number)<<(16-groupBits)|info)
}

// removePostings returns the postings without the dropped ones. Both are in order.
func removePostings(postings, dropped []byte) (rest []byte) {
	for ; len(postings) >= 2; postings = postings[2:] {
		number := binary.BigEndian.Uint16(postings) >> (16 - groupBits)
		for len(dropped) >= 2 && binary.BigEndian.Uint16(dropped)>>(16-groupBits) < number {
			dropped = dropped[2:]
		}
		if len(dropped) < 2 || binary.BigEndian.Uint16(dropped)>>(16-groupBits) != number {
			rest = append(rest, postings[:2]...)
		}
	}
	return rest
}

func groupKey(place []byte, group uint16, term string) []byte {
	key := make([]byte, 0, len(place)+2+len(term))
	return append(binary.BigEndian.AppendUint16(append(key, place...), group), term...)
}

type passageIndex struct {
	*view
	groups map[core.Path][]uint16 // of each source, in order
	ranks  [4][]byte              // by length
}

func newPassageIndex(v *view) *passageIndex {
	x := &passageIndex{view: v, groups: make(map[core.Path][]uint16)}
	for i, words := range passageLengths() {
		x.ranks[i] = binary.BigEndian.AppendUint16(make([]byte, 5), words)
	}
	return x
}

func (x *passageIndex) groupsOf(origin core.Path) []uint16 {
	known, ok := x.groups[origin]
	if ok {
		return known
	}
	place := placeKey(origin)
	cursor := x.bucket(bucketPassageWords).Cursor(place, prefixEnd(place))
	for k, _ := cursor.Seek(place); bytes.HasPrefix(k, place) && len(k) >= len(place)+2; {
		group := binary.BigEndian.Uint16(k[len(place):])
		known = append(known, group)
		k, _ = cursor.Seek(groupKey(place, group, "\xff"))
	}
	x.groups[origin] = known
	return known
}

func (x *passageIndex) newestWith(origin core.Path, term string, max int, use func(posting)) (n int) {
	place, used := placeKey(origin), 0
	for _, group := range slices.Backward(x.groupsOf(origin)) {
		value := x.bucket(bucketPassageWords).Get(groupKey(place, group, term))
		n += len(value) / 2
		for end := len(value); end >= 2 && used < max; end -= 2 {
			use(x.decode(group, binary.BigEndian.Uint16(value[end-2:])))
			used++
		}
	}
	return n
}

func (x *passageIndex) decode(group uint16, p uint16) posting {
	id := firstPassage + uint64(group)<<groupBits + uint64(p>>(16-groupBits))
	return posting{id: id, rank: x.ranks[p&3], strong: p&strongPosting != 0}
}

func (x *passageIndex) posting(origin core.Path, term string, id uint64) (posting, bool) {
	group := uint16((id - firstPassage) >> groupBits)
	value := x.bucket(bucketPassageWords).Get(groupKey(placeKey(origin), group, term))
	wanted := uint16(id) << (16 - groupBits)
	at := sort.Search(len(value)/2, func(i int) bool { return binary.BigEndian.Uint16(value[2*i:]) >= wanted })
	if 2*at >= len(value) {
		return posting{}, false
	}
	found := x.decode(group, binary.BigEndian.Uint16(value[2*at:]))
	return found, found.id == id
}
