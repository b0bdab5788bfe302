package sums

import (
	"errors"
	"testing"
)

var english = &Words{
	Operators: map[string]string{"plus": "+", "times": "*", "x": "*", "percent of": "%of", "of": "of", "half of": "0.5of", "and": "+", "y": "+", "und": "+",
		"square root of": "sqrt", "squared": "squared", "divided by": "/"},
	Numbers: map[string]string{"a": "1", "two": "2", "twenty": "20", "seventy": "70", "four": "4", "twelve": "12"},
	Units:   map[string]string{"km": "km", "miles": "mi", "in": "in", "cm": "cm", "c": "°C", "celsius": "°C", "fahrenheit": "°F"},
	Fillers: map[string]string{"in": "", "to": "", "are": ""},
	Dice:    map[string]string{"sided": ""},
}

func TestCompute(t *testing.T) {
	for text, want := range map[string]string{
		"2+2": "4", "12% of 80": "48/5", "12 percent of 80": "48/5", "half of 80": "40", "two times twenty": "40",
		"3x4": "12", "2^10": "1024", "-2^2": "-4", "(1+2)*3": "9", "80 + 10%": "88", "3 squared": "9",
		"square root of 16": "4", "1,234.5 + 1": "2471/2", "0.1+0.2": "3/10", "10 in to cm": "127/5",
		"100 °C in fahrenheit": "212", "miles are 1.609344 km": "1", "twenty-two plus 1": "23", "seventy-two times two": "144", "twenty y two times two": "44",
		"two und twenty times two": "44", "seventy-two - twenty-two": "50", "10-3": "7", "10-3-2": "5", "100/4": "25", "12 and 3": "15",
	} {
		a, ok := Compute(text, english)
		if !ok || a.Err != nil || a.Value.RatString() != want {
			t.Errorf("%s: got %v, %v, want %s", text, a, ok, want)
		}
	}
	for text, want := range map[string]error{"1/0": ErrZero, "0^-1": ErrZero, "9^999999999": ErrTooLarge, "2^-9223372036854775808": ErrTooLarge, "square root of -4": ErrNegative} {
		a, ok := Compute(text, english)
		if !ok || !errors.Is(a.Err, want) {
			t.Errorf("%s: got %v, %v, want %v", text, a, ok, want)
		}
	}
	for _, text := range []string{"", "5", "hello", "2 apples + 3", "10 km in celsius", "2 +", "((((1)", "1e5", "2y3", "12/12/2026", "2026-11-27", "555-1234", "24/7",
		"four-twenty-twelve plus 1", "seventy-twelve plus 1"} {
		if a, ok := Compute(text, english); ok {
			t.Errorf("%q is computed as %v", text, a)
		}
	}
}

func TestDice(t *testing.T) {
	for text, want := range map[string]string{"": "1d6", "2d6+3": "2d6+3", "d20": "1d20", "two": "2d6", "20 sided": "1d20"} {
		if r, ok := Dice(text, english); !ok || r.String() != want {
			t.Errorf("%q: got %s, want %s", text, r, want)
		}
	}
	if _, ok := Dice("the cat", english); ok {
		t.Error("text without dice is rolled")
	}
}

// FuzzCompute checks that any text is computed or rejected, in a short time.
func FuzzCompute(f *testing.F) {
	for _, text := range []string{"2^2^2^2^2^2", "----1", "1e9", "((2))%%", "10 km in miles", "999999999999 ^ 99"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, ok := Compute(text, english)
		if ok && a.Err == nil && a.Value == nil {
			t.Fatalf("%q has no value", text)
		}
	})
}
