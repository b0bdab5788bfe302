// Package sums computes sums and converts units that people write in a chat: "12% of 80", "10 km in miles", with
// digits or words. Only square roots are rounded. The caller passes the words of a language.
package sums

import (
	"cmp"
	"errors"
	"math/big"
	"slices"
	"strings"
	"unicode"

	"synthbot/core/txt"
)

// Answer is the result of a sum or a conversion, or an error.
type Answer struct {
	From  string // what was converted: "10 km"
	Value *big.Rat
	Unit  string
	Err   error
}

// Words holds the folded words of a language and their meanings.
type Words struct {
	Operators map[string]string // + - * / ^ % ( ) of sqrt squared cubed, a number, or skip
	Numbers   map[string]string
	Units     map[string]string // the symbols of measures
	Fillers   map[string]string // words between two units
	Dice      map[string]string // words between the numbers of dice
	Comma     bool              // whether the decimal mark is a comma
}

// Errors of sums. errNoSum means that a text is not a sum.
var (
	errNoSum    = errors.New("not a sum")
	ErrZero     = errors.New("division by zero")
	ErrNegative = errors.New("square root of a negative number")
	ErrTooLarge = errors.New("too large")
	ErrCold     = errors.New("below absolute zero")
)

const maxBits = 400 // of a numerator or denominator

// Compute computes a text that is a sum ("12% of 80") or a conversion ("10 km in miles") and nothing else. It returns
// false for other texts.
func Compute(text string, w *Words) (Answer, bool) {
	if len(text) > 200 || named().MatchString(strings.TrimSpace(text)) {
		return Answer{}, false
	}
	if a, ok := convert(text, w); ok {
		return a, true
	}
	if w.Comma {
		text = spaced().ReplaceAllString(text, "$1$2")
	}
	p := sum{tokens: compound(lex(text, w))}
	if len(p.tokens) < 2 || p.tokens[0].op == "%" {
		return Answer{}, false
	}
	value := p.expression()
	if p.err == nil && p.at < len(p.tokens) || p.err == errNoSum || p.operations == 0 {
		return Answer{}, false
	}
	return Answer{Value: value, Err: p.err}, true
}

// named matches numbers that are not sums: dates, telephone numbers, "24/7", times like "15:00".
var named = txt.Pattern(`^(.*\b\d{1,2}:00\b.*|24/7|` +
	`\d{4}([-/.])\d{1,2}([-/.])\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}|\d{2,3}-\d{4,})$`)

// spaced matches a number with a space after its thousands.
var spaced = txt.Pattern(`\b(\d{1,3}) (\d{3})\b`)

// token is a number, an operator or a bracket of a sum.
type token struct {
	number *big.Rat
	op     string
	word   bool // a number in words, or a word like "and" that may be within one
}

// hyphen is the operator for a hyphen between words.
const hyphen = "hyphen"

// compound joins numbers that are written in several words: "forty-two", "vingt et un". Any other hyphen between
// words stays a token, which no sum may contain.
func compound(tokens []token) []token {
	for i := 1; i+1 < len(tokens); i++ {
		a, join, b := tokens[i-1], tokens[i], tokens[i+1]
		if !join.word || !a.word || !b.word || a.number == nil || b.number == nil {
			continue
		}
		tens, ones := a.number, b.number
		if tens.Cmp(ones) < 0 { // fünfundzwanzig
			tens, ones = ones, tens
		}
		whole := tens.IsInt() && ones.IsInt()
		if whole && tens.Num().Int64()%10 == 0 && tens.Num().Int64() < 100 && ones.Num().Int64() < 10 {
			sum := token{number: new(big.Rat).Add(tens, ones), word: true}
			tokens = slices.Concat(tokens[:i-1], []token{sum}, tokens[i+2:])
			i--
		}
	}
	return tokens
}

// lex splits a sum into tokens. At the first word that no sum may contain, it adds an empty token and stops.
func lex(text string, w *Words) (tokens []token) {
	text = " " + strings.Join(strings.Fields(txt.Fold(text)), " ") + " "
	text = strings.TrimRight(strings.ReplaceAll(text, "**", "^"), "= ")
	for i := 0; i < len(text); {
		switch r := rune(text[i]); {
		case r == ' ':
			i++
		case unicode.IsDigit(r):
			digits := numeral().FindString(text[i:])
			tokens = append(tokens, token{number: readNumber(digits, w)})
			i += len(digits)
		default:
			op, n := operator(text[i:], w)
			if n == 0 || unicode.IsLetter(r) && r != 'x' && isDigit(text, i-1) && isDigit(text, i+n) { // 1e5
				return append(tokens, token{})
			}
			if r == '-' && isLetter(text, i-1) && isLetter(text, i+1) {
				op = hyphen
			}
			more := tokensOf(op)
			for j := range more {
				inNumber := op == hyphen || slices.Contains([]string{"and", "und", "et", "y", "e"}, text[i:i+n])
				more[j].word = inNumber || unicode.IsLetter(r) && more[j].number != nil
			}
			tokens = append(tokens, more...)
			i += n
		}
	}
	return tokens
}

