package page

import (
	"cmp"
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
}

// Button carries out a command (see Bot.Do) in the place of its row.
type Button struct {
	Label, Command string
	Args           []Arg
	Text           *Arg   // an argument that the admin writes; nil: there is none
	Prompt         string // what to write
	Sure           string // what cannot be undone; "" for a button without a question
}

// Arg is an argument of a command.
type Arg struct{ Name, Value string }

type shownRow struct {
	Row
	Closed, Private bool
	Buttons         []shownButton
}

type shownList struct {
	List
	Rows    []shownRow
	Buttons []shownButton
}

// shownButton is a button as it is shown: what it is about, and where the browser goes afterwards.
type shownButton struct {
	Button
	Of, Place, Back string
}

// maxOf is how many characters say what a button is about.
const maxOf = 60

func shownButtons(r *Row, list []Button, back string) (shown []shownButton) {
	of := txt.ClipLine(cmp.Or(r.Name, r.Text), maxOf)
	for _, b := range list {
		shown = append(shown, shownButton{b, of, r.Place.String(), back})
	}
	return shown
}

type listPages struct{ *Page }

// lists returns a handler that shows what the bot lists under a name.
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
func (p listPages) shownLists(v *visit, name, back string) (list []shownList, err error) {
	all, err := p.Bot.Lists(v.Context(), name)
	if err != nil {
		return nil, err
	}
	err = p.looking(v, func(_ core.View, e *privacyFilter) error {
		for _, l := range all {
			shown := shownList{List: l, Buttons: shownButtons(new(Row), l.Buttons, back)}
			for i := range l.Rows {
				r := &l.Rows[i]
				row := shownRow{Row: *r, Private: e.private(r.Place), Closed: e.closed(r.Place)}
				if row.Closed {
					row.Row = Row{Place: r.Place, Person: r.Person, Time: r.Time}
				} else {
					row.Buttons = shownButtons(r, r.Buttons, back)
				}
				shown.Rows = append(shown.Rows, row)
			}
			list = append(list, shown)
		}
		return nil
	})
	return list, err
}
