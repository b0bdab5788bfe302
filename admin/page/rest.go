package page

import (
	"bytes"
	"encoding/json"
	"net/http"

	"synthbot/core"
)

// personas lists who the bot is.
func (p *Page) personas(v *visit) error {
	var files []File
	if p.Personas != nil {
		files = p.Personas.Files()
	}
	return p.show(v, "personas", "Personas", "/personas", files)
}

// edit is a persona while it is edited.
type edit struct {
	File
	Text, Was string
	Preview   *core.Persona
	Fault     string
}

// edited is the file that a request names.
func (p *Page) edited(id string) (edit, error) {
	if p.Personas != nil {
		for _, f := range p.Personas.Files() {
			if f.ID == id {
				return edit{File: f}, nil
			}
		}
	}
	return edit{}, told{http.StatusNotFound, "There is no such persona in the configuration any more."}
}

func (p *Page) persona(v *visit) error {
	e, err := p.edited(v.URL.Query().Get("id"))
	if err != nil {
		return err
	}
	if e.Text, err = p.Personas.Source(e.ID); err != nil {
		return err
	}
	e.Was = e.Text
	p.preview(&e)
	return p.show(v, "persona", "Persona", "/personas", e)
}

// preview reads the text, and tells what is wrong with it.
func (p *Page) preview(e *edit) {
	who, err := p.Personas.Preview(e.ID, e.Text)
	if err != nil {
		e.Fault = err.Error()
		return
	}
	e.Preview = &who
}

// written is the persona that a form holds.
func (p *Page) written(v *visit) (edit, error) {
	e, err := p.edited(v.PostFormValue("id"))
	if err != nil {
		return e, err
	}
	if !e.Editable {
		return e, wrong("This persona is no text file, and cannot be edited here.")
	}
	e.Text, e.Was = lines(v.PostFormValue("text")), lines(v.PostFormValue("was"))
	p.preview(&e)
	return e, nil
}

// lines undoes what browsers do to the ends of lines.
func lines(text string) string {
	return string(bytes.ReplaceAll([]byte(text), []byte("\r\n"), []byte("\n")))
}

func (p *Page) previewPersona(v *visit) error {
	e, err := p.written(v)
	if err != nil {
		return err
	}
	return p.show(v, "persona", "Persona", "/personas", e)
}

// savePersona writes a persona that can be read; another one is shown with its
// faults.
func (p *Page) savePersona(v *visit) error {
	e, err := p.written(v)
	if err != nil {
		return err
	}
	if e.Fault == "" {
		if err := p.Personas.Save(e.ID, e.Text, e.Was); err != nil {
			e.Fault = err.Error()
		} else {
			p.Log.Info("persona changed by an admin", "file", e.Path, "session", v.session.id)
			return v.to("/personas/one", "id", e.ID)
		}
	}
	return p.show(v, "persona", "Persona", "/personas", e)
}

// catalogue shows what the bot can do.
func (p *Page) catalogue(v *visit) error {
	var list []Action
	if p.Actions != nil {
		list = p.Actions()
	}
	type shown struct {
		Action
		Pretty string
	}
	rows := make([]shown, len(list))
	for i, a := range list {
		var b bytes.Buffer
		if json.Indent(&b, a.Schema, "", "  ") != nil {
			b.Reset()
		}
		rows[i] = shown{a, b.String()}
	}
	return p.show(v, "catalogue", "Catalogue", "/catalogue", rows)
}

// settings shows the settings in effect: the configuration's, and those of a
// place.
func (p *Page) settings(v *visit) error {
	data := map[string]any{"Place": ""}
	if text := v.URL.Query().Get("place"); text != "" {
		place, err := v.place(text)
		if err != nil {
			return err
		}
		data["Place"] = text
		if p.Settings != nil {
			data["Here"] = p.Settings(place)
		}
	}
	if p.Settings != nil {
		data["All"] = p.Settings(core.Path{})
	}
	return p.show(v, "settings", "Settings", "/settings", data)
}

// browser is a session in the list.
type browser struct {
	ID, Began, Seen, Agent string
	Own                    bool
}

// sessions shows who is logged in, and who opened what.
func (p *Page) sessions(v *visit) error {
	var list []browser
	for _, s := range p.doors.list() {
		list = append(list, browser{s.id, p.date(s.began), p.date(s.lastSeen()), s.agent, s == v.session})
	}
	openings, err := p.openings(v.Context())
	if err != nil {
		return err
	}
	return p.show(v, "sessions", "Sessions", "/sessions", map[string]any{"Sessions": list, "Openings": openings})
}

// revoke ends one session, or all of them.
func (p *Page) revoke(v *visit) error {
	p.doors.revoke(v.PostFormValue("id"), v.PostFormValue("all") != "")
	p.Log.Info("sessions revoked by an admin", "all", v.PostFormValue("all") != "", "session", v.session.id)
	return v.to("/sessions")
}
