package engine

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"synthbot/core"
	"synthbot/core/llm"
)

func TestShowing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &script{name: `{"response":"from a`, steps: []func(context.Context) (llm.Answer, error){fails(llm.ErrorFatal, 0)}}
		b := &script{name: `{"response":"from b"}`, steps: []func(context.Context) (llm.Answer, error){says(`{"response":"from b"}`)}}
		var shown []string
		asker := chainOf(true, a, b).Within(nil, func(place core.Path, text string) {
			if place.String() != "console/x" {
				t.Errorf("shown in %s", place)
			}
			shown = append(shown, text)
		})
		if _, err := asker.Ask(t.Context(), plainQuestion()); err != nil {
			t.Fatal(err)
		}
		if want := []string{"from a", "", "from b"}; !slices.Equal(shown, want) {
			t.Errorf("got %q", shown)
		}
		failing := chainOf(true, a)
		failing.last, shown = nil, nil
		show := func(_ core.Path, text string) { shown = append(shown, text) }
		failing.Within(nil, show).Ask(t.Context(), plainQuestion())
		if want := []string{"from a", ""}; !slices.Equal(shown, want) {
			t.Errorf("got %q", shown)
		}
	})
}
