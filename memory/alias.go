package memory

import (
	"encoding/json"
	"fmt"
	"strings"

	"synthbot/core"
)

// alias is the place to which another one moved, and how far the numbers of its entries
// rose.
type alias struct {
	To    core.Path `json:"to"`
	Shift uint64    `json:"shift,omitempty"`
}

// maxHops bounds how often a place may have moved.
const maxHops = 16

// resolve follows the migrations of a path, or of one above it.
func (t *tx) resolve(path core.Path) place {
	p := place{path: path, ids: placeKey(path)}
	for range maxHops {
		next, moved := t.followAlias(p.path)
		if !moved {
			break
		}
		p.path, p.shift = next.To, p.shift+next.Shift
	}
	p.key = placeKey(p.path)
	return p
}

// followAlias follows one migration, unless it cannot be read or leads to an invalid path.
func (t *tx) followAlias(path core.Path) (a alias, moved bool) {
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
			t.db.logUnreadable(fmt.Errorf("alias of %s: %w", above, err))
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
