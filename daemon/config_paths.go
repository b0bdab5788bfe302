package daemon

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"synthbot/config"
	"synthbot/core"
)

// checkPaths finds paths that begin with an unknown interface. A path of an older file may
// begin with the former name of an interface; it gets the present one.
func (c *Config) checkPaths(d *config.Document) {
	check := func(p *core.Path, at ...any) {
		first := p.Interface()
		_, table := c.kinds[first]
		if _, ok := findDriver(first); ok || table || p.IsZero() {
			return
		}
		now, ok := c.formerly(first)
		if !ok {
			all := strings.Join(c.interfaceNames(), ", ")
			d.Fault("begins with "+first+", which is not an interface; there is "+all, at...)
			return
		}
		moved, err := core.MakePath(append([]string{now}, p.Elements()[1:]...)...)
		if err == nil {
			*p = moved
		}
	}
	person := func(p *core.Path, at ...any) {
		check(p, at...)
		if !p.IsZero() && !p.IsPerson() {
			d.Fault(`is not a person; write it like "telegram/@user/1000"`, at...)
		}
	}
	for i := range c.Bot.Admins {
		person(&c.Bot.Admins[i], "bot", "admins", i)
	}
	for i := range c.Access.Moderators {
		person(&c.Access.Moderators[i], "access", "moderators", i)
	}
	for key, list := range map[string][]core.Path{"allow": c.Access.Allow, "deny": c.Access.Deny} {
		for i := range list {
			check(&list[i], "access", key, i)
		}
	}
	place := func(p *core.Path, at ...any) {
		check(p, at...)
		e := p.Elements()
		if len(e) > 1 && e[1] == "@user" {
			d.Fault("is the path of a person; write the path of a place, as /id shows it there", at...)
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

// checkTwice finds overrides of the same place.
func (c *Config) checkTwice(d *config.Document) {
	seen := make(map[core.Path]int)
	for i, o := range c.Overrides {
		first, twice := seen[o.Path]
		if twice && !o.Path.IsZero() {
			d.Fault(fmt.Sprintf("is that of override[%d], too; write both in one", first), "override", i, "path")
		} else {
			seen[o.Path] = i
		}
	}
}

// interfaceNames returns the names of the interfaces and the drivers, which paths may
// begin with.
func (c *Config) interfaceNames() []string {
	names := slices.Collect(maps.Keys(c.kinds))
	for _, d := range drivers {
		names = append(names, d.kind)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// formerly returns the interface that older files call "telegram_bot", "discord_bot" or
// "discord_interface". If the configuration has one interface of that driver, it is that
// one, whatever its name.
func (c *Config) formerly(name string) (now string, ok bool) {
	stem, cut := strings.CutSuffix(name, "_bot")
	if !cut {
		stem, cut = strings.CutSuffix(name, "_interface")
	}
	if _, ok := findDriver(stem); !cut || !ok {
		return "", false
	}
	if _, ok := c.kinds[stem]; ok {
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
