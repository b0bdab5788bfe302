// Package settings decides which settings apply in a place. A setting is one field of [Settings] and is written nowhere
// else: its tags give its keys, its sentence in the reference, its check, and how it is changed and shown.
//
// Three sources set values, each for a path and all places below it:
//
//	the configuration's tables such as [bot], for every place
//	[[override]] tables, each a [Layer]
//	what users change by commands such as /set, kept by [Changes]
//
// The longest path that sets a value wins. For one path, a command wins over the configuration. A category counts as
// long as its channels, which win over it. [Resolver] applies these rules and says where each value comes from.
//
// Tags of a field:
//
//	toml, doc, oneof, min, max, items, visible, example  as in package config; "-": not in the file
//	json    the key under which commands store it; "-": no command changes it
//	set     "admin": admins change it with /set
//	base    the key of the configuration with the value for all places, such as bot.activation
//	origin  where the value comes from if nothing sets it, shown to users
//	empty   how the value is shown if it is zero or nothing sets it
//	each    "layer": what a longer path sets adds to the shorter ones, and a
//	        command adds to the configuration; "path": the same, except that a
//	        command replaces the configuration's value for the same path, and
//	        categories do not count
//
// A field without doc is stored with the others and never shown.
package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"synthbot/config"
	"synthbot/core"
	"synthbot/core/txt"
)

// Settings are the settings of a place and all places below it. Each field that is nil or zero is not set there.
type Settings struct {
	Persona      *string        `toml:"persona" kind:"file" json:"persona,omitempty" base:"persona.path" example:"persona/gm.toml" doc:"Who the bot is there: a persona file or a character card."`
	Engine       string         `toml:"engine" json:"engine,omitempty" origin:"the first engine" example:"home" doc:"The engine that is asked first there."`
	Activation   string         `toml:"activation" json:"activation,omitempty" base:"bot.activation" oneof:"mention|keyword|ambient|always|never" example:"mention" doc:"Which group messages the bot answers there, as in [bot]."`
	Asleep       *bool          `toml:"-" json:"asleep,omitempty" empty:"false" doc:"Whether the bot only listens there, from /sleep to /wake."`
	Keywords     []string       `toml:"keywords" json:"keywords,omitempty" set:"admin" base:"bot.keywords" max:"100" items:"100" visible:"true" example:"help, bot" doc:"With activation = \"keyword\": the words that the bot answers to there."`
	Observe      *bool          `toml:"observe" json:"observe,omitempty" set:"admin" base:"bot.observe" example:"false" doc:"Whether messages that are not for the bot are stored there, as in [bot]."`
	Bots         *bool          `toml:"bots" json:"bots,omitempty" set:"admin" base:"bot.bots" example:"true" doc:"Whether other bots are answered there, as in [bot]."`
	Attention    *time.Duration `toml:"attention" json:"attention,omitempty" set:"admin" base:"bot.attention" example:"1m" min:"0s" max:"1h" doc:"How long after an answer the same user need not address the bot again there, as in [bot]."`
	Language     Language       `toml:"language" json:"language,omitempty" set:"admin" origin:"bot.language" example:"it" doc:"The language to answer in there, whatever users write in."`
	Scope        string         `toml:"scope" json:"scope,omitempty" set:"admin" base:"prompt.scope" oneof:"chat|interface|unified" example:"interface" doc:"Which messages of other places a prompt contains there, as in [prompt]."`
	ActionsAllow Patterns       `toml:"actions_allow" items:"100" json:"allow,omitempty" set:"admin" empty:"all" example:"dice_*, memory_*" doc:"If given, the only actions that are available there, besides those of an interface in its own places; * matches any characters."`
	ActionsDeny  Patterns       `toml:"actions_deny" items:"100" json:"deny,omitempty" set:"admin" each:"layer" example:"web_*" doc:"Actions that are not available there; * matches any characters. What a shorter path denies stays denied."`
	PersonTokens *int64         `toml:"person_tokens" json:"person,omitempty" set:"admin" base:"budget.person_tokens" empty:"no limit" min:"0" example:"50000" doc:"Tokens that one user may use in a day by asking there, instead of the value in [budget]; 0 for no limit."`
	Tokens       *int64         `toml:"tokens" json:"tokens,omitempty" set:"admin" each:"path" empty:"no limit" min:"0" example:"500000" doc:"Tokens in a day of the place and all below it; 0 for no limit. Limits of other paths, [budget] and [[budget.place]] apply as well."`
	Admin        *bool          `toml:"-" json:"admin,omitempty"`       // the path is that of a user
	PluginsOff   Patterns       `toml:"-" json:"plugins_off,omitempty"` // only for all places: plugins that admins turned off
}

const shown = 40 // characters of an invalid value in an error

// Language is a language tag; empty for none.
type Language string

const maxLanguage = 35 // bytes

