package memory

import (
	"encoding/json"
	"fmt"
	"strings"

	"synthbot/core"
)

// alias says where a place goes on, and how far the numbers of its entries
// moved up there.
type alias struct {
	To    core.Path `json:"to"`
	Shift uint64    `json:"shift,omitempty"`
}

// maxHops bounds how often a place may have moved.
const maxHops = 16

// resolve follows the migrations of a path, or of one above it, to where it
// lives now.
func (t *tx) resolve(path core.Path) place {
	p := place{path: path, ids: placeKey(path)}
	if t.void(bucketAliases) {
		p.key = p.ids
		return p
	}
	for range maxHops {
		next, moved := t.hop(p.path)
		if !moved {
			break
		}
		p.path, p.shift = next.To, p.shift+next.Shift
	}
	p.key = placeKey(p.path)
	return p
}

// hop follows one migration. One that cannot be read, or leads to no path, leads
// nowhere.
func (t *tx) hop(path core.Path) (a alias, moved bool) {
	b := t.bucket(bucketAliases)
	for above := path; !above.IsZero(); above = above.Parent() {
		value := b.Get(placeKey(above))
		if value == nil {
			continue
		}
		err := json.Unmarshal(value, &a)
		if err == nil {
			a.To, err = rebase(path, above, a.To)
		}
		if err != nil {
			t.db.odd(fmt.Errorf("alias of %s: %w", above, err))
		}
		return a, err == nil
	}
	return alias{}, false
}

// interfaceOf is the path of the interface that a path belongs to.
func interfaceOf(p core.Path) core.Path {
	for !p.Parent().IsZero() {
		p = p.Parent()
	}
	return p
}

// rebase moves a path from below one root to below another.
func rebase(path, from, to core.Path) (core.Path, error) {
	return core.ParsePath(to.String() + strings.TrimPrefix(path.String(), from.String()))
}
