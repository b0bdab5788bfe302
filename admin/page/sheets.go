package page

import (
	"html/template"
	"path"
	"strings"
)

// part is one part of the page, as the menu shows it.
type part struct{ Path, Name string }

// parts are in the order of the menu.
func parts() []part {
	return []part{
		{"/", "Now"}, {"/talk", "Conversations"}, {"/memories", "Memories"}, {"/personas", "Personas"},
		{"/charts", "Charts"}, {"/catalogue", "Catalogue"}, {"/settings", "Settings"}, {"/sessions", "Sessions"},
	}
}

// sheets reads the templates: each with the layout around it.
func sheets() map[string]*template.Template {
	base := template.Must(template.New("").Funcs(template.FuncMap{
		"parts": parts, "openForm": openForm,
	}).ParseFS(templates, "templates/layout.html", "templates/chart.html", "templates/opening.html"))
	entries, err := templates.ReadDir("templates")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	all := make(map[string]*template.Template)
	for _, e := range entries {
		own := template.Must(base.Clone())
		all[strings.TrimSuffix(e.Name(), ".html")] = template.Must(own.ParseFS(templates, path.Join("templates", e.Name())))
	}
	return all
}

// openingForm asks why a private place is to be opened.
type openingForm struct {
	CSRF, Place string
	Seq         uint64 // of the turn to come back to; 0: none
}

func openForm(csrf string, seq uint64, place string) openingForm {
	return openingForm{csrf, place, seq}
}
