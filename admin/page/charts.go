package page

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"synthbot/core/sorting"
	"synthbot/core/watch"
)

// series is one kind of value in a chart.
type series struct {
	Class  int // its number, by which it is coloured
	Name   string
	Values []float64
	Labels []float64 // what is written for each value; nil: the values
}

// figures is the data of a chart and of the table below it.
type figures struct {
	Title, Axis string // Axis: what the labels are
	Labels      []string
	Series      []series                   // stacked
	show        func(value float64) string // nil: as a whole number
	ranked      bool                       // the labels are long: the axis has their numbers
}

// The size of a chart, in units of its own; small enough for a phone.
const (
	chartWide, chartHigh   = 360, 180
	chartLeft, chartBottom = 46, 24
	chartTop               = 8
	chartLabels            = 4 // at most so many under the axis
	plotWide, plotHigh     = chartWide - chartLeft - 6, chartHigh - chartBottom - chartTop
	chartSteps             = 4
)

// drawing is a rendered chart and the table below it.
type drawing struct {
	figures
	Empty     bool // all values are 0
	Bars      []bar
	Up, Along []tick // the labels of the axes
	Rows      []figureRow
}

type bar struct {
	X, Y, W, H float64
	Class      int // the number of its series
	Tip        string
}

// tick is a label on an axis.
type tick struct {
	X, Y float64
	Text string
}

type figureRow struct {
	Label string
	Cells []string
}

func (f figures) draw() drawing {
	highest := f.highest()
	top := roundUp(highest)
	d := drawing{figures: f, Empty: highest <= 0}
	for class := range f.Series {
		f.Series[class].Class = class
	}
	step := float64(plotWide) / float64(max(len(f.Labels), 1))
	every := max((len(f.Labels)+chartLabels-1)/chartLabels, 1)
	for i, label := range f.Labels {
		left := chartLeft + float64(i)*step
		d.stack(i, left+step*0.1, step*0.8, plotHigh/top)
		if f.ranked {
			label = strconv.Itoa(i + 1)
		}
		if i%every == 0 {
			d.Along = append(d.Along, tick{round(left + 0.5*step), chartHigh - 8, label})
		}
	}
	for i := range chartSteps + 1 {
		part := float64(i) / chartSteps
		d.Up = append(d.Up, tick{chartLeft - 4, round(chartTop + plotHigh*(1-part)), f.short(top * part)})
	}
	return d
}

// stack adds the bars of one label, and its row of the table.
func (d *drawing) stack(label int, left, width, scale float64) {
	row := figureRow{Label: d.Labels[label]}
	y := float64(chartTop + plotHigh)
	for class, s := range d.Series {
		written := s.Values
		if s.Labels != nil {
			written = s.Labels
		}
		text := d.figure(written[label])
		row.Cells = append(row.Cells, text)
		height := s.Values[label] * scale
		if height > 0 {
			y -= height
			tip := row.Label + ", " + s.Name + ": " + text
			d.Bars = append(d.Bars, bar{round(left), round(y), round(width), round(height), class, tip})
		}
	}
	d.Rows = append(d.Rows, row)
}

// figure writes a value.
func (f figures) figure(v float64) string {
	if f.show == nil {
		return trim(v, 0)
	}
	return f.show(v)
}

// short writes a value for an axis.
func (f figures) short(v float64) string {
	const most = 7 // letters have room there
	if f.show != nil && len(f.show(v)) <= most {
		return f.show(v)
	}
	return number(v)
}

// highest returns the height of the highest bar.
func (f figures) highest() (most float64) {
	for i := range f.Labels {
		sum := 0.0
		for _, s := range f.Series {
			sum += s.Values[i]
		}
		most = max(most, sum)
	}
	return most
}

// roundUp returns a round value that is not below a value.
func roundUp(v float64) float64 {
	if v <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 4, 5} {
		if unit*m >= v {
			return unit * m
		}
	}
	return unit * 10
}

