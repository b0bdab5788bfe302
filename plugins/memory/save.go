package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/txt"
)

type savePayload struct {
	_ struct{} `title:"Remember something"`

	Text       string   `json:"text" title:"what to remember" doc:"One fact in one sentence, with names for pronouns." min:"3" max:"1000"`
	About      []string `json:"about,omitempty" title:"about" doc:"People, by name or tag; me is who speaks." max:"8"`
	Topic      string   `json:"topic,omitempty" title:"topic" doc:"Like home or job: the newer one replaces the older." max:"64"`
	Tags       []string `json:"tags,omitempty" title:"tags" max:"8"`
	Importance int      `json:"importance" title:"importance" default:"3" min:"0" max:"10"`
	Language   string   `json:"language,omitempty" title:"language" max:"35"`
}

func (p *Plugin) saveAction() core.Action {
	return action.Typed(core.Action{
		Name: "memory_save", Similes: []string{"remember", "save_memory", "memory_add"},
		Brief: "Remember a lasting fact for later conversations",
		Examples: core.Examples{
			Description: "Keeps one fact. It comes up again where it fits, in this place only.",
			Instructions: core.Instructions{
				WhenToUse: "When somebody asks you to remember something, or says something of lasting worth: a" +
					" preference, a relation, a date, a decision. Saying that you will remember is not enough: this" +
					" does it.",
				CommonPitfalls: []string{
					"One fact a call: three facts are three calls.",
					"\"He likes it\" means nothing next week: write who likes what.",
					"What was said in the last few messages is before you anyway; small talk is not worth keeping.",
					"Never passwords, keys or numbers of cards.",
					"Write in the language that it was said in; language names it, like it or pt-BR, where you are" +
						" sure.",
				},
				Notes: []string{
					"What says the same replaces the older one, and so does what has the same topic about the same" +
						" people, where who speaks told it or is whom it is about; else both are kept.",
					"importance is 0 to 10: from 8 on it is always before you when that person speaks. tags are" +
						" words to find it by that are not in the text.",
					"It needs no words from you afterwards: send your message in the same answer.",
				},
			},
			Similar: []string{"memory_update changes one that is there"},
			Examples: []core.Example{
				core.NewExample("Jay says that he moved",
					`{"text":"Jay lives in Oslo since May","about":["me"],"topic":"home"}`),
				core.NewExample("Ann asks to remember what the group decided",
					`{"text":"The group meets every first Friday at eight at Lea's"`+
						`,"tags":["meeting"],"importance":6}`),
				core.NewExample("Jay tells of Ann, in Italian",
					`{"text":"Ann è allergica alle noci","about":["Ann"],"importance":8,"language":"it"}`),
			},
		},
		Effects: core.EffectWrites, Permission: core.PermissionEveryone, Idempotent: true,
		RateLimit: core.RateLimit{Count: 30, Per: time.Hour}, Undo: p.undoSave,
	}, p.save)
}

func (p *Plugin) save(ctx context.Context, c core.Call, s savePayload) (core.Result, error) {
	by, err := c.Person()
	if err != nil {
		return core.Result{}, err
	}
	about, strangers, err := p.about(ctx, &c, s.About)
	if err != nil {
		return core.Result{}, err
	}
	f := core.Fact{
		Text: txt.ClipLine(s.Text, textMax), About: about, Topic: label(s.Topic),
		Tags:       labels(append(s.Tags, strangers...)),
		Importance: s.Importance, Language: languageOr(p.host.Language, s.Language), Origin: c.Path, By: by,
		Rank: c.Author.Rank,
	}
	if f.Text == "" {
		return core.Result{}, core.Errorf(core.Invalid, "there is nothing to remember in it")
	}
	f, err = p.host.Facts.SaveFact(ctx, f)
	if err != nil || f.Known {
		return core.Result{}, worded("", err)
	}
	return core.Result{Undo: core.JSON(f)}, nil
}

// undoSave takes a memory away as long as it is as it was saved. Where it replaced another
// text, that one comes back.
func (p *Plugin) undoSave(ctx context.Context, c core.Call, done core.Result) error {
	if done.Undo == nil {
		return core.Errorf(core.Invalid, "it was known before")
	}
	var saved core.Fact
	if err := json.Unmarshal(done.Undo, &saved); err != nil {
		return fmt.Errorf("memory to undo: %w", err)
	}
	f, _, err := p.allowed(ctx, &c, saved.ID)
	switch {
	case errors.Is(err, core.ErrUnknown):
		return nil
	case err != nil:
		return err
	case f.Text != saved.Text:
		return core.Errorf(core.Invalid, "that memory was changed since")
	case len(f.Former) == 0:
		return p.host.Facts.DropFact(ctx, f.ID, c.Sees...)
	}
	f.Text, f.Time, f.By = f.Former[0].Text, f.Former[0].Time, f.Former[0].By
	f.Former, f.Rank = nil, c.Author.Rank
	_, err = p.host.Facts.SaveFact(ctx, f)
	return err
}

// languageOr returns a language tag that looks like one, else the usual one.
func languageOr(usual, tag string) string {
	if languageTag().MatchString(tag) {
		return tag
	}
	return usual
}
