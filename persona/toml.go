package persona

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"synthbot/core/txt"
)

// Limits of a persona file.
const (
	maxTOML   = 1 << 20 // bytes
	maxName   = 100     // characters of a name or alias
	maxField  = 16_000  // characters of one text
	maxItem   = 500     // characters of one entry of a list
	maxItems  = 100     // entries of a list
	maxFaults = 20      // as many are told at once
)

// reading is a persona file on its way to a Persona.
type reading struct {
	file   string
	parser unstable.Parser
	texts  map[string]*string
	lists  map[string]*[]string
	seen   map[string]bool
	faults []error
}

func parseTOML(file string, data []byte) (*Persona, error) {
	if len(data) > maxTOML {
		return nil, tooLarge(file, int64(len(data)), maxTOML)
	}
	p := new(Persona)
	r := &reading{file: file, seen: map[string]bool{}}
	r.texts = map[string]*string{
		"name": &p.Name, "profile": &p.Profile, "speaking_style": &p.SpeakingStyle,
		"example_dialogue": &p.ExampleDialogue, "greeting": &p.Greeting,
	}
	r.lists = map[string]*[]string{
		"aliases": &p.Aliases, "likes": &p.Likes, "dislikes": &p.Dislikes, "interests": &p.Interests,
	}
	r.parser.Reset(data)
	for len(r.faults) < maxFaults && r.parser.NextExpression() {
		r.expression(r.parser.Expression())
	}
	if r.parser.Error() != nil {
		r.syntax(data)
	} else if !r.seen["name"] && len(r.faults) < maxFaults {
		r.faults = append(r.faults, fmt.Errorf("%s:1: name: missing: add name = \"…\"", file))
	}
	if len(r.faults) > 0 {
		return nil, errors.Join(r.faults...)
	}
	return p, nil
}

// syntax reports where the file stops to be TOML.
func (r *reading) syntax(data []byte) {
	line, why := 1, r.parser.Error().Error()
	var any map[string]any
	if d, ok := errors.AsType[*toml.DecodeError](toml.Unmarshal(data, &any)); ok {
		line, _ = d.Position()
		why = d.Error()
	}
	why = strings.TrimPrefix(why, "toml: ")
	if len(r.seen) == 0 {
		why += " (a persona file is TOML and begins with name = \"…\")"
	}
	r.faults = append(r.faults, fmt.Errorf("%s:%d: not TOML: %s", r.file, line, oneLine(why)))
}

// expression takes one "key = value" or "[table]".
func (r *reading) expression(n *unstable.Node) {
	key, at := r.key(n)
	switch {
	case n.Kind != unstable.KeyValue:
		r.fault(at, key, "a persona file has no tables: remove [%s] and what stands below", key)
		r.skip()
	case r.seen[key]:
		r.fault(at, key, "given twice: keep one")
	case r.texts[key] != nil:
		r.seen[key] = true
		r.text(key, at, n.Value(), r.texts[key])
	case r.lists[key] != nil:
		r.seen[key] = true
		r.list(key, at, n.Value(), r.lists[key])
	default:
		r.fault(at, key, "no such key: %s", r.mend(key))
	}
}

// skip passes over what stands in a table: one fault is enough for all of it.
func (r *reading) skip() {
	for r.parser.NextExpression() {
		if n := r.parser.Expression(); n.Kind != unstable.KeyValue {
			key, at := r.key(n)
			r.fault(at, key, "a persona file has no tables: remove [%s] and what stands below", key)
			if len(r.faults) >= maxFaults {
				return
			}
		}
	}
}

// key spells the dotted key of n and says where it stands.
func (r *reading) key(n *unstable.Node) (string, unstable.Range) {
	var parts []string
	var at unstable.Range
	for it := n.Key(); it.Next(); {
		if len(parts) == 0 {
			at = it.Node().Raw
		}
		parts = append(parts, string(it.Node().Data))
	}
	return strings.Join(parts, "."), at
}

func (r *reading) fault(at unstable.Range, key, format string, args ...any) {
	line := r.parser.Shape(at).Start.Line
	r.faults = append(r.faults, fmt.Errorf("%s:%d: %s: %s", r.file, line, txt.Clip(oneLine(key), maxName), fmt.Sprintf(format, args...)))
}

func (r *reading) text(key string, at unstable.Range, v *unstable.Node, to *string) {
	if v.Kind != unstable.String {
		r.fault(at, key, "%s, but a text is wanted: write %s = \"…\"", described(v.Kind), key)
		return
	}
	limit := maxField
	if key == "name" {
		limit = maxName
	}
	*to = string(v.Data)
	r.length(at, key, *to, limit)
	if key == "name" && oneLine(*to) == "" {
		r.fault(at, key, "empty: say what people call the bot")
	}
}

func (r *reading) list(key string, at unstable.Range, v *unstable.Node, to *[]string) {
	if v.Kind != unstable.Array {
		r.fault(at, key, "%s, but a list of texts is wanted: write %s = [\"…\", \"…\"]", described(v.Kind), key)
		return
	}
	limit := maxItem
	if key == "aliases" {
		limit = maxName
	}
	for it := v.Children(); it.Next(); {
		item := it.Node()
		if item.Kind != unstable.String {
			r.fault(at, key, "entry %d is %s, but a text is wanted: put it in quotes", len(*to)+1, described(item.Kind))
			return
		}
		*to = append(*to, string(item.Data))
		r.length(at, fmt.Sprintf("%s[%d]", key, len(*to)-1), string(item.Data), limit)
		if len(*to) > maxItems {
			r.fault(at, key, "more than %d entries: keep the best", maxItems)
			return
		}
	}
}

func (r *reading) length(at unstable.Range, key, text string, limit int) {
	if n := utf8.RuneCountInString(text); n > limit {
		r.fault(at, key, "%d characters, at most %d are allowed: shorten it", n, limit)
	}
}

func described(k unstable.Kind) string {
	switch k {
	case unstable.String:
		return "a text"
	case unstable.Array:
		return "a list"
	case unstable.InlineTable:
		return "a table"
	case unstable.Bool:
		return "true or false"
	case unstable.Integer, unstable.Float:
		return "a number"
	}
	return "a date or time"
}

// mend names the key that was probably meant, or else all that there are.
func (r *reading) mend(key string) string {
	var keys []string
	for k := range r.texts {
		keys = append(keys, k)
	}
	for k := range r.lists {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	best, least := "", 4
	for _, k := range keys {
		if d := distance(squeeze(key), squeeze(k)); d < least && d < len(k) {
			best, least = k, d
		}
	}
	if best != "" {
		return "did you mean " + best + "?"
	}
	return "there are " + strings.Join(keys, ", ")
}

func squeeze(key string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "", ".", "").Replace(strings.ToLower(txt.Clip(key, maxName)))
}

// distance counts the letters to change, add or take away between a and b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0]++
		for j := range len(b) {
			here := row[j+1]
			cost := before
			if a[i] != b[j] {
				cost++
			}
			row[j+1] = min(cost, here+1, row[j]+1)
			before = here
		}
	}
	return row[len(b)]
}
