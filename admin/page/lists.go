package page

import (
	"cmp"
	"slices"
	"time"

	"synthbot/core"
	"synthbot/core/txt"
)

// List is a section of a page: things of one kind, with buttons.
type List struct {
	Title, Note string
	Live        bool // Note shows the progress of something, and the page refreshes it
	Buttons     []Button
	Rows        []Row
}

// Row is one item of a list. If its place is closed, the page shows only its place, its user and its time.
type Row struct {
	Name, Mark string    // the item's name, and its state in a word
	Bad        bool      // the state is a problem
	Text       string    // what users wrote
	Place      core.Path // where they wrote it; zero: it applies to all places
	Person     core.Path // the user it belongs to; zero for none
	Time       time.Time
	Values     []string // further facts
	Buttons    []Button

	Private, Closed bool // set by the page
}

// Button executes a command (see Bot.Do) in the place of its row.
type Button struct {
	Label, Command string
	Args           []Arg
	Text           *Arg   // an argument that the admin types; nil for none
	TextLabel      string // of the field for Text
	Sure           string // a warning to confirm first; "" for none

	Of, Place, Back string // set by the page: the row, its place, and the next page
}

// Arg is an argument of a command.
type Arg struct{ Name, Value string }

const maxButtonContext = 60 // characters of its row, which a button repeats for screen readers

func shownButtons(r *Row, list []Button, back string) []Button {
	list = slices.Clone(list)
	for i := range list {
		list[i].Of = txt.ClipLine(cmp.Or(r.Name, r.Text), maxButtonContext)
		list[i].Place, list[i].Back = r.Place.String(), back
	}
	return list
}

type listPages struct{ *Page }

func (p listPages) lists(name, title, here string) handler {
	return func(v *visit) error {
		lists, err := p.shownLists(v, name, here)
		if err != nil {
			return err
		}
		return p.show(v, "lists", title, here, lists)
	}
}

// shownLists returns the lists with a name, without texts of closed places.
func (p listPages) shownLists(v *visit, name, back string) (list []List, err error) {
	list, err = p.Bot.Lists(v.Context(), name)
	if err != nil {
		return nil, err
	}
	list = slices.Clone(list)
	err = p.withPrivacy(v, func(_ core.View, e *privacyFilter) error {
		for i := range list {
			l := &list[i]
			l.Rows, l.Buttons = slices.Clone(l.Rows), shownButtons(new(Row), l.Buttons, back)
			for i := range l.Rows {
				r := &l.Rows[i]
				r.Buttons = shownButtons(r, r.Buttons, back)
				if e.isClosed(r.Place) {
					*r = Row{Place: r.Place, Person: r.Person, Time: r.Time, Closed: true}
				}
				r.Private = e.isPrivate(r.Place)
			}
		}
		return nil
	})
	return list, err
}
