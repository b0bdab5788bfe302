package llm

import "unicode/utf8"

// CharsPerToken is how many ASCII characters are estimated as one token.
const CharsPerToken = tokenUnit / perASCII

// Weights of a character, in parts of a token. Measured tokenizers need, for compact JSON with prose in it, a token for
// 3.2 to 4 ASCII characters, for 1.5 to 3 of other alphabets, and up to 1.5 tokens for one of the ideographs.
const (
	tokenUnit    = 12
	perASCII     = 4  // three to a token
	perAlphabet  = 7  // Latin with accents, Greek, Cyrillic, Arabic …
	perIdeograph = 16 // from firstSpecial on
	firstSpecial = 0x2E80
)

// Tokens estimates how many tokens the texts are for a language model, rather too many than
// too few. The real number depends on the model.
func Tokens(texts ...string) int {
	n := 0
	for _, text := range texts {
		n += weigh(text)
	}
	return (n + tokenUnit - 1) / tokenUnit
}

func weigh(text string) int {
	n := 0
	for i := 0; i < len(text); {
		rest := text[i:]
		if len(rest) >= 8 &&
			rest[0]|rest[1]|rest[2]|rest[3]|rest[4]|rest[5]|rest[6]|rest[7] < utf8.RuneSelf {
			n += 8 * perASCII
			i += 8
			continue
		}
		switch c := text[i]; {
		case c < utf8.RuneSelf:
			n += perASCII
			i++
		case c < 0xE2: // below U+2000: most alphabets, which need no decoding
			n += perAlphabet
			i += 2
			if c >= 0xE0 {
				i++
			}
		default:
			r, size := utf8.DecodeRuneInString(text[i:])
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
