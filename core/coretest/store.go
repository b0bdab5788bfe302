package coretest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"synthbot/core"
)

// Store is a core.Store that also stores facts and the items of plugins.
type Store interface {
	core.Store
	core.Facts
	// Forget erases what is stored about a user.
	Forget(ctx context.Context, person core.Path) error
	Items(plugin string) core.Items
}

// OpenStore opens the store in dir. It has everything that was committed to an earlier store in the same dir,
// whether that was closed or not.
type OpenStore func(t *testing.T, dir string) Store

// TestStore checks that a Store keeps its contracts.
func TestStore(t *testing.T, open OpenStore) {
	for _, group := range []map[string]func(*testing.T, *testedStore){
		logCases(), changeCases(), moveCases(), dueCases(), settledCases(), readCases(), journalCases(), callCases(),
		generalCases(), factCases(), itemCases(),
	} {
		for name, run := range group {
			t.Run(name, func(t *testing.T) {
				s := &testedStore{t: t, dir: t.TempDir(), open: open}
				s.Store = open(t, s.dir)
				t.Cleanup(func() { s.Close() })
				run(t, s)
			})
		}
	}
}

// testedStore is a store under test. Its methods fail the test instead of returning errors.
type testedStore struct {
	Store
	t    *testing.T
	dir  string
	open OpenStore
}

var (
	morning = time.Date(2026, 11, 20, 8, 0, 0, 123456789, time.UTC)
	kitchen = core.MustPath("house/kitchen")
	garden  = core.MustPath("house/garden")
	shed    = core.MustPath("house/garden/shed")
	fence   = core.MustPath("house/garden2")
	street  = core.MustPath("town/street")
)

// said returns a message from a driver.
func said(place core.Path, id, text string) core.Entry {
	return core.Entry{Event: core.Event{Kind: core.KindMessage, Message: core.Message{
		Path: place, ID: id, Text: text, Time: morning, Author: core.Author{ID: "7", Name: "Jay"},
	}}}
}

// asked returns a message that is due.
func asked(place core.Path, id, text string) core.Entry {
	e := said(place, id, text)
	e.Due = true
	return e
}

func at(e core.Entry, after time.Duration) core.Entry {
	e.Message.Time = morning.Add(after)
	return e
}

func (s *testedStore) commit(b *core.Batch) {
	s.t.Helper()
	if err := s.Commit(context.Background(), b); err != nil {
		s.t.Fatalf("Commit: %v", err)
	}
}

// append commits entries together and returns them with their numbers.
func (s *testedStore) append(entries ...core.Entry) []core.Entry {
	s.t.Helper()
	b := &core.Batch{Append: entries}
	s.commit(b)
	return b.Append
}

func (s *testedStore) change(events ...core.Event) {
	s.t.Helper()
	s.commit(&core.Batch{Change: events})
}

func (s *testedStore) answer(place core.Path, seq uint64) {
	s.t.Helper()
	s.commit(&core.Batch{Answered: []core.TurnID{{Path: place, Seq: seq}}})
}

func (s *testedStore) settle(place core.Path, seq uint64) {
	s.t.Helper()
	s.commit(&core.Batch{Settled: []core.TurnID{{Path: place, Seq: seq}}})
}

func (s *testedStore) view(f func(v core.View) error) {
	s.t.Helper()
	if err := s.View(context.Background(), f); err != nil {
		s.t.Fatalf("View: %v", err)
	}
}

// reopen closes the store and opens it again.
func (s *testedStore) reopen() {
	s.t.Helper()
	if err := s.Close(); err != nil {
		s.t.Fatalf("Close: %v", err)
	}
	s.Store = s.open(s.t, s.dir)
}

func (s *testedStore) last(place core.Path, n int) (entries []core.Entry) {
	s.t.Helper()
	s.view(func(v core.View) (err error) { entries, err = v.Last(place, n); return err })
	return entries
}

func (s *testedStore) due(place core.Path) (entries []core.Entry) {
	s.t.Helper()
	s.view(func(v core.View) (err error) { entries, err = v.Due(place, 100); return err })
	return entries
}

func (s *testedStore) head(place core.Path) (h core.Head) {
	s.t.Helper()
	s.view(func(v core.View) (err error) { h, err = v.Head(place); return err })
	return h
}

func (s *testedStore) entry(place core.Path, id string) core.Entry {
	s.t.Helper()
	var e core.Entry
	var ok bool
	s.view(func(v core.View) (err error) { e, ok, err = v.Entry(place, id); return err })
	if !ok {
		s.t.Fatalf("Entry(%s, %q): not there", place, id)
	}
	return e
}

func (s *testedStore) waiting() (places []core.Path) {
	s.t.Helper()
	s.view(func(v core.View) (err error) { places, err = v.Waiting(); return err })
	return places
}

// words returns the texts of entries, for short comparisons.
func words(entries []core.Entry) []string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Message.Text)
	}
	return all
}

func seqs(entries []core.Entry) []uint64 {
	var all []uint64
	for _, e := range entries {
		all = append(all, e.Message.Seq)
	}
	return all
}

// same fails the test unless got equals want.
func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b core.Path) bool { return a == b })); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// wantError fails the test unless err is, or wraps, want.
func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// filled returns a value whose fields all have a non-zero value, so that a test sees if one is not stored.
func filled[T any](t *testing.T) T {
	var value T
	n := 0
	fillValue(t, reflect.ValueOf(&value).Elem(), &n)
	return value
}

func fillValue(t *testing.T, v reflect.Value, n *int) {
	*n++
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		*x = morning.Add(time.Duration(*n) * time.Millisecond)
		return
	case *core.Path:
		*x = core.MustPath(fmt.Sprintf("house/room%d", *n))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d é <&>", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(-*n))
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(uint64(*n % 200))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillValue(t, v.Elem(), n)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") != "-" { // such fields are not stored
				fillValue(t, v.Field(i), n)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fillValue(t, v.Index(0), n)
		fillValue(t, v.Index(1), n)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillValue(t, key, n)
		fillValue(t, value, n)
		v.SetMapIndex(key, value)
	default:
		t.Fatalf("no value for a field of type %s", v.Type())
	}
}

// refused fails the test unless the batch is refused and changes nothing.
func (s *testedStore) refused(what string, b *core.Batch) {
	s.t.Helper()
	if err := s.Commit(context.Background(), b); err == nil || errors.Is(err, core.ErrDamaged) {
		s.t.Errorf("%s: Commit returned %v, want a refusal", what, err)
	}
	if got := s.last(kitchen, 10); len(got) != 0 {
		s.t.Errorf("%s: left %v behind", what, words(got))
	}
}
