package page

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"synthbot/admin/page/chart"
	"synthbot/core"
	"synthbot/core/sorting"
	"synthbot/core/watch"
)

const (
	buckets   = 20
	chartDays = 30
	maxRanked = 10
)

type chartPage struct{ *Page }

func (p chartPage) charts(v *visit) error {
	ends, _ := p.Turns.After(0, math.MaxInt)
	all := append(p.turnCharts(ends), p.queueChart())
	first := v.now.AddDate(0, 0, 1-chartDays)
	uses, err := p.Bot.Uses(v.Context(), first.Format(time.DateOnly), v.now.Format(time.DateOnly))
	if err != nil {
		return err
	}
	var list []chart.Drawing
	for _, f := range append(all, usageCharts(uses, v.now, p.usedNames(v, uses))...) {
		list = append(list, f.Draw())
	}
	return p.show(v, "charts", "Charts", "/charts", list)
}

// turnCharts returns the charts of the latest turns, grouped by equal spans of time.
func (p chartPage) turnCharts(ends []watch.TurnEnd) []chart.Figures {
	groups, labels := p.group(ends)
	var outcomes []chart.Series
	for _, to := range []string{"answered", "silent", "set aside"} {
		outcomes = append(outcomes, sumSeries(to, groups, func(e *watch.TurnEnd) int {
			if outcome(e) == to {
				return 1
			}
			return 0
		}))
	}
	wrong := sumSeries("corrections", groups, func(e *watch.TurnEnd) int { return corrections(e.Trace) })
	list := []chart.Figures{
		timeChart("Waiting for models", groups, func(t *watch.Trace) time.Duration { return t.Thought }),
		timeChart("The bot's own time", groups, func(t *watch.Trace) time.Duration { return max(t.Took-t.Thought, 0) }),
		{Title: "Turns by outcome", Series: outcomes},
		{Title: "Corrections: wrong answers of models", Series: []chart.Series{wrong}},
	}
	for i := range list {
		list[i].Axis, list[i].Labels = "From", labels
	}
	return list
}

func timeChart(title string, groups [][]watch.TurnEnd, of func(*watch.Trace) time.Duration) chart.Figures {
	half, above := chart.Series{Name: "half of the turns within"}, chart.Series{Name: "95 % within"}
	for _, g := range groups {
		middle, most := quantile(g, of, 0.5), quantile(g, of, 0.95)
		half.Values = append(half.Values, middle)
		above.Values, above.Labels = append(above.Values, most-middle), append(above.Labels, most)
	}
	seconds := func(v float64) string { return formatDuration(time.Duration(v * float64(time.Second))) }
	return chart.Figures{Title: title, Show: seconds, Series: []chart.Series{half, above}}
}

func sumSeries(name string, groups [][]watch.TurnEnd, of func(*watch.TurnEnd) int) chart.Series {
	s := chart.Series{Name: name, Values: make([]float64, len(groups))}
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
		labels = append(labels, p.formatHour(first.Add(time.Duration(i)*width)))
	}
	return groups, labels
}

// quantile returns a quantile of durations in seconds; 0 without turns.
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

func (p chartPage) queueChart() chart.Figures {
	samples := p.queue.samples()
	f := chart.Figures{Title: "Messages that wait for an answer", Axis: "At", Series: []chart.Series{{Name: "waiting"}}}
	per := max((len(samples)+buckets-1)/buckets, 1)
	for part := range slices.Chunk(samples, per) {
		most := slices.MaxFunc(part, func(a, b queueSample) int { return cmp.Compare(a.Entries, b.Entries) })
		f.Labels = append(f.Labels, p.formatHour(part[0].Time))
		f.Series[0].Values = append(f.Series[0].Values, float64(most.Entries))
	}
	return f
}

// usedNames returns a function that puts the name of a place or user, if it used many tokens, before its path.
func (p chartPage) usedNames(v *visit, uses []Use) func(core.Path) string {
	sums := make(map[core.Path]int)
	for i := range uses {
		sums[uses[i].Whose] += uses[i].In + uses[i].Out
	}
	most := sorting.Sorted(maps.Keys(sums), func(a, b core.Path) int { return cmp.Compare(sums[b], sums[a]) })
	names := p.Bot.Names(v.Context(), most[:min(len(most), 4*maxRanked)]...)
	return func(path core.Path) string { return strings.TrimPrefix(names[path]+" "+path.String(), " ") }
}

func usageCharts(uses []Use, today time.Time, name func(core.Path) string) []chart.Figures {
	first := today.AddDate(0, 0, 1-chartDays)
	labels, days := make([]string, chartDays), make(map[string]int)
	for i := range labels {
		day := first.AddDate(0, 0, i).Format(time.DateOnly)
		labels[i], days[day] = day[5:], i
	}
	ofPerson := func(u *Use) bool { return u.Whose.IsPerson() }
	ofPlace := func(u *Use) bool { return !u.Whose.IsPerson() } // each use has a row for its place
	daily := func(name string, of func(u *Use) float64) chart.Series {
		s := chart.Series{Name: name, Values: make([]float64, chartDays)}
		for i := range uses {
			day, ok := days[uses[i].Day]
			if ok && ofPlace(&uses[i]) {
				s.Values[day] += of(&uses[i])
			}
		}
		return s
	}
	tokens := []chart.Series{
		daily("new", func(u *Use) float64 { return float64(u.In - u.Cached) }),
		daily("cached", func(u *Use) float64 { return float64(u.Cached) }),
		daily("written", func(u *Use) float64 { return float64(u.Out) }),
	}
	cost := []chart.Series{daily("cost", func(u *Use) float64 { return u.Cost })}
	return slices.Concat([]chart.Figures{
		{Title: "Tokens by day", Axis: "Day", Labels: labels, Series: tokens},
		{Title: "Cost by day", Axis: "Day", Labels: labels, Series: cost, Show: chart.Money},
	}, sumCharts("person", uses, name, ofPerson), sumCharts("place", uses, name, ofPlace))
}

// sumCharts returns the charts of tokens and cost by place or by person.
func sumCharts(who string, uses []Use, name func(core.Path) string, meant func(*Use) bool) []chart.Figures {
	tokens, cost := make(map[string]float64), make(map[string]float64)
	for i := range uses {
		u := &uses[i]
		if meant(u) {
			tokens[name(u.Whose)] += float64(u.In + u.Out)
			cost[name(u.Whose)] += u.Cost
		}
	}
	return []chart.Figures{
		rankedChart("Tokens by "+who, who, tokens, nil), rankedChart("Cost by "+who, who, cost, chart.Money),
	}
}

func rankedChart(title, who string, sums map[string]float64, show func(float64) string) chart.Figures {
	names := sorting.Sorted(maps.Keys(sums), func(a, b string) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b))
	})
	s := chart.Series{Name: "in 30 days"}
	f := chart.Figures{Title: title, Axis: who, Labels: names[:min(len(names), maxRanked)], Show: show, Ranked: true}
	for _, name := range f.Labels {
		s.Values = append(s.Values, sums[name])
	}
	f.Series = []chart.Series{s}
	return f
}
