package engine

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// sizes are what an error says about a prompt that is too long, in the server's
// tokens; 0 where it does not say.
type sizes struct {
	prompt int
	answer int // what was asked for, and counts against limit
	limit  int
}

// Words in which servers say that a prompt is too long.
var tooLongWords = []string{
	"context_length", "context length", "maximum context", "context size", "context window", "context limit",
	"prompt is too long", "too many tokens", "exceed_context", "input length", "input token", "reduce the length",
	"request too large", "maximum prompt length", "maximum model length",
	"maximum number of tokens", "number of tokens to keep", "max_new_tokens` must be",
}

// tooLongNow are the words for it in an error that speaks of a rate limit.
var tooLongNow = []string{"request too large", "context_length", "exceed_context"}

// sizePatterns find the numbers in what servers say.
type sizePatterns struct{ limit, prompt, answer []*regexp.Regexp }

// patterns are made when they are first needed. N stands for a number.
var patterns = sync.OnceValue(func() sizePatterns {
	return sizePatterns{
		limit: sizePattern(
			`maximum context length (?:is|of) N`, `N maximum context length`, `> N maximum`,
			`maximum (?:prompt|model) length (?:is|of) N`, `context limit: N \+ N > N`, `context size \(N`,
			`context (?:window|length) (?:is|of) (?:only )?N`,
			`tokens allowed \(N`, `limit of N`, `limit N`, `must be <= N`,
		),
		prompt: sizePattern(
			`N in the messages`, `N of text input`, `resulted in N`, `prompt is too long: N`, `first N tokens`,
			`given: N`, `contains (?:at least )?N (?:input )?tokens`, `request has N input tokens`,
			`context limit: N`, `\(N tokens\) exceeds`,
			`token count \(N\)`, `\(length N\)`, `requested (?:about )?N,? `, `requested N(?: tokens)?[.,]`,
		),
		answer: sizePattern(
			`N in the (?:completion|output)`, `requested N output tokens`, `context limit: N \+ N`,
			`max_completion_tokens' is too large: N`, "and N `max_new_tokens`",
		),
	}
})

// sizePattern makes a pattern of these forms, whose last number is the size.
func sizePattern(forms ...string) []*regexp.Regexp {
	list := make([]*regexp.Regexp, len(forms))
	for i, form := range forms {
		last := strings.LastIndex(form, "N")
		form = strings.ReplaceAll(form[:last], "N", `[\d,]+`) + `(\d[\d,]*)` + form[last+1:]
		list[i] = regexp.MustCompile(`(?i)` + form)
	}
	return list
}

// readSizes finds the sizes in the text of an error.
func readSizes(text string) sizes {
	p := patterns()
	return sizes{prompt: firstSize(p.prompt, text), answer: firstSize(p.answer, text), limit: firstSize(p.limit, text)}
}

func firstSize(patterns []*regexp.Regexp, text string) int {
	for _, p := range patterns {
		found := p.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		n, err := strconv.Atoi(strings.ReplaceAll(found[1], ",", ""))
		if err == nil && n > 0 && n <= math.MaxInt32 {
			return n
		}
	}
	return 0
}