func round(v float64) float64 { return math.Round(v*10) / 10 }

// number writes a value short.
func number(v float64) string {
	switch {
	case v >= 1e6:
		return trim(v/1e6, 2) + " M"
	case v >= 1e4:
		return trim(v/1e3, 2) + " k"
	}
	return trim(v, 2)
}

// trim writes a value with at most so many digits after the point.
func trim(v float64, digits int) string {
	shift := math.Pow10(digits)
	return strconv.FormatFloat(math.Round(v*shift)/shift, 'f', -1, 64)
}

func money(v float64) string { return fmt.Sprintf("%.4f", v) }

func seconds(v float64) string { return span(time.Duration(v * float64(time.Second))) }

// Limits of the charts.
const (
	buckets  = 20
	chartDay = 30
	topMost  = 10
)

type chartPage struct{ *Page }

func (p chartPage) charts(v *visit) error {
	all := p.timely(p.Turns.Recent(math.MaxInt32))
	all = append(all, p.depths())
	first := v.now.AddDate(0, 0, 1-chartDay)
	uses, err := p.Uses(v.Context(), first.Format(time.DateOnly), v.now.Format(time.DateOnly))
	if err != nil {
		return err
	}
	var list []drawing
	for _, f := range append(all, spent(uses, v.now)...) {
		list = append(list, f.draw())
	}
	return p.show(v, "charts", "Charts", "/charts", list)
}

// timely returns the charts of the latest turns, in equal spans of time.
func (p chartPage) timely(ends []watch.TurnEnd) []figures {
	groups, labels := p.group(ends)
	var outcomes []series
	for _, to := range []string{"answered", "silent", "set aside"} {
		outcomes = append(outcomes, summed(to, groups, func(e *watch.TurnEnd) int {
			if outcome(e) == to {
				return 1
			}
			return 0
		}))
	}
	wrong := summed("corrections", groups, func(e *watch.TurnEnd) int { return corrections(e.Trace) })
	list := []figures{
		times("Waiting for models", groups, func(t *watch.Trace) time.Duration { return t.Thought }),
		times("The bot's own time", groups, func(t *watch.Trace) time.Duration { return max(t.Took-t.Thought, 0) }),
		{Title: "Turns by outcome", Series: outcomes},
		{Title: "Corrections: wrong answers of models", Series: []series{wrong}},
	}
	for i := range list {
		list[i].Axis, list[i].Labels = "From", labels
	}
	return list
}

// times returns the chart of a duration in groups of turns.
func times(title string, groups [][]watch.TurnEnd, of func(*watch.Trace) time.Duration) figures {
	half, above := series{Name: "half of the turns within"}, series{Name: "95 % within"}
	for _, g := range groups {
		middle, most := quantile(g, of, 0.5), quantile(g, of, 0.95)
		half.Values = append(half.Values, middle)
		above.Values, above.Labels = append(above.Values, most-middle), append(above.Labels, most)
	}
	return figures{Title: title, show: seconds, Series: []series{half, above}}
}

// summed returns the sums of a number in groups of turns.
func summed(name string, groups [][]watch.TurnEnd, of func(*watch.TurnEnd) int) series {
	s := series{Name: name, Values: make([]float64, len(groups))}
	for i, g := range groups {
		for k := range g {
			s.Values[i] += float64(of(&g[k]))
		}
	}
	return s
}

// group groups turns by equal spans of time, the oldest first.
func (p chartPage) group(ends []watch.TurnEnd) (groups [][]watch.TurnEnd, labels []string) {
	if len(ends) == 0 {
		return nil, nil
	}
	began := func(a, b watch.TurnEnd) int { return a.Trace.Began.Compare(b.Trace.Began) }
	first, last := slices.MinFunc(ends, began).Trace.Began, slices.MaxFunc(ends, began).Trace.Began
	width := max(last.Sub(first)/buckets+1, time.Second)
	n := int(last.Sub(first)/width) + 1
	groups = make([][]watch.TurnEnd, n)
	for _, e := range ends {
		i := int(e.Trace.Began.Sub(first) / width)
		groups[i] = append(groups[i], e)
	}
	for i := range n {
		labels = append(labels, p.hour(first.Add(time.Duration(i)*width)))
	}
	return groups, labels
}