func isDigit(text string, i int) bool {
	return i >= 0 && i < len(text) && unicode.IsDigit(rune(text[i]))
}

func isLetter(text string, i int) bool {
	return i >= 0 && i < len(text) && (unicode.IsLetter(rune(text[i])) || text[i] >= 0x80)
}

// numeral matches a number with its marks.
var numeral = txt.Pattern(`^\d+([.,]\d+)*`)

// tokensOf returns the tokens of a word: an operator or a number, perhaps with an "of" after it ("half of").
func tokensOf(means string) []token {
	if means == "skip" {
		return nil
	}
	before, of := strings.CutSuffix(means, "of")
	if of && before != "" {
		return append(tokensOf(before), token{op: "of"})
	}
	value, ok := new(big.Rat).SetString(means)
	if ok {
		return []token{{number: value}}
	}
	return []token{{op: means}}
}

// operator reads a sign, or the longest word for an operator or a number.
func operator(text string, w *Words) (op string, n int) {
	for sign, means := range map[string]string{
		"+": "+", "-": "-", "*": "*", "/": "/", "^": "^", "%": "%", "(": "(", ")": ")",
		"×": "*", "·": "*", "÷": "/", ":": "/", "−": "-", "–": "-", "√": "sqrt",
	} {
		if strings.HasPrefix(text, sign) {
			return means, len(sign)
		}
	}
	for _, list := range []map[string]string{w.Operators, w.Numbers} {
		for word, means := range list {
			ends := len(text) == len(word) || len(text) > len(word) && !unicode.IsLetter(rune(text[len(word)]))
			x := word == "x" && len(text) > 1 && unicode.IsDigit(rune(text[1]))
			if len(word) > n && strings.HasPrefix(text, word) && (ends || x) {
				op, n = means, len(word)
			}
		}
	}
	return op, n
}

// readNumber reads numbers with decimal points or commas: "1,234.5", "1.234,5", "0,5". A single mark before three
// digits separates thousands if it does so in the language, or if the digits are zeros.
func readNumber(text string, w *Words) *big.Rat {
	decimal := strings.LastIndexAny(text, ".,")
	if decimal >= 0 {
		mark := text[decimal]
		alone := strings.Count(text, string(mark)) == 1
		thousands := len(text)-decimal == 4 && !strings.HasPrefix(text, "0") && decimal <= 3 &&
			((mark == ',') == (!w.Comma) || strings.HasSuffix(text, "000")) && strings.IndexAny(text, ".,") == decimal
		if !alone || thousands {
			decimal = -1
		}
	}
	whole, fraction := text, ""
	if decimal >= 0 {
		whole, fraction = text[:decimal], "."+text[decimal+1:]
	}
	digits := strings.NewReplacer(".", "", ",", "").Replace(whole) + fraction
	value, ok := new(big.Rat).SetString(digits)
	if !ok || len(digits) > 60 {
		return nil
	}
	return value
}

// sum parses and computes tokens by the usual precedence. It stops at its first error.
type sum struct {
	tokens     []token
	at         int
	operations int
	err        error
}

// fail records the first error and returns 0 as the value.
func (p *sum) fail(err error) *big.Rat {
	p.err = cmp.Or(p.err, err)
	return new(big.Rat)
}

func (p *sum) op(ops ...string) string {
	if p.err == nil && p.at < len(p.tokens) && slices.Contains(ops, p.tokens[p.at].op) {
		p.at++
		return p.tokens[p.at-1].op
	}
	return ""
}

func (p *sum) expression() *big.Rat {
	value := p.product()
	for op := p.op("+", "-"); op != ""; op = p.op("+", "-") {
		before := p.at
		right := p.product()
		if p.at == before+2 && p.tokens[p.at-1].op == "%" { // 80 + 10% is 88
			right.Mul(value, right)
		}
		value = p.apply(op, value, right)
	}
	return value
}

