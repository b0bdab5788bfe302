package coretest

import (
	"context"
	"encoding/json"
	"testing"

	"synthbot/core"
	"synthbot/core/epochs"
)

func (s *testedStore) putItem(plugin string, path core.Path, key, value string, version uint64) uint64 {
	s.t.Helper()
	item := core.Item{Path: path, Key: key, Version: version, Value: json.RawMessage(value)}
	got, err := s.Items(plugin).Put(context.Background(), item)
	if err != nil {
		s.t.Fatalf("Put: %v", err)
	}
	return got
}

// listItems returns the items at or below root, as texts.
func (s *testedStore) listItems(plugin string, root core.Path) (all []string) {
	s.t.Helper()
	items, err := s.Items(plugin).List(context.Background(), root)
	if err != nil {
		s.t.Fatalf("List: %v", err)
	}
	for _, item := range items {
		all = append(all, item.Path.String()+" "+item.Key+" "+string(item.Value))
	}
	return all
}

func itemCases() map[string]func(*testing.T, *testedStore) {
	ctx := context.Background()
	return map[string]func(*testing.T, *testedStore){
		"items are kept together": putAll,
		"items have versions": func(t *testing.T, s *testedStore) {
			if item, ok, err := s.Items("quiz").Get(ctx, kitchen, "k"); ok || item.Version != 0 || err != nil {
				t.Errorf("what is not there: %+v, %t, %v", item, ok, err)
			}
			same(t, "first", s.putItem("quiz", kitchen, "k", `1`, 0), 1)
			same(t, "second", s.putItem("quiz", kitchen, "k", `2`, 1), 2)
			same(t, "third, whatever was there", s.putItem("quiz", kitchen, "k", `{"a":3}`, core.AnyVersion), 3)
			for _, version := range []uint64{0, 2, 4} {
				_, err := s.Items("quiz").Put(ctx, core.Item{Path: kitchen, Key: "k", Version: version, Value: json.RawMessage(`9`)})
				wantError(t, "Put of another version", err, core.ErrVersion)
			}
			s.reopen()
			item, ok, err := s.Items("quiz").Get(ctx, kitchen, "k")
			if !ok || err != nil || item.Version != 3 || string(item.Value) != `{"a":3}` || item.Path != kitchen || item.Key != "k" {
				t.Errorf("%+v, %t, %v", item, ok, err)
			}
			if _, err := s.Items("quiz").Put(ctx, core.Item{Path: kitchen, Key: "k", Version: 3}); err != nil {
				t.Errorf("taking away: %v", err)
			}
			same(t, "left", len(s.listItems("quiz", core.Path{})), 0)
			same(t, "after it was away", s.putItem("quiz", kitchen, "k", `1`, 0), 1)
		},
		"items of plugins are apart": func(t *testing.T, s *testedStore) {
			s.putItem("quiz", kitchen, "k", `1`, 0)
			s.putItem("quizzes", kitchen, "k", `2`, 0)
			s.putItem("qui", kitchen, "zk", `3`, 0)
			same(t, "quiz", s.listItems("quiz", core.Path{}), []string{"house/kitchen k 1"})
			same(t, "quizzes", s.listItems("quizzes", kitchen), []string{"house/kitchen k 2"})
			same(t, "nobody", len(s.listItems("q", core.Path{})), 0)
		},
		"items are listed by path and key": func(t *testing.T, s *testedStore) {
			for _, path := range []core.Path{garden, {}, shed, fence, kitchen} {
				s.putItem("quiz", path, "b", `1`, 0)
				s.putItem("quiz", path, "a/b", `2`, 0)
			}
			same(t, "all", len(s.listItems("quiz", core.Path{})), 10)
			same(t, "below the garden", s.listItems("quiz", garden), []string{
				"house/garden a/b 2", "house/garden b 1", "house/garden/shed a/b 2", "house/garden/shed b 1"})
			same(t, "first of all", s.listItems("quiz", core.Path{})[0], " a/b 2")
		},
		"what is no JSON is refused": func(t *testing.T, s *testedStore) {
			if _, err := s.Items("quiz").Put(ctx, core.Item{Path: kitchen, Key: "k", Value: json.RawMessage(`{`)}); err == nil {
				t.Error("no error")
			}
		},
		"items move with their place": func(t *testing.T, s *testedStore) {
			s.append(said(garden, "1", "x"))
			s.putItem("quiz", shed, "k", `1`, 0)
			s.change(core.Event{Kind: core.KindMigration, Message: core.Message{Path: garden}, To: street})
			same(t, "listed", s.listItems("quiz", core.Path{}), []string{"town/street/shed k 1"})
			same(t, "under the old path", s.putItem("quiz", shed, "k", `2`, 1), 2)
		},
		"what a turn keeps of who was forgotten since is refused": func(t *testing.T, s *testedStore) {
			began := epochs.With(ctx, s.Epoch())
			put := func(ctx context.Context, path core.Path, key, value string) error {
				_, err := s.Items("quiz").Put(ctx, core.Item{Path: path, Key: key, Version: core.AnyVersion, Value: json.RawMessage(value)})
				return err
			}
			wantError(t, "before", put(began, jayPath, "k", `"tea"`), nil)
			wantError(t, "Forget", s.Forget(ctx, jayPath), nil)
			for what, err := range map[string]error{
				"under his path": put(began, jayPath, "k", `"tea"`),
				"under his name": put(began, annPath, jayPath.String(), `"tea"`),
				"by his path":    put(began, kitchen, "k", `{"who":["`+jayPath.String()+`"]}`),
				"by his id":      put(began, kitchen, "k", `{"author":{"id":"7"}}`),
			} {
				wantError(t, what, err, core.ErrForgotten)
			}
			wantError(t, "of somebody else", put(began, annPath, "k", `"coffee"`), nil)
			wantError(t, "taking away", func() error {
				_, err := s.Items("quiz").Put(began, core.Item{Path: jayPath, Key: "k", Version: core.AnyVersion})
				return err
			}(), nil)
			same(t, "kept", s.listItems("quiz", core.Path{}), []string{`house/@user/8 k "coffee"`})
			wantError(t, "by a turn that begins now", put(epochs.With(ctx, s.Epoch()), jayPath, "k", `"again"`), nil)
			wantError(t, "by no turn at all", put(ctx, kitchen, "k", `"7"`), nil)
		},
		"items are erased with their person": func(t *testing.T, s *testedStore) {
			s.putItem("quiz", jayPath, "k", `1`, 0)
			s.putItem("quiz", annPath, "k", `1`, 0)
			wantError(t, "Forget", s.Forget(ctx, jayPath), nil)
			same(t, "left", s.listItems("quiz", core.Path{}), []string{"house/@user/8 k 1"})
		},
	}
}

// putAll: PutAll stores all items, or none.
func putAll(t *testing.T, s *testedStore) {
	ctx := t.Context()
	one := func(key, value string, version uint64) core.Item {
		return core.Item{Path: kitchen, Key: key, Version: version, Value: json.RawMessage(value)}
	}
	wantError(t, "PutAll", s.Items("quiz").PutAll(ctx, one("a", `1`, 0), one("b", `2`, 0)), nil)
	for _, bad := range []core.Item{one("b", `9`, 7), one("b", `no JSON`, core.AnyVersion)} {
		if s.Items("quiz").PutAll(ctx, one("a", `8`, core.AnyVersion), one("c", `8`, 0), bad) == nil {
			t.Errorf("%+v is kept", bad)
		}
	}
	s.reopen()
	same(t, "items", s.listItems("quiz", kitchen), []string{"house/kitchen a 1", "house/kitchen b 2"})
	wantError(t, "PutAll", s.Items("quiz").PutAll(ctx, core.Item{Path: kitchen, Key: "a", Version: 1}, one("b", `3`, 1)), nil)
	same(t, "items", s.listItems("quiz", kitchen), []string{"house/kitchen b 3"})
}
