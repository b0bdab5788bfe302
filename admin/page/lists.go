package page

import (
	"cmp"
	"slices"
	"time"

	"synthbot/core"
	"synthbot/core/txt"
)

// List is a part of a page: things of one kind, with what can be done about them.
type List struct {
	Title, Note string
	Live        bool // Note is about something that goes on: the page shows how far it is
	Buttons     []Button
	Rows        []Row
}

// Row is one thing of a list. If its place is closed, the page shows its place, its person and its time
// only.
type Row struct {
	Name, Mark string    // what it is called, and its state in a word
	Bad        bool      // the state is to be noticed
	Text       string    // what people wrote
	Place      core.Path // where that was; zero: it is for all places
	Person     core.Path // whose it is; zero: nobody's
	Time       time.Time
	Values     []string // further facts
	Buttons    []Button

	Private, Closed bool // set by the page
}

// Button carries out a command (see Bot.Do) in the place of its row.
type Button struct {
	Label, Command string
	Args           []Arg
	Text           *Arg   // an argument that the admin writes; nil: there is none
	Prompt         string // what to write
	Sure           string // what cannot be undone; "" for a button without a question

	Of, Place, Back string // set by the page: what it is about, and where the browser goes afterwards
}

// Arg is an argument of a command.
type Arg struct{ Name, Value string }

// maxOf is how many characters say what a button is about.
const maxButtonContext = 60

func shownButtons(r *Row, list []Button, back string) []Button {
	list = slices.Clone(list)
	for i := range list {
		list[i].Of, list[i].Place, list[i].Back = txt.ClipLine(cmp.Or(r.Name, r.Text), maxButtonContext), r.Place.String(), back
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

// shownLists returns the lists of a name, without what was said where the visit may not look.
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
