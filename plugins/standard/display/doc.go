// Package display turns data into what people see: a table, a list, a card, a
// metric, a chart. It is not for deciding whether something is shown, and sends
// nothing.
//
// # Formats
//
//	markdown   a string, as it is
//	metric     one line: a scalar, or an object with a value (or one number), a
//	           label, a unit, a change
//	list       an array; or an object with items
//	table      an array of objects or of arrays; an object with columns and rows,
//	           or with one array of objects beside scalars
//	chart      series of numbers, see below: a picture, and its words
//	card       an object, a line for each of its properties
//
// Any other format is a card, and no format is the one that fits best. Content
// that does not have the shape of its format is a card, too. An object
// {"type": FORMAT, "title": …, "data": …} says its own format.
//
// # Charts
//
//	{"labels": ["Mon", "Tue"], "series": [{"name": "Sales", "data": [3, 4]}]}
//	{"labels": ["Mon", "Tue"], "values": [3, 4]}
//	{"series": [{"name": "a", "data": [[0, 1], [1.5, 2]]}]}     pairs, or {"x": …, "y": …}
//	[{"day": "Mon", "sales": 3}, {"day": "Tue", "sales": 4}]    the first text is the label
//	{"Mon": 3, "Tue": 4}
//
// with "type" (or the format) line or bar: any other kind is drawn as the one of
// these that fits.
//
// What is shown is data: it is escaped, so that nothing in it becomes markup, but
// for what is markdown by its format. Everything is capped, visibly.
package display