func (p *sum) product() *big.Rat {
	value := p.power()
	for p.err == nil {
		op := p.op("*", "/", "of")
		isBracket := p.at < len(p.tokens) && p.tokens[p.at].op == "("
		if op == "" && !isBracket {
			break
		}
		value = p.apply(op, value, p.power())
	}
	return value
}

func (p *sum) power() *big.Rat {
	if p.op("-") != "" {
		return new(big.Rat).Neg(p.power())
	}
	base := p.atom()
	if p.op("^") == "" {
		return base
	}
	return p.apply("^", base, p.power())
}

// atom reads a number, a bracket or a root, with the signs after it. The length of a sum limits the recursion.
func (p *sum) atom() (value *big.Rat) {
	switch {
	case p.op("sqrt") != "":
		p.operations++
		value = p.root(p.power())
	case p.op("(") != "":
		value = p.expression()
		if p.op(")") == "" {
			p.fail(errNoSum)
		}
	case p.err == nil && p.at < len(p.tokens) && p.tokens[p.at].number != nil:
		value = p.tokens[p.at].number
		p.at++
	default:
		return p.fail(errNoSum)
	}
	for {
		switch p.op("%", "squared", "cubed") {
		case "%":
			value = p.apply("/", value, big.NewRat(100, 1))
		case "squared":
			value = p.apply("^", value, big.NewRat(2, 1))
		case "cubed":
			value = p.apply("^", value, big.NewRat(3, 1))
		default:
			return value
		}
	}
}

func (p *sum) apply(op string, a, b *big.Rat) *big.Rat {
	p.operations++
	value := new(big.Rat)
	switch op {
	case "+":
		value.Add(a, b)
	case "-":
		value.Sub(a, b)
	case "*", "of", "": // 2(3+4)
		value.Mul(a, b)
	case "/":
		if b.Sign() == 0 {
			return p.fail(ErrZero)
		}
		value.Quo(a, b)
	case "^":
		return p.raise(a, b)
	}
	return p.within(value)
}

func (p *sum) within(value *big.Rat) *big.Rat {
	if value.Num().BitLen() > maxBits || value.Denom().BitLen() > maxBits {
		return p.fail(ErrTooLarge)
	}
	return value
}

// raise computes integer powers, and the power of one half as a square root.
func (p *sum) raise(a, b *big.Rat) *big.Rat {
	if b.Cmp(big.NewRat(1, 2)) == 0 {
		return p.root(a)
	}
	if !b.IsInt() || !b.Num().IsInt64() {
		return p.fail(ErrTooLarge)
	}
	n := b.Num().Int64()
	if n < 0 {
		if a.Sign() == 0 {
			return p.fail(ErrZero)
		}
		a, n = new(big.Rat).Inv(a), -n
	}
	size := int64(max(a.Num().BitLen(), a.Denom().BitLen()))
	switch {
	case size <= 1: // for 0, 1 and -1 only the parity of the power matters
		n = min(n, 2-n%2)
	case n < 0, n > maxBits, size*n > 2*maxBits: // n < 0: -n of the least int64 is itself
		return p.fail(ErrTooLarge)
	}
	e := big.NewInt(n)
	return p.within(new(big.Rat).SetFrac(new(big.Int).Exp(a.Num(), e, nil), new(big.Int).Exp(a.Denom(), e, nil)))
}

func (p *sum) root(value *big.Rat) *big.Rat {
	if value.Sign() < 0 {
		return p.fail(ErrNegative)
	}
	const digits = 60 // exact decimals of a square root
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(digits), nil)
	scaled := new(big.Int).Mul(value.Num(), new(big.Int).Mul(scale, scale))
	scaled.Quo(scaled, value.Denom())
	return new(big.Rat).SetFrac(scaled.Sqrt(scaled), scale)
}

// measure is a unit, with its factor and, for temperatures, its zero, in the base unit of its kind.
type measure struct {
	kind, symbol string
	factor       *big.Rat
	zero         *big.Rat
}

