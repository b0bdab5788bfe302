package chart

import (
	"math"
	"strconv"
	"strings"
	"testing"
)

// TestLabels checks that the labels of an axis are correct and short.
func TestLabels(t *testing.T) {
	for _, m := range []float64{1, 2, 4, 5} {
		for k := range 9 {
			top := m * math.Pow10(k)
			f := Figures{Labels: []string{""}, Series: []Series{{Values: []float64{top}}}}
			for i, tick := range f.Draw().Up {
				value, unit, _ := strings.Cut(tick.Text, " ")
				got, err := strconv.ParseFloat(value, 64)
				got *= map[string]float64{"": 1, "k": 1e3, "M": 1e6}[unit]
				if want := top * float64(i) / chartSteps; got != want || err != nil || len(tick.Text) > 7 || strings.Contains(value, "e") {
					t.Errorf("label of %v: got %q", want, tick.Text)
				}
			}
		}
	}
	f := Figures{Labels: []string{"x"}, Series: []Series{{Name: "tokens", Values: []float64{1234567}}}}
	if d := f.Draw(); d.Rows[0].Cells[0] != "1234567" || d.Bars[0].Tip != "x, tokens: 1234567" {
		t.Errorf("full value: got %q and %q", d.Rows[0].Cells[0], d.Bars[0].Tip)
	}
	f.Show = Money
	if d := f.Draw(); d.Rows[0].Cells[0] != "1234567.0000" || d.Up[chartSteps].Text != "2 M" || d.Up[0].Text != "0.0000" {
		t.Errorf("amount of money: got %q, axis up to %v", d.Rows[0].Cells[0], d.Up)
	}
}
