package prompt

import (
	"synthbot/core/llm"
)

// buildWithin builds a prompt that also keeps to the limit of tokens. Only the model knows how many tokens a text has,
// so their number is estimated, rather too high. If the estimate is over the limit, the prompt is built again with
// fewer characters. Nearly every prompt is built only once.
func buildWithin(p *Parts, l llm.Limits, reserve int) (Prompt, error) {
	out, err := build(p, l, reserve)
	if l.Tokens <= 0 {
		return out, err
	}
	before, tight, room := out.Before, l, max(l.Tokens-estimateTokens(reserve), 1)
	for range maxBuilds {
		n := 0
		if err == nil {
			n = out.tokens()
		}
		if n <= room {
			break
		}
		long := out.Size + reserve
		tight.Chars = int(int64(out.Size)*int64(room)/int64(n)) + reserve - 1
		if out, err = build(p, tight, reserve); err != nil && l.Learned {
			out, err = shortest(p, l, reserve, tight.Chars, long)
			break
		}
	}
	out.Before, out.limits = before, l
	return out, err
}

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
