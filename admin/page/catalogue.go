package page

import (
	"bytes"
	"encoding/json"

	"synthbot/core"
)

// catalogue lists the actions.
func (p *Page) catalogue(v *visit) error {
	type shown struct {
		Action
		Pretty string
	}
	var rows []shown
	for _, a := range p.Actions() {
		var b bytes.Buffer
		if json.Indent(&b, a.Schema, "", "  ") != nil {
			b.Reset()
		}
		rows = append(rows, shown{a, b.String()})
	}
	return p.show(v, "catalogue", "Catalogue", "/catalogue", rows)
}

// settings shows the settings of the configuration and of a place.
func (p *Page) settings(v *visit) error {
	data := map[string]any{"Place": "", "All": p.Settings(core.Path{})}
	text := v.URL.Query().Get("place")
	if text != "" {
		place, err := v.place(text)
		if err != nil {
			return err
		}
		data["Place"], data["Here"] = text, p.Settings(place)
	}
	return p.show(v, "settings", "Settings", "/settings", data)
}
