package prompt

import (
	"synthbot/core/llm"
)

// within builds a prompt that keeps to the limit of tokens, too. How many tokens a text has is the model's secret
// until it has read it, so it is estimated, on the cautious side; where the estimate is over, the prompt is built
// again with fewer characters. The first building is the last one for nearly every prompt.
func within(p *Parts, l llm.Limits, reserve int) (Prompt, error) {
	out, err := build(p, l, reserve)
	if l.Tokens <= 0 {
		return out, err
	}
	before, tight, room := out.Before, l, max(l.Tokens-behind(reserve), 1)
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

// shortest builds about the shortest prompt there is. One of long characters can
// be built, one of short characters cannot.
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

// maxBuilds bounds the tries to come below the limit of tokens; each one takes off what the last one was over.
const maxBuilds = 6

// behind estimates the tokens of what travels behind a prompt.
func behind(chars int) int { return (chars + llm.CharsPerToken - 1) / llm.CharsPerToken }

// fits reports whether so many characters more are within the limits.
func (p *Prompt) fits(more int) bool {
	return (p.limits.Chars <= 0 || p.Size+more <= p.limits.Chars) &&
		(p.limits.Tokens <= 0 || p.tokens()+behind(more) <= p.limits.Tokens)
}

// tokens estimates what the prompt is to a model.
func (p *Prompt) tokens() int {
	return behind(frame) + llm.Tokens(p.Context, p.Input, p.System, p.Actions) + llm.Tokens(p.Instructions, p.Verbose)
}
