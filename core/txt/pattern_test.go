package txt

import "testing"

// TestPattern: an expression is compiled once, when it is first used, and a wrong one
// panics then.
func TestPattern(t *testing.T) {
	digits, wrong := Pattern(`\d+`), Pattern(`(`)
	first := digits()
	if first != digits() || first.FindString("a12b") != "12" {
		t.Errorf("%v", first)
	}
	defer func() {
		if recover() == nil {
			t.Error("a wrong expression was compiled")
		}
	}()
	wrong()
}
