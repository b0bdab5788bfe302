package action

import (
	"encoding/json"
	"math/big"
	"strings"
)

// rational reads a number exactly; ok is false for one out of all bounds.
func rational(n json.Number) (*big.Rat, bool) {
	s := string(n)
	_, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	if len(s) > 400 || len(strings.TrimLeft(exponent, "+-0")) > 3 {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}

// whole returns a number that was written as a fraction or with an exponent,
// but is an integer, in the way of integers.
func whole(v any) (json.Number, bool) {
	n, _ := v.(json.Number)
	if !strings.ContainsAny(string(n), ".eE") {
		return "", false
	}
	r, ok := rational(n)
	if !ok || !r.IsInt() || r.Num().BitLen() > 64 {
		return "", false
	}
	return json.Number(r.Num().String()), true
}
