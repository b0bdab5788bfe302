// Package chart makes bar charts of figures, and the table below each, as values that a template prints.
package chart

import (
	"fmt"
	"math"
	"strconv"
)

// Series is one kind of value in a chart.
type Series struct {
	Class  int // its number, by which it is coloured
	Name   string
	Values []float64
	Labels []float64 // what is written for each value; nil: the values
}

// Figures is the data of a chart and of the table below it.
type Figures struct {
	Title, Axis string // Axis: what the labels are
	Labels      []string
	Series      []Series                   // stacked
	Show        func(value float64) string // nil: as a whole number
	Ranked      bool                       // the labels are long: the axis has their numbers
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

// Drawing is a rendered chart and the table below it.
type Drawing struct {
	Figures
	Empty     bool // all values are 0
	Bars      []bar
	Up, Along []tick // the labels of the axes
	Rows      []Row
}

type bar struct {
	X, Y, W, H float64
	Class      int // the number of its series
	Tip        string
}

type tick struct {
	X, Y float64
	Text string
}

// Row is a row of the table below a chart.
type Row struct {
	Label string
	Cells []string
}

// Draw returns the chart of the figures.
func (f Figures) Draw() Drawing {
	highest := f.highest()
	top := roundUp(highest)
	d := Drawing{Figures: f, Empty: highest <= 0}
	for class := range f.Series {
		f.Series[class].Class = class
	}
	step := float64(plotWide) / float64(max(len(f.Labels), 1))
	every := max((len(f.Labels)+chartLabels-1)/chartLabels, 1)
	for i, label := range f.Labels {
		left := chartLeft + float64(i)*step
		d.stack(i, left+step*0.1, step*0.8, plotHigh/top)
		if f.Ranked {
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

func (d *Drawing) stack(label int, left, width, scale float64) {
	row := Row{Label: d.Labels[label]}
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

func (f Figures) figure(v float64) string {
	if f.Show == nil {
		return trim(v, 0)
	}
	return f.Show(v)
}

// short writes a value for an axis.
func (f Figures) short(v float64) string {
	const most = 7 // letters have room there
	if f.Show != nil && len(f.Show(v)) <= most {
		return f.Show(v)
	}
	return number(v)
}

func (f Figures) highest() (most float64) {
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

// Money writes a cost.
func Money(v float64) string { return fmt.Sprintf("%.4f", v) }
