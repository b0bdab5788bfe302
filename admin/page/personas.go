package page

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"synthbot/core"
)

type personaPages struct{ *Page }

func (p personaPages) personas(v *visit) error {
	return p.show(v, "personas", "Personas", "/personas", p.Personas.Files())
}

type edit struct {
	File
	Was     string
	Preview *core.Persona
	Fault   string
	Talk    []Exchange // of a test
	Engine  string     // that answered last in it
}

// withPersona calls h with the persona of a visit, and with the text of its form if the persona can be edited.
func (p personaPages) withPersona(h func(v *visit, e edit) error) handler {
	return func(v *visit) error {
		files := p.Personas.Files()
		i := slices.IndexFunc(files, func(f File) bool { return f.ID == v.FormValue("id") })
		if i < 0 {
			return userError{http.StatusNotFound, "This persona is no longer in the configuration."}
		}
		e := edit{File: files[i], Was: files[i].Text}
		if e.Editable && v.PostForm.Has("text") {
			e.Text, e.Was = normalizeLines(v.PostFormValue("text")), normalizeLines(v.PostFormValue("was"))
		}
		who, err := p.Personas.Preview(e.ID, e.Text)
		if err != nil {
			e.Fault = err.Error()
		} else {
			e.Preview = &who
		}
		return h(v, e)
	}
}

func (p personaPages) persona(v *visit, e edit) error {
	return p.show(v, "persona", "Persona", "/personas", e)
}

// normalizeLines replaces the line ends of a form's text by those of files.
func normalizeLines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// saveOrPreview shows the persona of a form, with its faults. If save is set, it first saves a valid one.
func (p personaPages) saveOrPreview(save bool) handler {
	return p.withPersona(func(v *visit, e edit) error {
		switch {
		case !e.Editable:
			return badRequest("This persona is not a text file, and cannot be edited here.")
		case save && e.Fault == "":
			err := p.Personas.Save(e.ID, e.Text, e.Was)
			if err == nil {
				p.Log.Info("persona changed by an admin", "file", e.Path, "session", v.session.id)
				return v.redirect("/personas/one", "id", e.ID)
			}
			e.Fault = err.Error()
		}
		return p.persona(v, e)
	})
}

func (p personaPages) importPersona(v *visit) error {
	file, header, err := v.FormFile("file")
	if err != nil {
		return badRequest("Choose a file.")
	}
	defer file.Close()
	if header.Size > maxCard {
		return userError{http.StatusRequestEntityTooLarge, tooLarge}
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	id, err := p.Personas.Import(header.Filename, data)
	if err != nil {
		return badRequest("Not imported: " + err.Error())
	}
	p.Log.Info("persona imported by an admin", "file", id, "session", v.session.id)
	v.note("It is imported. To use it in a place, send /persona there.")
	return v.redirect("/personas/one", "id", id)
}

func (p personaPages) removePersona(v *visit, e edit) error {
	if err := p.Personas.Remove(e.ID); err != nil {
		return badRequest("Not removed: " + err.Error())
	}
	p.Log.Info("persona removed by an admin", "file", e.Path, "session", v.session.id)
	return v.redirect("/personas")
}

func (p personaPages) avatar(v *visit) error {
	picture, err := p.Personas.Avatar(v.URL.Query().Get("id"))
	if err != nil {
		return userError{http.StatusNotFound, "This persona has no picture."}
	}
	v.w.Header().Set("Content-Type", "image/png")
	_, err = v.w.Write(picture)
	return err
}

const (
	maxTalk = 20
	maxSaid = 4000            // bytes
	tryTime = 2 * time.Minute // that an answer may take
)

// tryPersona lets an engine answer as the edited persona. The form holds the conversation, which is not stored.
func (p personaPages) tryPersona(v *visit, e edit) error {
	said, answers := v.PostForm["said"], v.PostForm["answer"]
	for i := range min(len(said), len(answers)) {
		e.Talk = append(e.Talk, Exchange{normalizeLines(said[i]), normalizeLines(answers[i])})
	}
	text := strings.TrimSpace(normalizeLines(v.PostFormValue("say")))
	if text == "" || len(text) > maxSaid {
		return badRequest("Write a message, of at most 4000 bytes.")
	}
	e.Talk = append(e.Talk[max(0, len(e.Talk)-maxTalk):], Exchange{Said: text})
	if e.Fault == "" {
		ctx, cancel := context.WithTimeout(v.Context(), tryTime)
		defer cancel()
		c := http.NewResponseController(v.w) // the server's limits are for pages that need no model
		_, _ = c.SetReadDeadline(time.Time{}), c.SetWriteDeadline(time.Now().Add(tryTime+streamWrite))
		var err error
		last := &e.Talk[len(e.Talk)-1]
		if last.Answer, e.Engine, err = p.Personas.Try(ctx, e.ID, e.Text, e.Talk); err != nil {
			last.Answer, e.Fault = "", "No engine answered: "+err.Error()
		}
	}
	return p.persona(v, e)
}