// measures returns the units by the keys that the books use.
func measures() map[string]measure {
	all := make(map[string]measure)
	kind := ""
	for field := range strings.FieldsSeq(`length: m=1 km=1000 cm=1/100 mm=1/1000 mi=1609.344 yd=0.9144
		ft=0.3048 in=0.0254 nmi=1852
		mass: kg=1 g=1/1000 mg=1/1000000 t=1000 lb=0.45359237 Pfund=1/2 oz=0.028349523125 st=6.35029318
		volume: l=1 ml=1/1000 cl=1/100 dl=1/10 gal=3.785411784 qt=0.946352946 pt=0.473176473
		cup=0.2365882365 tbsp=0.01478676478125 tsp=0.00492892159375 fl_oz=0.0295735295625
		speed: km/h=1 mph=1.609344 m/s=3.6 kn=1.852 area: m²=1 km²=1000000 ha=10000 ac=4046.8564224 ft²=0.09290304
		time: s=1 min=60 h=3600 d=86400 wk=604800 data: B=1 kB=1000 MB=1000000 GB=1000000000 TB=1000000000000
		temperature: °C=1 °F=5/9 K=1`) {
		if strings.HasSuffix(field, ":") {
			kind = field
			continue
		}
		symbol, factor, _ := strings.Cut(field, "=")
		m := measure{kind: kind, symbol: strings.ReplaceAll(symbol, "_", " "), zero: new(big.Rat)}
		m.factor, _ = new(big.Rat).SetString(factor)
		switch symbol {
		case "°F":
			m.zero = new(big.Rat).SetFrac64(-160, 9)
		case "K":
			m.zero = new(big.Rat).SetFrac64(-27315, 100)
		}
		all[symbol] = m
	}
	return all
}

// convert computes a text with a number and two units, such as "10 km in miles" or "miles are 10 km".
func convert(text string, w *Words) (Answer, bool) {
	var number *big.Rat
	var units []measure
	numberAt := 0
	text = strings.NewReplacer("°C", " celsius", "°F", " fahrenheit", "°", " ", "km/h", " kmh ", "m/s", " mps ").
		Replace(text)
	words := convertWords(text)
	for i, each := range words {
		n := ReadWord(each, w)
		u, ok := w.Units[each]
		_, fills := w.Fillers[each]
		if fills && i+1 < len(words) && (i == 0 || ReadWord(words[i-1], w) == nil) {
			ok = false // "in" is not an inch
		}
		switch {
		case ok && n == nil && len(units) < 2:
			units = append(units, measures()[u])
		case n != nil && number == nil:
			number, numberAt = n, len(units)
		case !fills:
			return Answer{}, false
		}
	}
	if len(units) != 2 || units[0].kind != units[1].kind || number == nil && numberAt != 0 {
		return Answer{}, false
	}
	from, to := units[0], units[1]
	if number == nil { // "how many feet in a mile"
		number, numberAt = big.NewRat(1, 1), 1
	}
	if numberAt == 1 {
		from, to = to, from
	}
	value := new(big.Rat).Mul(number, from.factor)
	value.Add(value, from.zero)
	var err error
	if from.kind == "temperature:" && value.Cmp(measures()["K"].zero) < 0 {
		err = ErrCold
	}
	value.Sub(value, to.zero).Quo(value, to.factor)
	shown, _ := Decimal(number, 6, ".")
	return Answer{From: shown + " " + from.symbol, Value: value, Unit: to.symbol, Err: err}, true
}

// convertWords splits a text into words, and "10km" into a number and a unit.
func convertWords(text string) (words []string) {
	for _, field := range strings.Fields(txt.Fold(text)) {
		field = strings.Trim(field, ",;:?!.\"'()")
		end := strings.LastIndexAny(field, "0123456789") + 1
		if end > 0 {
			words = append(words, field[:end])
		}
		if end < len(field) {
			words = append(words, field[end:])
		}
	}
	return words
}

// ReadWord reads a number, in digits or in words.
func ReadWord(word string, w *Words) *big.Rat {
	word = cmp.Or(w.Numbers[word], word)
	above, below, isFraction := strings.Cut(word, "/")
	if isFraction {
		a, b := ReadWord(above, w), ReadWord(below, w)
		if a == nil || b == nil || b.Sign() == 0 {
			return nil
		}
		return new(big.Rat).Quo(a, b)
	}
	digits, minus := strings.CutPrefix(word, "-")
	if strings.Trim(digits, "0123456789.,") != "" || strings.Trim(digits, ".,") == "" {
		return nil
	}
	value := readNumber(digits, w)
	if minus && value != nil {
		value.Neg(value)
	}
	return value
}

// Decimal writes a number with at most digits decimals. exact is false if it is rounded.
func Decimal(value *big.Rat, digits int, mark string) (text string, exact bool) {
	text = strings.TrimRight(strings.TrimRight(value.FloatString(digits), "0"), ".")
	if text == "-0" {
		text = "0"
	}
	back, _ := new(big.Rat).SetString(text)
	return strings.Replace(text, ".", mark, 1), back.Cmp(value) == 0
}
