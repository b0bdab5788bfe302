package txt

import "testing"

// TestPattern: an expression is compiled once, on first use. An invalid one panics then.
func TestPattern(t *testing.T) {
	digits, wrong := Pattern(`\d+`), Pattern(`(`)
	first := digits()
	if first != digits() || first.FindString("a12b") != "12" {
		t.Errorf("unexpected expression %v", first)
	}
	defer func() {
		if recover() == nil {
			t.Error("an invalid expression did not panic")
		}
	}()
	wrong()
}