var languageTag = txt.Pattern(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$`)

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *Language) UnmarshalText(text []byte) error {
	if len(text) > maxLanguage || len(text) > 0 && !languageTag().Match(text) {
		return fmt.Errorf("is %q; write a language tag like en, it or pt-BR", txt.Clip(string(text), shown))
	}
	*l = Language(text)
	return nil
}

const maxPattern = 200 // bytes; names of actions are shorter

// Pattern is the name of an action, or a part of one with *.
type Pattern string

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Pattern) UnmarshalText(text []byte) error {
	_, err := path.Match(string(text), "")
	if err != nil || len(text) > maxPattern {
		return fmt.Errorf("is %q; write the name of an action, or a part of it with *", txt.Clip(string(text), shown))
	}
	*p = Pattern(text)
	return nil
}

// Patterns is a list of patterns, stored in JSON as one string with commas.
type Patterns []Pattern

// Strings returns the patterns as strings.
func (p Patterns) Strings() []string {
	list := make([]string, len(p))
	for i, one := range p {
		list[i] = string(one)
	}
	return list
}

// Match reports whether one of the patterns matches a name.
func (p Patterns) Match(name string) bool {
	return slices.ContainsFunc(p, func(one Pattern) bool {
		ok, err := path.Match(string(one), name)
		return ok && err == nil
	})
}

// NoteUnmatched adds a note to the rows whose patterns match no action.
func NoteUnmatched(rows []Row, actions []string) {
	for i := range rows {
		var none []string
		if strings.HasPrefix(rows[i].Name, "actions_") {
			none = elements(rows[i].Set)
		}
		none = slices.DeleteFunc(none, func(one string) bool {
			return slices.ContainsFunc(actions, Patterns{Pattern(one)}.Match)
		})
		if len(none) > 0 {
			rows[i].Value += " (no action matches " + strings.Join(none, ", ") + ")"
		}
	}
}

// MarshalJSON implements json.Marshaler.
func (p Patterns) MarshalJSON() ([]byte, error) {
	return json.Marshal(strings.Join(p.Strings(), ", "))
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *Patterns) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return errors.New("patterns are not a string")
	}
	*p = nil
	for _, one := range elements(text) {
		*p = append(*p, Pattern(one))
	}
	return nil
}

// elements splits a list that users write with commas or spaces.
func elements(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

type field struct {
	name string // its TOML key or, without one, its JSON key
	each string // the tag each
	tag  reflect.StructTag
	at   []int
}

func fieldsOf(t reflect.Type) []field {
	var list []field
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous || !f.IsExported() {
			continue
		}
		stored, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		name := f.Tag.Get("toml")
		if name == "-" {
			name = stored
		}
		list = append(list, field{name: name, each: f.Tag.Get("each"), tag: f.Tag, at: f.Index})
	}
	return list
}

func (f *field) of(s reflect.Value) reflect.Value { return s.FieldByIndex(f.at) }

func (f *field) isSet(s reflect.Value) bool {
	v := f.of(s)
	return !v.IsZero() && (v.Kind() != reflect.Slice || v.Len() > 0)
}

func (f *field) row(s reflect.Value, from string) Row {
	r := Row{Name: f.name, From: from}
	v := reflect.Indirect(f.of(s))
	switch {
	case v.Kind() == reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = fmt.Sprint(v.Index(i).Interface())
		}
		r.Value = strings.Join(parts, ", ")
	case v.IsValid():
		r.Value = fmt.Sprint(v.Interface())
	}
	if v.IsValid() && !v.IsZero() {
		r.Set = r.Value
	} else if empty, ok := f.tag.Lookup("empty"); ok {
		r.Value = empty
	}
	return r
}

// add copies the fields that from sets to into. It appends to a list with the tag each.
func add(fields []field, into, from reflect.Value) {
	for i := range fields {
		f := &fields[i]
		if !f.isSet(from) {
			continue
		}
		old, value := f.of(into), f.of(from)
		if f.each != "" && old.Kind() == reflect.Slice {
			value = reflect.AppendSlice(old.Slice3(0, old.Len(), old.Len()), value)
		}
		old.Set(value)
	}
}

// Base returns the settings for all places. Each field with the tag base gets the value of that key in tables, a
// pointer to a struct. Base panics if there is no such key, or if its type differs.
func Base[T any](tables any) T {
	values := make(map[string]reflect.Value)
	config.Walk(nil, tables, func(s config.Setting) { values[s.Key.String()] = s.Value })
	var base T
	into := reflect.ValueOf(&base).Elem()
	for _, f := range fieldsOf(into.Type()) {
		key := f.tag.Get("base")
		if key == "" {
			continue
		}
		value, ok := values[key]
		if !ok {
			panic("settings: there is no key " + key)
		}
		dst := f.of(into)
		if dst.Kind() == reflect.Pointer {
			dst.Set(reflect.New(dst.Type().Elem()))
			dst = dst.Elem()
		}
		dst.Set(value)
	}
	return base
}

// Default is the value that undoes the change of a setting by command.
const Default = "default"

// Names returns the settings that /set changes.
func Names[T any]() (names []string) {
	for _, f := range fieldsOf(reflect.TypeFor[T]()) {
		if f.tag.Get("set") != "" {
			names = append(names, f.name)
		}
	}
	return names
}

// Values lists the values that /set takes for a setting; only Default if any text may be valid.
func Values[T any](name string) []string {
	f, err := find(reflect.TypeFor[T](), name)
	if err != nil {
		return nil
	}
	choices := strings.FieldsFunc(f.tag.Get("oneof"), func(r rune) bool { return r == '|' })
	return append(choices, Default)
}

// find returns the setting with a name, if commands can change it from text.
func find(t reflect.Type, name string) (f field, err error) {
	for _, f := range fieldsOf(t) {
		if f.name == name && f.tag.Get("json") != "-" && f.tag.Get("toml") != "-" {
			return f, nil
		}
	}
	return f, core.Errorf(core.Invalid, "There is no setting %q.", name)
}
