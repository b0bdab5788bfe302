package engine

import (
	"math"
	"sync"
	"time"

	"synthbot/core/llm"
)

// Limits of what is learned.
const (
	minScale     = 0.5
	maxScale     = 4
	scaleStep    = 20 // steps between a scale of 1 and 2
	scaleBlock   = 32 // prompts after which a scale may shrink
	learnedTime  = 24 * time.Hour
	minLearned   = 200 // estimated tokens; shorter prompts are not used
	answerPart   = 4   // the answer gets at most a quarter of a learned window
	shrinkFactor = 0.7 // factor for a prompt that is too long by an unknown size
)

// learnedLimits is learned from answers and errors: how many tokens of the server an estimated token is, and how long
// prompts may be. The scale changes in steps and shrinks slowly, so that the start of a conversation's prompts changes
// rarely, and servers can cache it. Safe for concurrent use.
//
// It is not stored. After a restart, the server refuses the first prompt that is too long, at once and for free, and
// the limits are learned again. Stored limits would be wrong after a change of the server's window or tokenizer.
type learnedLimits struct {
	mu sync.Mutex
	// The highest number of the server's tokens for one estimated token, in the last
	// block of prompts and in the present one.
	before, present float64
	prompts         int

	window int       // the longest prompt in the server's tokens; 0: unknown
	until  time.Time // when window expires
}

// limits corrects the configured limits l by what was learned. Learned limits are
// estimates: a prompt that cannot be built any shorter may exceed them.
func (s *learnedLimits) limits(l llm.Limits, now time.Time) llm.Limits {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !now.Before(s.until) {
		s.window = 0
	}
	scale := 1.0 // the server's tokens for one estimated token
	most := max(s.before, s.present)
	if most > 0 {
		scale = math.Ceil(most*scaleStep) / scaleStep
	}
	configured := l.Tokens
	l.Tokens = int(float64(minLimit(l.Tokens, s.window)) / scale)
	l.Learned = l.Tokens != configured
	return l
}

// minLimit returns the smaller limit; 0 means no limit.
func minLimit(a, b int) int {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

func (s *learnedLimits) learnScale(tokens, estimate int) {
	ratio := float64(tokens) / float64(estimate)
	if estimate < minLearned || ratio < minScale/2 {
		return // some servers do not count cached tokens
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.present = max(s.present, min(max(ratio, minScale), maxScale))
	if s.prompts++; s.prompts >= scaleBlock {
		s.before, s.present, s.prompts = s.present, 0, 0
	}
}

// learnWindow learns from an error about a prompt that is too long. estimate is the prompt's estimated size,
// answer the longest answer that was requested.
func (s *learnedLimits) learnWindow(said sizes, estimate, answer int, now time.Time) {
	if said.prompt > 0 {
		s.learnScale(said.prompt, estimate)
	}
	if said.limit == 0 {
		return
	}
	if said.answer == 0 || said.answer >= said.limit {
		said.answer = min(answer, said.limit/answerPart)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.window, s.until = max(said.limit-said.answer, minPromptTokens), now.Add(learnedTime)
}
