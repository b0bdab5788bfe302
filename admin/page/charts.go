package page

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"synthbot/core/watch"
)

// series is one kind of value in a chart.
type series struct {
	Name   string
	Values []float64
	Labels []float64 // what is written for each value; nil: the values
}

// label returns what is written for a value.
func (s series) label(i int) float64 {
	if s.Labels != nil {
		return s.Labels[i]
	}
	return s.Values[i]
}

// figures is the data of a chart and of the table below it.
type figures struct {
	Title, Axis string // Axis: what the labels are
	Labels      []string
	Series      []series // stacked
	show        func(float64) string
	ranked      bool // the labels are long: the axis has their numbers
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

// bar is one rectangle of a chart.
type bar struct {
	X, Y, W, H float64
	Class      int
	Tip        string
}

// tick is a label on an axis.
type tick struct {
	X, Y float64
	Text string
}

// drawing is a rendered chart and the table below it.
type drawing struct {
	Title, Axis string
	Empty       bool // all values are 0
	Bars        []bar
	Up, Along   []tick // the labels of the axes
	Key         []keyEntry
	Rows        []figureRow
}

// keyEntry says which series the bars of a class are.
type keyEntry struct {
	Class int
	Name  string
}

type figureRow struct {
	Label string
	Cells []string
}

// draw renders a chart.
func (f figures) draw() drawing {
	d := drawing{Title: f.Title, Axis: f.Axis, Empty: f.highest() <= 0, Bars: f.bars(), Up: f.up(), Along: f.along()}
	for class, s := range f.Series {
		d.Key = append(d.Key, keyEntry{class, s.Name})
	}
	for i, label := range f.Labels {
		r := figureRow{Label: label}
		for _, s := range f.Series {
			r.Cells = append(r.Cells, f.figure(s.label(i)))
		}
		d.Rows = append(d.Rows, r)
	}
	return d
}

// bars returns the rectangles.
func (f figures) bars() (bars []bar) {
	top := f.top()
	step := float64(plotWide) / float64(max(len(f.Labels), 1))
	for i, label := range f.Labels {
		y := float64(chartTop + plotHigh)
		for k, s := range f.Series {
			h := s.Values[i] / top * plotHigh
			if h <= 0 {
				continue
			}
			y -= h
			bars = append(bars, bar{
				round(chartLeft + float64(i)*step + step*0.1), round(y), round(step * 0.8), round(h), k,
				label + ", " + s.Name + ": " + f.figure(s.label(i)),
			})
		}
	}
	return bars
}

// figure writes a value; a number whole.
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

// up returns the labels of the vertical axis.
func (f figures) up() (list []tick) {
	top := f.top()
	for i := range chartSteps + 1 {
		part := float64(i) / chartSteps
		list = append(list, tick{chartLeft - 4, round(chartTop + plotHigh*(1-part)), f.short(top * part)})
	}
	return list
}

// along returns the labels of the horizontal axis.
func (f figures) along() (list []tick) {
	step := float64(plotWide) / float64(max(len(f.Labels), 1))
	every := max((len(f.Labels)+chartLabels-1)/chartLabels, 1)
	for i := 0; i < len(f.Labels); i += every {
		text := f.Labels[i]
		if f.ranked {
			text = strconv.Itoa(i + 1)
		}
		list = append(list, tick{round(chartLeft + (float64(i)+0.5)*step), chartHigh - 8, text})
	}
	return list
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

// top is a round value above all that is shown.
func (f figures) top() float64 {
	most := f.highest()
	if most <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(most)))
	for _, m := range []float64{1, 2, 4, 5, 10} {
		if unit*m >= most {
			return unit * m
		}
	}
	return most
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

// chartPage is the page of charts.
type chartPage struct{ *Page }

// charts shows trends.
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
	per := func(of func(g []watch.TurnEnd) float64) (values []float64) {
		for _, g := range groups {
			values = append(values, of(g))
		}
		return values
	}
	times := func(title string, of func(t *watch.Trace) time.Duration) figures {
		half := per(func(g []watch.TurnEnd) float64 { return quantile(g, of, 0.5) })
		most := per(func(g []watch.TurnEnd) float64 { return quantile(g, of, 0.95) })
		above := slices.Clone(most)
		for i := range above {
			above[i] -= half[i]
		}
		return figures{Title: title, Axis: "From", Labels: labels, show: seconds, Series: []series{
			{Name: "half of the turns within", Values: half}, {Name: "95 % within", Values: above, Labels: most},
		}}
	}
	count := func(name string, of func(e *watch.TurnEnd) int) series {
		return series{Name: name, Values: per(func(g []watch.TurnEnd) (n float64) {
			for i := range g {
				n += float64(of(&g[i]))
			}
			return n
		})}
	}
	var outcomes []series
	for _, to := range []string{"answered", "silent", "set aside"} {
		outcomes = append(outcomes, count(to, func(e *watch.TurnEnd) int {
			if outcome(e) == to {
				return 1
			}
			return 0
		}))
	}
	corrected := count("corrections", func(e *watch.TurnEnd) int { return corrections(e.Trace) })
	return []figures{
		times("Waiting for models", func(t *watch.Trace) time.Duration { return t.Thought }),
		times("The bot's own time", func(t *watch.Trace) time.Duration { return max(t.Took-t.Thought, 0) }),
		{Title: "Turns by outcome", Axis: "From", Labels: labels, Series: outcomes},
		{Title: "Corrections: wrong answers of models", Axis: "From", Labels: labels, Series: []series{corrected}},
	}
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
		labels = append(labels, first.Add(time.Duration(i)*width).In(p.Clock().Location()).Format("15:04:05"))
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

// depths returns the chart of waiting messages.
func (p chartPage) depths() figures {
	samples := p.queue.samples()
	f := figures{Title: "Messages that wait for an answer", Axis: "At", Series: []series{{Name: "waiting"}}}
	per := max((len(samples)+buckets-1)/buckets, 1)
	for part := range slices.Chunk(samples, per) {
		most := slices.MaxFunc(part, func(a, b depth) int { return cmp.Compare(a.Entries, b.Entries) })
		f.Labels = append(f.Labels, part[0].Time.In(p.Clock().Location()).Format("15:04:05"))
		f.Series[0].Values = append(f.Series[0].Values, float64(most.Entries))
	}
	return f
}

// spent returns the charts of tokens and costs.
func spent(uses []Use, today time.Time) []figures {
	var days []string
	for i := range chartDay {
		days = append(days, today.AddDate(0, 0, i+1-chartDay).Format(time.DateOnly))
	}
	places := func(u *Use) bool { return !u.Whose.IsPerson() } // each use has a row for its place
	daily := func(of func(u *Use) float64) []float64 {
		values := make([]float64, len(days))
		for i := range uses {
			k := slices.Index(days, uses[i].Day)
			if k >= 0 && places(&uses[i]) {
				values[k] += of(&uses[i])
			}
		}
		return values
	}
	labels := make([]string, len(days))
	for i, d := range days {
		labels[i] = d[5:]
	}
	tokens := []series{
		{Name: "new", Values: daily(func(u *Use) float64 { return float64(u.In - u.Cached) })},
		{Name: "cached", Values: daily(func(u *Use) float64 { return float64(u.Cached) })},
		{Name: "written", Values: daily(func(u *Use) float64 { return float64(u.Out) })},
	}
	cost := []series{{Name: "cost", Values: daily(func(u *Use) float64 { return u.Cost })}}
	return slices.Concat([]figures{
		{Title: "Tokens by day", Axis: "Day", Labels: labels, Series: tokens},
		{Title: "Cost by day", Axis: "Day", Labels: labels, Series: cost, show: money},
	}, most("person", uses, func(u *Use) bool { return u.Whose.IsPerson() }), most("place", uses, places))
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
	rank := func(title string, sums map[string]float64, show func(float64) string) figures {
		names := slices.SortedFunc(maps.Keys(sums), func(a, b string) int {
			return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b))
		})
		f := figures{Title: title, Axis: who, Series: []series{{Name: "in 30 days"}}, show: show, ranked: true}
		for _, name := range names[:min(len(names), topMost)] {
			f.Labels = append(f.Labels, name)
			f.Series[0].Values = append(f.Series[0].Values, sums[name])
		}
		return f
	}
	return []figures{rank("Tokens by "+who, tokens, nil), rank("Cost by "+who, cost, money)}
}
