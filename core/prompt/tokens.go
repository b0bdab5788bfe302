package prompt

import "synthbot/core/llm"

// shortest builds about the shortest possible prompt. A limit of long characters
// is possible, one of short characters is not.
func shortest(p *Parts, l llm.Limits, reserve, short, long int) (Prompt, error) {
	for range maxBuilds {
		l.Chars = (short + long) / 2
		if _, err := build(p, l, reserve); err != nil {
			short = l.Chars
		} else {
			long = l.Chars
		}
	}
	l.Chars = long
	return build(p, l, reserve)
}

// maxBuilds bounds the tries to get below a limit.
const maxBuilds = 6

// estimateTokens estimates the tokens of a text of so many characters.
func estimateTokens(chars int) int { return (chars + llm.CharsPerToken - 1) / llm.CharsPerToken }

// fits reports whether so many characters more are within the limits.
func (p *Prompt) fits(more int) bool {
	return (p.limits.Chars <= 0 || p.Size+more <= p.limits.Chars) &&
		(p.limits.Tokens <= 0 || p.tokens()+estimateTokens(more) <= p.limits.Tokens)
}

// tokens estimates the tokens of the prompt.
func (p *Prompt) tokens() int {
	return estimateTokens(frame) +
		llm.Tokens(p.Context, p.Input, p.System, p.Actions) + llm.Tokens(p.Instructions, p.Verbose)
}
