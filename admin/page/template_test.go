package page

import (
	"bytes"
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

var (
	// attribute matches a quoted attribute, which printed values cannot leave.
	attribute = regexp.MustCompile(`[A-Za-z0-9-]+="[^"]*"`)
	tag       = regexp.MustCompile(`<[a-z!/][^<>]*>`)
	address   = regexp.MustCompile(`(?:href|src|action|formaction)="([^"]*)"`)
	form      = regexp.MustCompile(`<form[^>]*>`)
	asking    = regexp.MustCompile(`^<form method="get" action="/(?:settings|talk/place|log)">$`) // for a place
	printing  = regexp.MustCompile(`{{[^}]*}}`)
	// silent matches actions that print nothing.
	silent = regexp.MustCompile(`{{(?:if|else|end|range|with|template|define|\$)[^}]*}}`)
)

// faults returns the actions in a template that print where escaping for HTML is not enough.
func faults(sheet string) (list []string) {
	plain := silent.ReplaceAllString(strings.ReplaceAll(sheet, `"{{$i}}"`, ""), "")
	for _, t := range tag.FindAllString(plain, -1) {
		list = append(list, printing.FindAllString(attribute.ReplaceAllString(t, ""), -1)...)
		for _, a := range address.FindAllStringSubmatch(t, -1) {
			for _, p := range printing.FindAllString(a[1], -1) {
				if !strings.HasPrefix(p, "{{q ") && p != "{{.Path}}" && p != "{{.Seq}}" {
					list = append(list, a[0])
				}
			}
		}
		if strings.HasPrefix(t, "<style") || strings.HasPrefix(t, "<script") && !strings.Contains(t, ` src="/assets/`) {
			list = append(list, t)
		}
	}
	return list
}

func TestSheetsPrintWhereTheyMay(t *testing.T) {
	entries, err := fs.ReadDir(templates, "templates")
	if err != nil || len(entries) < 15 {
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		text, err := fs.ReadFile(templates, "templates/"+e.Name())
		if err != nil {
			t.Fatal(err)
		}
		if list := faults(string(text)); list != nil {
			t.Errorf("%s prints at %q", e.Name(), list)
		}
		for _, form := range form.FindAllString(string(text), -1) { // a form must not put its fields into an address
			if !strings.Contains(form, `method="post"`) && !asking.MatchString(form) {
				t.Errorf("%s has %s", e.Name(), form)
			}
		}
	}
	for sheet, want := range map[string]int{
		`<p class="x {{.A}}">{{.B}}</p>`: 0, `<a href="/x?y={{q .A}}&amp;z={{.Seq}}">`: 0, `<input{{if .A}} checked{{end}}>`: 0,
		`<p {{.A}}>`: 1, `<p class={{.A}}>`: 1, `<a href="/x?y={{.A}}">`: 1, `<a href="{{.A}}">`: 1, `<script>{{.A}}</script>`: 1, `<style>`: 1,
	} {
		if list := faults(sheet); len(list) != want {
			t.Errorf("%s: got %q", sheet, list)
		}
	}
}

func TestSheetsFailWhole(t *testing.T) {
	b := templateSets()["now"]
	var w bytes.Buffer
	for name, data := range map[string]any{"row": "a text has no fields", "nothing": nil} {
		if err := b.Execute(&w, name, data, nil); err == nil {
			t.Errorf("%s: got the page %s", name, w.String())
		}
	}
}

// TestAddresses checks that a name cannot extend an address that contains it.
func TestAddresses(t *testing.T) {
	var w bytes.Buffer
	data := pageData{Data: []File{{ID: `a&id=b#c "d`}}}
	if err := templateSets()["personas"].Execute(&w, "content", data, new(Page).functions(nil)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(w.String(), `href="/personas/one?id=a%26id%3Db%23c+%22d"`) {
		t.Errorf("got %s", w.String())
	}
}
