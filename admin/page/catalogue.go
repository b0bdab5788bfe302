package page

import (
	"bytes"
	"encoding/json"

	"synthbot/core"
)

// catalogue lists the actions.
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

// settings shows the settings of the configuration and of a place.
func (p *Page) settings(v *visit) error {
	data := map[string]any{"Place": ""}
	text := v.URL.Query().Get("place")
	if text != "" {
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
