package prompt

import (
	"unicode/utf8"

	"synthbot/core"
)

// within builds a prompt that keeps to the limit of tokens, too. How many tokens
// a text has is the model's secret until it has read it, so it is estimated, on
// the cautious side; where the estimate is over, the prompt is built again with
// fewer characters. The first building is the last one for nearly every prompt.
func within(p *Parts, l core.Limits, reserve int) (Prompt, error) {
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
		tight.Chars = int(int64(out.Size)*int64(room)/int64(n)) + reserve - 1
		out, err = build(p, tight, reserve)
	}
	out.Before, out.limits = before, l
	return out, err
}

// maxBuilds bounds the tries to come below the limit of tokens; each one takes
// off what the last one was over.
const maxBuilds = 6

// behind estimates the tokens of what travels behind a prompt.
func behind(chars int) int { return (chars*perASCII + tokenUnit - 1) / tokenUnit }

// fits reports whether so many characters more are within the limits.
func (p *Prompt) fits(more int) bool {
	return (p.limits.Chars <= 0 || p.Size+more <= p.limits.Chars) &&
		(p.limits.Tokens <= 0 || p.tokens()+behind(more) <= p.limits.Tokens)
}

// tokens estimates what the prompt is to a model.
func (p *Prompt) tokens() int {
	n := frame * perASCII
	for _, raw := range [][]byte{p.Context, p.Input, p.System, p.Actions} {
		n += weigh(raw)
	}
	return (n + weigh(p.Instructions) + weigh(p.Verbose) + tokenUnit - 1) / tokenUnit
}

// Weights of a character, in parts of a token. Measured tokenizers need, for
// compact JSON with prose in it, a token for 3.2 to 4 ASCII characters, for 1.5
// to 3 of other alphabets, and up to 1.5 tokens for one of the ideographs.
const (
	tokenUnit    = 12
	perASCII     = 4  // three to a token
	perAlphabet  = 7  // Latin with accents, Greek, Cyrillic, Arabic …
	perIdeograph = 16 // what comes behind
	firstSpecial = 0x2E80
)

func weigh[T string | []byte](text T) int {
	n := 0
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c < utf8.RuneSelf:
			n += perASCII
			i++
		case c < 0xE2: // below U+2000
			n += perAlphabet
			i += 2
			if c >= 0xE0 {
				i++
			}
		default:
			r, size := utf8.DecodeRuneInString(string(text[i:min(i+utf8.UTFMax, len(text))]))
			if r < firstSpecial {
				n += perAlphabet
			} else {
				n += perIdeograph
			}
			i += size
		}
	}
	return n
}