// quantile is in seconds; 0 for no turns.
func quantile(g []watch.TurnEnd, of func(*watch.Trace) time.Duration, q float64) float64 {
	if len(g) == 0 {
		return 0
	}
	var list []float64
	for i := range g {
		list = append(list, of(g[i].Trace).Seconds())
	}
	slices.Sort(list)
	return list[int(math.Ceil(q*float64(len(list))))-1]
}

func (p chartPage) depths() figures {
	samples := p.queue.samples()
	f := figures{Title: "Messages that wait for an answer", Axis: "At", Series: []series{{Name: "waiting"}}}
	per := max((len(samples)+buckets-1)/buckets, 1)
	for part := range slices.Chunk(samples, per) {
		most := slices.MaxFunc(part, func(a, b depth) int { return cmp.Compare(a.Entries, b.Entries) })
		f.Labels = append(f.Labels, p.hour(part[0].Time))
		f.Series[0].Values = append(f.Series[0].Values, float64(most.Entries))
	}
	return f
}

// spent returns the charts of tokens and costs.
func spent(uses []Use, today time.Time) []figures {
	first := today.AddDate(0, 0, 1-chartDay)
	labels, days := make([]string, chartDay), make(map[string]int)
	for i := range labels {
		day := first.AddDate(0, 0, i).Format(time.DateOnly)
		labels[i], days[day] = day[5:], i
	}
	ofPlace := func(u *Use) bool { return !u.Whose.IsPerson() } // each use has a row for its place
	daily := func(name string, of func(u *Use) float64) series {
		s := series{Name: name, Values: make([]float64, chartDay)}
		for i := range uses {
			day, ok := days[uses[i].Day]
			if ok && ofPlace(&uses[i]) {
				s.Values[day] += of(&uses[i])
			}
		}
		return s
	}
	tokens := []series{
		daily("new", func(u *Use) float64 { return float64(u.In - u.Cached) }),
		daily("cached", func(u *Use) float64 { return float64(u.Cached) }),
		daily("written", func(u *Use) float64 { return float64(u.Out) }),
	}
	cost := []series{daily("cost", func(u *Use) float64 { return u.Cost })}
	return slices.Concat([]figures{
		{Title: "Tokens by day", Axis: "Day", Labels: labels, Series: tokens},
		{Title: "Cost by day", Axis: "Day", Labels: labels, Series: cost, show: money},
	}, most("person", uses, func(u *Use) bool { return u.Whose.IsPerson() }), most("place", uses, ofPlace))
}

// most returns the charts of the largest uses.
func most(who string, uses []Use, meant func(*Use) bool) []figures {
	tokens, cost := make(map[string]float64), make(map[string]float64)
	for i := range uses {
		u := &uses[i]
		if meant(u) {
			tokens[u.Whose.String()] += float64(u.In + u.Out)
			cost[u.Whose.String()] += u.Cost
		}
	}
	return []figures{ranked("Tokens by "+who, who, tokens, nil), ranked("Cost by "+who, who, cost, money)}
}

// ranked returns the chart of the largest sums.
func ranked(title, who string, sums map[string]float64, show func(float64) string) figures {
	names := sorting.Sorted(maps.Keys(sums), func(a, b string) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b))
	})
	s := series{Name: "in 30 days"}
	f := figures{Title: title, Axis: who, Labels: names[:min(len(names), topMost)], show: show, ranked: true}
	for _, name := range f.Labels {
		s.Values = append(s.Values, sums[name])
	}
	f.Series = []series{s}
	return f
}
