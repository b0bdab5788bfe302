package daemon

import (
	"context"
	"errors"
	"slices"
	"strings"

	adminpage "synthbot/admin/page"
	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/command"
	"synthbot/core/txt"
	"synthbot/daemon/settings"
)

// changedAt returns the settings that commands changed for a path; the zero Path stands for all places.
func changedAt(changes *placeChanges, path core.Path) (values settings.Settings) {
	for _, l := range changes.All() {
		if l.Path == path {
			values = l.Values
		}
	}
	return values
}

// needs reports whether a plugin must not be turned off, because the configuration is unsafe without it.
func (c *Config) needs(plugin string) bool {
	return plugin == PairingName && c.Access.Private == PairingName
}

// doSwitch turns a plugin on or off everywhere, or an action in a place. The zero Path stands for all places.
func (s *pageServer) doSwitch(ctx context.Context, c command.Call) (string, error) {
	b, name, at, on := s.bot, c.Args["name"], c.Path, c.Args["to"] == "on"
	p, isPlugin := b.InForce(), c.Args["what"] == "plugin"
	chosen := slices.Contains(p.Config.ChosenNames(), name)
	switches := func(d *action.Definition) bool { return d.Name == name && !d.IsMessage() }
	switch {
	case isPlugin && p.Config.needs(name) && !on:
		return "", core.Errorf(core.Invalid, "access.private is pairing, which needs it: set another access first.")
	case isPlugin && !chosen:
		return "", core.Errorf(core.Invalid, "The configuration does not turn it on: add [plugins.%s] there.", name)
	case !isPlugin && !on && !slices.ContainsFunc(p.Snapshot.All(), switches):
		return "", core.Errorf(core.Invalid, "There is no action of that name that can be turned off.")
	}
	if !isPlugin {
		err := s.setSwitch(ctx, at, actionsDeny, name, on)
		b.reloads.settingsChanged()
		return name + " is " + c.Args["to"] + " from now on.", err
	}
	if err := s.setSwitch(ctx, core.Path{}, pluginsOff, name, on); err != nil {
		return "", err
	}
	if _, err := b.Reload(); err != nil { // undone, because the next start might fail
		const text = "Nothing was changed, because the configuration cannot be read again: %s"
		failed := core.Errorf(core.Broken, text, txt.Line(err.Error()))
		return "", errors.Join(failed, s.setSwitch(ctx, core.Path{}, pluginsOff, name, !on))
	}
	return name + " is " + c.Args["to"] + " from now on.", nil
}

// Settings that list what is turned off.
func actionsDeny(s *settings.Settings) *settings.Patterns { return &s.ActionsDeny }
func pluginsOff(s *settings.Settings) *settings.Patterns  { return &s.PluginsOff }

// setSwitch removes a name from a path's list of what is turned off, or adds it.
func (s *pageServer) setSwitch(
	ctx context.Context, at core.Path, list func(*settings.Settings) *settings.Patterns, name string, on bool,
) error {
	return s.bot.changes.Change(ctx, at, func(v *settings.Settings) {
		is := func(one settings.Pattern) bool { return string(one) == name }
		left := slices.DeleteFunc(slices.Clone(*list(v)), is)
		if !on {
			left = append(left, settings.Pattern(name))
		}
		*list(v) = left
	})
}

// pluginList lists all plugins, whether each is on, and why.
func (s *pageServer) pluginList() []adminpage.List {
	c, off := s.bot.InForce().Config, changedAt(s.bot.changes, core.Path{}).PluginsOff
	list := adminpage.List{Title: "Plugins", Note: "What is turned off here stays off over restarts."}
	for _, a := range availablePlugins {
		_, named := c.Plugins[a.name]
		chosen := slices.Contains(c.ChosenNames(), a.name)
		row := adminpage.Row{Name: a.name, Mark: "on", Values: []string{a.doc}}
		button := pageButton("Turn off", "switch", "what", "plugin", "name", a.name, "to", "off")
		var why string
		switch {
		case chosen && off.Match(a.name) && !c.needs(a.name):
			row.Mark, why = "off", "turned off on this page"
			button = pageButton("Turn on", "switch", "what", "plugin", "name", a.name, "to", "on")
		case chosen && c.needs(a.name):
			why = "access.private needs it"
		case chosen && named:
			why = "[plugins." + a.name + "] in the configuration"
		case chosen:
			why = "the default"
		case named:
			row.Mark, why = "off", "enabled = false in [plugins."+a.name+"]"
		default:
			row.Mark, why = "off", "add [plugins."+a.name+"] to the configuration to turn it on"
		}
		row.Values = append(row.Values, why)
		if chosen && !c.needs(a.name) {
			row.Buttons = append(row.Buttons, button)
		}
		list.Rows = append(list.Rows, row)
	}
	return []adminpage.List{list}
}

// Actions implements adminpage.Bot.
func (s *pageServer) Actions(place core.Path) []adminpage.Action {
	p := s.bot.InForce()
	open, own := Offered(p.Snapshot), changedAt(s.bot.changes, place).ActionsDeny
	var list []adminpage.Action
	for _, d := range p.Snapshot.All() {
		on := pageButton("Turn on", "switch", "what", "action", "name", d.Name, "to", "on")
		off := pageButton("Turn off", "switch", "what", "action", "name", d.Name, "to", "off")
		a := adminpage.Action{
			Name: d.Name, Owner: d.Owner, Brief: d.Brief, Permission: string(d.Allows()), Offered: open(d.Name),
			Schema: d.Schema, Help: d.Examples.Description,
		}
		a.Off = strings.Join(p.offBy(place, d), ", ")
		switch {
		case slices.Contains(own, settings.Pattern(d.Name)):
			a.Buttons = append(a.Buttons, on)
		case a.Off == "" && !d.IsMessage():
			a.Buttons = append(a.Buttons, off)
		}
		list = append(list, a)
	}
	return list
}

// offBy lists the settings that turn an action off in a place.
func (p *parts) offBy(place core.Path, d *action.Definition) (list []string) {
	isHome := false
	for i := range p.Config.Enabled {
		e := &p.Config.Enabled[i]
		isHome = isHome || e.Name == d.Owner
		if len(e.withheld([]*action.Definition{d})) > 0 {
			list = append(list, "interfaces."+e.Name+".offer")
		}
	}
	for _, l := range p.settings.Layers(place) {
		if l.Values.ActionsDeny.Match(d.Name) {
			list = append(list, l.From)
		}
	}
	allowed := p.settings.At(place).ActionsAllow
	if len(allowed) > 0 && !allowed.Match(d.Name) && !isHome {
		list = append(list, "actions_allow")
	}
	return list
}
