package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"synthbot/core"
)

// Bounds of what plugins add to a prompt.
const (
	contributionTime = 300 * time.Millisecond // of all plugins
	openTime         = 20 * time.Second       // for reading attachments
	maxInjection     = 2000                   // bytes of one injection
	maxBio           = 400                    // bytes of one
)

// contribution is one call of a plugin. take adds its result to the prompt.
type contribution struct {
	plugin string
	late   <-chan struct{} // closed when its time is up
	ask    func() (take func(), err error)
}

// contributions returns the calls of plugins: for hints, for injections, and for bios of the people.
func (in *input) contributions(ctx context.Context, s core.Scene, people []core.Author) (list []contribution) {
	t, late := in.turn, ctx.Done()
	plugins := &t.setup.Plugins
	for _, r := range plugins.Recons {
		name := "recon"
		if p, ok := r.(core.Plugin); ok {
			name = p.Name()
		}
		list = append(list, contribution{name, late, func() (func(), error) {
			found, err := r.Recon(ctx, s)
			return func() { in.hints = append(in.hints, found...) }, err
		}})
	}
	for name, i := range plugins.Injectors {
		list = append(list, contribution{name, late, func() (func(), error) {
			value, err := i.Inject(ctx, s)
			return func() {
				limit := maxInjection
				foreign, ok := i.(foreignInjector)
				if ok {
					limit = foreign.MaxForeign()
				}
				if len(value) > 0 && t.fits(name, value, limit) {
					in.parts.Injections[name] = value
					in.foreign = in.foreign || ok
				}
			}, err
		}})
	}
	for _, b := range plugins.Bios {
		list = append(list, contribution{"bios", late, func() (func(), error) {
			found, err := b.Bios(ctx, s, people)
			return func() {
				for id, bio := range found {
					if t.fits("bios", bio, maxBio) {
						in.bios[id] = bio
					}
				}
			}, err
		}})
	}
	return list
}

// attachments returns the files of the messages; nil if nothing reads them.
func (in *input) attachments() (files []core.Attachment) {
	if in.turn.setup.Prompt.Open == nil {
		return nil
	}
	for i := range in.turn.messages {
		files = append(files, in.turn.messages[i].Message.Attachments...)
	}
	return files
}

// participant is how a prompt describes a person.
type participant struct {
	Name string          `json:"username"`
	Tag  string          `json:"usertag,omitempty"`
	Bot  bool            `json:"bot,omitempty"`
	Bio  json.RawMessage `json:"bio,omitempty"`
}

// participants describes all people in a group, and in private those with a bio.
func (in *input) participants(people []core.Author) (all []json.RawMessage) {
	t := in.turn
	if t.who.Private && len(in.bios) == 0 {
		return nil
	}
	marks := in.parts.Marks()
	for _, a := range people {
		if !t.who.Private || in.bios[a.ID] != nil {
			raw, _ := json.Marshal(participant{a.Name, cmp.Or(marks.Of(t.path, a), a.Tag), a.Bot, in.bios[a.ID]})
			all = append(all, raw)
		}
	}
	return all
}

// fits reports whether a contribution is valid JSON within its limit.
func (t *turn) fits(plugin string, raw json.RawMessage, limit int) bool {
	if len(raw) <= limit && json.Valid(raw) {
		return true
	}
	t.log.Warn("contribution left out", "plugin", plugin, "bytes", len(raw), "limit", limit)
	return false
}

// foreignInjector is the ability of a core.Injector whose value holds what strangers wrote. The
// value has at most MaxForeign bytes. The rules for such texts apply to a turn with it.
type foreignInjector interface {
	MaxForeign() int
}

// withholder is the ability of a plugin to keep actions out of the prompt that the scene does not call for, so that
// small talk costs less. The model may still use them. Withhold returns at once.
type withholder interface {
	Withhold(s core.Scene) (actions []string)
}
