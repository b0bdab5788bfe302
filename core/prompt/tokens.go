package prompt

import "synthbot/core/llm"

// withinTokens builds a prompt that has too many tokens again, with fewer characters. Only the model knows how many
// tokens a text has, so their number is estimated, rather too high. Nearly every prompt is built only once.
func (p *Prompt) withinTokens(reserve int, following []string) (out Prompt, err error) {
	out = *p
	within := p.limits // characters alone
	within.Tokens = 0
	room := max(p.limits.Tokens-estimateTokens(reserve), 1)
	for range maxBuilds {
		n := out.tokens()
		if n <= room {
			break
		}
		long := out.chars() + reserve
		within.Chars = int(int64(out.chars())*int64(room)/int64(n)) + reserve - 1
		out, err = Build(p.parts, within, following...)
		if err != nil && p.limits.Learned {
			out, err = shortest(p.parts, within, following, long)
			break
		}
		if err != nil {
			break
		}
	}
	out.before, out.limits = p.before, p.limits
	return out, err
}

// shortest builds about the shortest possible prompt. A limit of long characters is possible, the one in l is not.
func shortest(p *Parts, l llm.Limits, following []string, long int) (Prompt, error) {
	short := l.Chars
	for range maxBuilds {
		l.Chars = (short + long) / 2
		if _, err := Build(p, l, following...); err != nil {
			short = l.Chars
		} else {
			long = l.Chars
		}
	}
	l.Chars = long
	return Build(p, l, following...)
}

const maxBuilds = 6 // to get below a limit

// estimateTokens estimates the tokens of a text of so many characters.
func estimateTokens(chars int) int { return (chars + llm.CharsPerToken - 1) / llm.CharsPerToken }

// fits reports whether so many characters more are within the limits.
func (p *Prompt) fits(more int) bool {
	return (p.limits.Chars <= 0 || p.chars()+more <= p.limits.Chars) &&
		(p.limits.Tokens <= 0 || p.tokens()+estimateTokens(more) <= p.limits.Tokens)
}

func (p *Prompt) tokens() int {
	return estimateTokens(frame) +
		llm.Tokens(p.contextJSON(), p.input.raw, p.system.raw, p.actions.raw) + llm.Tokens(p.instructions, p.verbose)
}
