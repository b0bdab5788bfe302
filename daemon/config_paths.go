package daemon

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"synthbot/config"
	"synthbot/core"
)

// checkPaths lets each path of the file begin with the name that its interface has
// now, where an old file writes a former one, and finds those that name none: what
// is denied there would be denied nowhere.
func (c *Config) checkPaths(d *config.Document) {
	mend := func(p *core.Path, at ...any) {
		first := p.Interface()
		_, table := c.kinds[first]
		if _, driver := findDriver(first); driver || table || p.IsZero() {
			return
		}
		now, ok := c.formerly(first)
		if !ok {
			d.Fault("begins with "+first+", which is no interface; there is "+strings.Join(c.interfaceNames(), ", "), at...)
			return
		}
		if moved, err := core.MakePath(append([]string{now}, p.Elements()[1:]...)...); err == nil {
			*p = moved
		}
	}
	for i := range c.Bot.Admins {
		mend(&c.Bot.Admins[i].Path, "bot", "admins", i)
	}
	for key, list := range map[string][]core.Path{"allow": c.Access.Allow, "deny": c.Access.Deny, "moderators": c.Access.Moderators} {
		for i := range list {
			mend(&list[i], "access", key, i)
		}
	}
	for i, p := range c.Access.Moderators {
		if !p.IsZero() && !p.IsPerson() {
			d.Fault(noPerson, "access", "moderators", i)
		}
	}
	place := func(p *core.Path, at ...any) {
		mend(p, at...)
		if e := p.Elements(); len(e) > 1 && e[1] == "@user" {
			d.Fault("names people, and nothing of this hangs on them; write the path of a place, as /id tells it there", at...)
		}
	}
	for i := range c.Shares {
		for j := range c.Shares[i].Paths {
			place(&c.Shares[i].Paths[j], "share", i, "paths", j)
		}
	}
	for i := range c.Budget.Places {
		place(&c.Budget.Places[i].Path, "budget", "place", i, "path")
	}
	for i := range c.Overrides {
		place(&c.Overrides[i].Path, "override", i, "path")
	}
	for i := range c.Grants {
		place(&c.Grants[i].From, "grant", i, "from")
		place(&c.Grants[i].To, "grant", i, "to")
	}
	c.checkTwice(d)
}

// checkTwice finds overrides of the same place: which of them wins would hang on
// the setting.
func (c *Config) checkTwice(d *config.Document) {
	seen := make(map[core.Path]int)
	for i, o := range c.Overrides {
		if first, twice := seen[o.Path]; twice && !o.Path.IsZero() {
			d.Fault(fmt.Sprintf("is that of override[%d], too; write both in one", first), "override", i, "path")
		} else {
			seen[o.Path] = i
		}
	}
}

// interfaceNames are those of the file, and the drivers': a file may speak of what it
// does not start.
func (c *Config) interfaceNames() []string {
	names := slices.Collect(maps.Keys(c.kinds))
	for _, d := range drivers {
		names = append(names, d.kind)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// formerly returns the interface that was called so in older files: "telegram_bot",
// "discord_bot", "discord_interface". Where the file gives it another name and has
// no other of its type, that name.
func (c *Config) formerly(name string) (now string, ok bool) {
	stem, cut := strings.CutSuffix(name, "_bot")
	if !cut {
		stem, cut = strings.CutSuffix(name, "_interface")
	}
	if _, known := findDriver(stem); !cut || !known {
		return "", false
	}
	if _, exact := c.kinds[stem]; exact {
		return stem, true
	}
	now = stem
	for table, kind := range c.kinds {
		if kind == stem && now != stem {
			return stem, true // there are several
		} else if kind == stem {
			now = table
		}
	}
	return now, true
}
