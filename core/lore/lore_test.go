package lore

import (
	"reflect"
	"strings"
	"testing"
)

// TestRead: keys of character cards and of world-info exports are equivalent, and a value of an
// unexpected type counts as missing.
func TestRead(t *testing.T) {
	for text, want := range map[string]Book{
		`{"scan_depth":"4","token_budget":1e9,"recursive_scanning":"yes","entries":[3,{"keys":["a",7," "],"content":"x","insertion_order":"2","priority":{}}]}`: {
			ScanDepth: 4, TokenBudget: 1e6, Recursive: true, Entries: []Entry{{Keys: []string{"a"}, Content: "x", Enabled: true, Order: 2}},
		},
		`{"entries":{"10":{"key":"b","content":"2","disable":true},"2":{"keys":"a, c","keysecondary":["d"],"selective":1,"caseSensitive":true,"content":"1","order":5}}}`: {
			Entries: []Entry{
				{Keys: []string{"a", "c"}, SecondaryKeys: []string{"d"}, Content: "1", Enabled: true, Selective: true, CaseSensitive: true, Order: 5},
				{Keys: []string{"b"}, Content: "2"},
			},
		},
		`{"entries":[{"content":"x","enabled":"false","constant":true,"use_regex":true},{"content":""},{"content":7}]}`: {
			Entries: []Entry{{Content: "x", Constant: true, Regex: true}},
		},
		`{"entries":[{"Keys":["A"],"keys":["a"],"KEYS":["B"],"content":"x","Content":"y"}]}`: {
			Entries: []Entry{{Keys: []string{"a"}, Content: "x", Enabled: true}},
		},
		`{"entries":[{"keys":" (?i)x{1,3} ","secondary_keys":"a, b","use_regex":true,"content":"x"}]}`: {
			Entries: []Entry{{Keys: []string{"(?i)x{1,3}"}, SecondaryKeys: []string{"a, b"}, Content: "x", Enabled: true, Regex: true}},
		},
		`null`: {}, `{}`: {}, `{"entries":null}`: {},
	} {
		got, err := Read([]byte(text))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\nwas read as %+v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "7", "[]", `{"entries":5}`, `{"entries":"many"}`} {
		if _, err := Read([]byte(bad)); err == nil || !strings.Contains(err.Error(), "remove it, or get the card again") {
			t.Errorf("%s: unexpected error %v", bad, err)
		}
	}
}
