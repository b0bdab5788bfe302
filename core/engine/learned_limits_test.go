package engine

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"synthbot/core/llm"
)

// TestScaleMovesInSteps checks that the learned limit follows the server's token counts in steps. A change with
// each answer would invalidate the provider's cache.
func TestScaleMovesInSteps(t *testing.T) {
	var s learnedLimits
	now, random := time.Now(), rand.New(rand.NewPCG(1, 2))
	limit := func() int { return s.limits(llm.Limits{Tokens: 6000}, now).Tokens }
	if limit() != 6000 {
		t.Fatalf("got a limit of %d before any answer", limit())
	}
	for _, ratio := range []float64{0.75, 1.4, 0.6} {
		s.learnScale(int(ratio*10_000), 10_000)
		moves, last := 0, limit()
		for range 8 * scaleBlock {
			s.learnScale(int(ratio*10_000*(0.9+0.1*random.Float64())), 10_000)
			if limit() != last {
				moves, last = moves+1, limit()
			}
		}
		if want := 6000 / ratio; math.Abs(float64(last)-want) > want/10 || moves > 8 {
			t.Errorf("ratio %v: a limit of %d after %d moves, want about %.0f", ratio, last, moves, want)
		}
	}
}

// TestLessonsAreBounded checks that sizes in a server's errors cannot make limits absurd.
func TestLessonsAreBounded(t *testing.T) {
	now := time.Now()
	for name, tc := range map[string]struct {
		teach func(*learnedLimits)
		want  int // of 6000 tokens
	}{
		"nothing":     {func(*learnedLimits) {}, 6000},
		"too many":    {func(s *learnedLimits) { s.learnScale(1_000_000, 1000) }, 1500},
		"few":         {func(s *learnedLimits) { s.learnScale(300, 1000) }, 12000},
		"cached":      {func(s *learnedLimits) { s.learnScale(12, 1000) }, 6000},
		"short":       {func(s *learnedLimits) { s.learnScale(500, 100) }, 6000},
		"tiny window": {func(s *learnedLimits) { s.learnWindow(sizes{prompt: 1000, limit: 1}, 1000, 2048, now) }, minPromptTokens},
		"no window":   {func(s *learnedLimits) { s.learnWindow(sizes{}, 1000, 2048, now) }, 6000},
		"much wider":  {func(s *learnedLimits) { s.learnWindow(sizes{prompt: 1000, limit: 1 << 30}, 1000, 2048, now) }, 6000},
		"answer":      {func(s *learnedLimits) { s.learnWindow(sizes{prompt: 4000, limit: 4000, answer: 1000}, 4000, 2048, now) }, 3000},
		"own answer":  {func(s *learnedLimits) { s.learnWindow(sizes{prompt: 4000, limit: 4000}, 4000, 500, now) }, 3500},
		"long answer": {func(s *learnedLimits) { s.learnWindow(sizes{prompt: 4000, limit: 4000}, 4000, 2048, now) }, 3000},
		"odd answer":  {func(s *learnedLimits) { s.learnWindow(sizes{prompt: 4000, limit: 4000, answer: 9000}, 4000, 2048, now) }, 3000},
	} {
		var s learnedLimits
		tc.teach(&s)
		if got := s.limits(llm.Limits{Tokens: 6000}, now).Tokens; got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
	var s learnedLimits
	s.learnWindow(sizes{prompt: 5000, limit: 4000}, 5000, 0, now)
	if got := s.limits(llm.Limits{}, now).Tokens; got != 4000 {
		t.Errorf("without a configured limit: got %d", got)
	}
	if got := s.limits(llm.Limits{}, now.Add(learnedTime)).Tokens; got != 0 {
		t.Errorf("a day later: got %d", got)
	}
}
