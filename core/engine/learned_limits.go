package engine

import (
	"math"
	"sync"
	"time"

	"synthbot/core/llm"
)

// Bounds of what is learnt.
const (
	leastScale   = 0.5
	mostScale    = 4
	scaleStep    = 20 // steps of a scale from one to two
	scaleBlock   = 32 // prompts after which a scale may shrink
	lessonTime   = 24 * time.Hour
	leastLesson  = 200 // estimated tokens below which a prompt teaches nothing
	answerPart   = 4   // the part of a window that is left to the answer, at most
	shorterParts = 0.7 // of a prompt that was too long by an unknown size
)

// learnedLimits is what answers and errors say about the size of prompts. It moves in
// steps, and shrinks slowly, so that the beginning of a conversation's prompts does
// not move with every answer. Safe for concurrent use.
//
// It is lost at a restart. Then the first prompt that is too long is refused once
// more, which servers do at once and for nothing, and teaches the same again; to keep
// it would take a record of each engine, model and address, and a server that got
// another window or tokenizer meanwhile would be misjudged.
type learnedLimits struct {
	mu sync.Mutex
	// Tokens of the server for one that is estimated: the most of the last block of
	// prompts, and of the present one.
	before, present float64
	prompts         int

	window int       // the longest prompt in the server's tokens; 0: not known
	until  time.Time // when it is forgotten: the server may have another window by then
}

// limits are the configured limits l as the server really has them. They are
// estimates, so a prompt that cannot be built any shorter is tried all the same.
func (s *learnedLimits) limits(l llm.Limits, now time.Time) llm.Limits {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !now.Before(s.until) {
		s.window = 0
	}
	scale := 1.0 // tokens of the server for one that is estimated
	most := max(s.before, s.present)
	if most > 0 {
		scale = math.Ceil(most*scaleStep) / scaleStep
	}
	configured := l.Tokens
	l.Tokens = int(float64(minLimit(l.Tokens, s.window)) / scale)
	l.Learned = l.Tokens != configured
	return l
}

// minLimit is the smaller limit; 0 is none.
func minLimit(a, b int) int {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// counted takes in how many tokens a prompt of so many estimated ones was.
func (s *learnedLimits) counted(tokens, estimate int) {
	ratio := float64(tokens) / float64(estimate)
	if estimate < leastLesson || ratio < leastScale/2 {
		return // some servers count only what they had not cached
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.present = max(s.present, min(max(ratio, leastScale), mostScale))
	if s.prompts++; s.prompts >= scaleBlock {
		s.before, s.present, s.prompts = s.present, 0, 0
	}
}

// tooLong takes in that a prompt of so many estimated tokens was too long. answer is
// the longest answer that is asked for.
func (s *learnedLimits) tooLong(said sizes, estimate, answer int, now time.Time) {
	if said.prompt > 0 {
		s.counted(said.prompt, estimate)
	}
	if said.limit == 0 {
		return
	}
	if said.answer == 0 || said.answer >= said.limit {
		said.answer = min(answer, said.limit/answerPart)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.window, s.until = max(said.limit-said.answer, minPromptTokens), now.Add(lessonTime)
}
