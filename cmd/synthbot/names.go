package main

import (
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
	for i := range c.Shares {
		for j := range c.Shares[i].Paths {
			mend(&c.Shares[i].Paths[j], "share", i, "paths", j)
		}
	}
	for i := range c.Budget.Places {
		mend(&c.Budget.Places[i].Path, "budget", "place", i, "path")
	}
	for i := range c.Overrides {
		mend(&c.Overrides[i].Path, "override", i, "path")
	}
	for i := range c.Grants {
		mend(&c.Grants[i].From, "grant", i, "from")
		mend(&c.Grants[i].To, "grant", i, "to")
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
