package display

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"unicode"

	"github.com/wcharczuk/go-chart/v2"
	"github.com/wcharczuk/go-chart/v2/drawing"

	"synthbot/core"
)

// The picture, in pixels.
const (
	width  = 900
	height = 500
)

// shown draws the chart. Where that cannot be done its words remain.
func (p *plot) shown() Shown {
	words := p.words()
	s := Shown{Format: Chart, Text: escape(words)}
	if png, err := p.png(); err == nil {
		s.Picture = &core.Upload{Name: p.file(), MIME: "image/png", Data: png, Alt: words, Kind: core.Image}
	}
	return s
}

// file is the picture's name.
func (p *plot) file() string {
	name := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return '-'
	}, clip(p.title, 40))
	if name = strings.Trim(name, "-…"); name == "" {
		name = "chart"
	}
	return name + ".png"
}

// png draws the picture. A panic of the library, whose input is foreign, is an
// error.
func (p *plot) png() (data []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("chart: %v", r)
		}
	}()
	var b bytes.Buffer
	c := p.chart()
	if err := c.Render(chart.PNG, &b); err != nil {
		return nil, fmt.Errorf("chart: %w", err)
	}
	return b.Bytes(), nil
}

func (p *plot) chart() chart.Chart {
	c := chart.Chart{
		Title: clip(p.title, maxLabel), Width: width, Height: height,
		Background: chart.Style{Padding: chart.Box{Top: 50, Left: 20, Right: 30, Bottom: 20}},
		XAxis:      chart.XAxis{Ticks: p.across()},
		YAxis:      chart.YAxis{Ticks: p.upward(), GridMajorStyle: chart.Style{StrokeColor: drawing.ColorFromHex("dddddd"), StrokeWidth: 1}},
	}
	for i := range p.series {
		c.Series = append(c.Series, p.drawn(i))
	}
	if len(p.series) > 1 {
		c.Background.Padding.Left = 150
		c.Elements = []chart.Renderable{chart.LegendLeft(&c)}
	}
	return c
}

// drawn is a series as the library knows it.
func (p *plot) drawn(i int) chart.Series {
	s := &p.series[i]
	name := s.name
	if name == "" {
		name = fmt.Sprint(i + 1)
	}
	colour := chart.GetAlternateColor(i)
	if p.kind == kindBar {
		return bars{series: s, name: name, at: i, of: len(p.series), colour: colour}
	}
	style := chart.Style{StrokeColor: colour, StrokeWidth: 2.5}
	if len(s.x) <= 60 {
		style.DotColor, style.DotWidth = colour, 3
	}
	return chart.ContinuousSeries{Name: name, Style: style, XValues: s.x, YValues: s.y}
}

// bounds are the least and the largest of the numbers, at least one.
func bounds(of func(*series) []float64, all []series) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for i := range all {
		for _, f := range of(&all[i]) {
			low, high = min(low, f), max(high, f)
		}
	}
	return low, high
}

// upward are the marks of the vertical axis.
func (p *plot) upward() []chart.Tick {
	low, high := bounds(func(s *series) []float64 { return s.y }, p.series)
	if p.kind == kindBar || low > 0 && low < high/3 {
		low, high = min(low, 0), max(high, 0)
	}
	return marks(low, high)
}

// across are the marks of the horizontal axis: some of the labels, or numbers.
func (p *plot) across() []chart.Tick {
	if len(p.labels) == 0 {
		return marks(bounds(func(s *series) []float64 { return s.x }, p.series))
	}
	_, last := bounds(func(s *series) []float64 { return s.x }, p.series)
	ticks := []chart.Tick{{Value: -0.5}}
	step := int(math.Ceil((last + 1) / 10))
	for i := 0; i <= int(last); i += step {
		ticks = append(ticks, chart.Tick{Value: float64(i), Label: clip(p.label(float64(i)), 14)})
	}
	return append(ticks, chart.Tick{Value: last + 0.5})
}

// marks are round numbers around an interval, about five.
func marks(low, high float64) []chart.Tick {
	if high-low <= math.Abs(high)*1e-12 {
		low, high = low-1, high+1
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/4)))
	for _, more := range []float64{2, 2.5, 2} {
		if (high-low)/step > 6 {
			step *= more
		}
	}
	var ticks []chart.Tick
	for i := math.Floor(low / step); len(ticks) < 20; i++ {
		ticks = append(ticks, chart.Tick{Value: i * step, Label: short(i * step)})
		if i*step >= high {
			break
		}
	}
	return ticks
}

// bars draws one of several series as bars that stand side by side.
type bars struct {
	*series
	name   string
	at, of int
	colour drawing.Color
}

// GetName implements chart.Series.
func (b bars) GetName() string { return b.name }

// GetYAxis implements chart.Series.
func (b bars) GetYAxis() chart.YAxisType { return chart.YAxisPrimary }

// GetStyle implements chart.Series.
func (b bars) GetStyle() chart.Style { return chart.Style{StrokeColor: b.colour, StrokeWidth: 4} }

// Validate implements chart.Series.
func (b bars) Validate() error { return nil }

// Render implements chart.Series.
func (b bars) Render(r chart.Renderer, box chart.Box, across, upward chart.Range, _ chart.Style) {
	const share = 0.8 // of the room between two labels
	one := share / float64(b.of)
	for i, x := range b.x {
		left := x - share/2 + float64(b.at)*one
		bar := chart.Box{
			Left: box.Left + across.Translate(left), Right: box.Left + across.Translate(left+one*0.95),
			Top: box.Bottom - upward.Translate(max(0, b.y[i])), Bottom: box.Bottom - upward.Translate(min(0, b.y[i])),
		}
		chart.Draw.Box(r, bar, chart.Style{FillColor: b.colour, StrokeColor: b.colour})
	}
}
