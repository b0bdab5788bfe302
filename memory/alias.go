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
func (t *tx) resolve(path core.Path) (place, error) {
	p := place{path: path, ids: placeKey(path)}
	if t.void(bucketAliases) {
		p.key = p.ids
		return p, nil
	}
	for range maxHops {
		next, moved, err := t.hop(p.path)
		if err != nil {
			return place{}, err
		}
		if !moved {
			break
		}
		p.path, p.shift = next.To, p.shift+next.Shift
	}
	p.key = placeKey(p.path)
	return p, nil
}

// hop follows one migration.
func (t *tx) hop(path core.Path) (alias, bool, error) {
	b := t.bucket(bucketAliases)
	for above := path; !above.IsZero(); above = above.Parent() {
		value := b.Get(placeKey(above))
		if value == nil {
			continue
		}
		var a alias
		if err := json.Unmarshal(value, &a); err != nil {
			return alias{}, false, fmt.Errorf("alias of %s: %w", above, err)
		}
		var err error
		a.To, err = rebase(path, above, a.To)
		return a, err == nil, err
	}
	return alias{}, false, nil
}

// rebase moves a path from below one root to below another.
func rebase(path, from, to core.Path) (core.Path, error) {
	return core.ParsePath(to.String() + strings.TrimPrefix(path.String(), from.String()))
}
