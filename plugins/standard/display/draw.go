package display

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"

	"synthbot/core"
	"synthbot/core/txt"
)

// Size of the picture, in pixels.
const (
	width  = 900
	height = 500
)

// render returns the chart as a picture with an alt text, or only the text if drawing fails.
func (p *plot) render() Shown {
	words := p.altText()
	s := Shown{Format: Chart, Text: escape(words)}
	png, err := p.png()
	if err != nil {
		return s
	}
	name := txt.FileName(p.title, "chart") + ".png"
	s.Picture = &core.Upload{Name: name, MIME: "image/png", Data: png, Alt: words, Kind: core.MediaImage}
	return s
}

// Colours.
var (
	black    = color.RGBA{0x33, 0x33, 0x33, 0xff}
	pale     = color.RGBA{0xdd, 0xdd, 0xdd, 0xff}
	coloured = [maxSeries]color.RGBA{
		{0x00, 0x74, 0xd9, 0xff}, {0xff, 0x85, 0x1b, 0xff}, {0x2e, 0xb0, 0x40, 0xff}, {0xe0, 0x3c, 0x31, 0xff},
		{0x85, 0x14, 0x9b, 0xff}, {0x39, 0xa0, 0xa0, 0xff}, {0xb8, 0x86, 0x0b, 0xff}, {0x77, 0x77, 0x77, 0xff},
	}
)

// frame is the picture with the area of the points and the axes.
type frame struct {
	*image.RGBA
	face                     font.Face
	left, top, right, bottom float64 // pixels
	xTicks, yTicks           []tick
}

// tick is a mark on an axis.
type tick struct {
	value float64
	label string
}

// x and y convert values to pixels.
func (f *frame) x(value float64) float64 {
	return f.left + (f.right-f.left)*share(f.xTicks, value)
}

func (f *frame) y(value float64) float64 {
	return f.bottom - (f.bottom-f.top)*share(f.yTicks, value)
}

// share returns the position of a value on an axis, from 0 to 1.
func share(axis []tick, value float64) float64 {
	low, high := axis[0].value, axis[len(axis)-1].value
	return min(max((value-low)/(high-low), 0), 1)
}

func newFace() (font.Face, error) {
	parsed, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return nil, err
	}
	return opentype.NewFace(parsed, &opentype.FaceOptions{Size: 14, DPI: 72})
}

func (p *plot) png() ([]byte, error) {
	face, err := newFace()
	if err != nil {
		return nil, fmt.Errorf("chart: %w", err)
	}
	f := &frame{
		RGBA: image.NewRGBA(image.Rect(0, 0, width, height)), face: face,
		left: 20, top: 50, right: width - 30, bottom: height - 40, xTicks: p.xTicks(), yTicks: p.yTicks(),
	}
	draw.Draw(f, f.Bounds(), image.White, image.Point{}, draw.Src)
	for _, t := range f.yTicks {
		f.left = max(f.left, f.textWidth(t.label)+30)
	}
	if len(p.series) > 1 {
		p.legend(f)
	}
	f.axes()
	f.text(width/2, 30, 0.5, txt.Clip(p.title, maxLabel), black)
	for i := range p.series {
		if p.kind == kindBar {
			p.bars(f, i)
		} else {
			p.line(f, i)
		}
	}
	var b bytes.Buffer
	err = png.Encode(&b, f)
	return b.Bytes(), err
}

func (p *plot) legend(f *frame) {
	for i, s := range p.series {
		y := f.top + 20 + 22*float64(i)
		f.box(20, y-10, 32, y+2, coloured[i])
		f.text(40, y, 0, txt.Clip(cmp.Or(s.name, fmt.Sprint(i+1)), 14), black)
	}
	f.left += 150
}

func (f *frame) axes() {
	for _, t := range f.yTicks {
		y := f.y(t.value)
		f.box(f.left, y, f.right, y, pale)
		f.text(f.left-8, y+5, 1, t.label, black)
	}
	for _, t := range f.xTicks {
		if t.label != "" {
			x := f.x(t.value)
			f.box(x, f.bottom, x, f.bottom+5, black)
			f.text(x, f.bottom+22, 0.5, t.label, black)
		}
	}
	f.box(f.left, f.bottom, f.right, f.bottom, black)
}

// line draws series i as a line, with dots if there are few points.
func (p *plot) line(f *frame, i int) {
	const thick, radius, corners = 2.5, 3.5, 12
	s := &p.series[i]
	drawn := vector.NewRasterizer(width, height)
	for k := range s.x {
		x, y := f.x(s.x[k]), f.y(s.y[k])
		if k > 0 {
			x0, y0 := f.x(s.x[k-1]), f.y(s.y[k-1])
			length := max(math.Hypot(x-x0, y-y0), 1e-9)
			dx, dy := (y-y0)/length*thick/2, (x0-x)/length*thick/2
			polygon(drawn, x0+dx, y0+dy, x+dx, y+dy, x-dx, y-dy, x0-dx, y0-dy)
		}
		if len(s.x) <= 60 {
			var dot []float64
			for c := range corners {
				sin, cos := math.Sincos(2 * math.Pi * float64(c) / corners)
				dot = append(dot, x+radius*cos, y+radius*sin)
			}
			polygon(drawn, dot...)
		}
	}
	drawn.Draw(f, f.Bounds(), image.NewUniform(coloured[i]), image.Point{})
}

// polygon adds a polygon with the corners x, y, x, y and so on, clockwise.
func polygon(r *vector.Rasterizer, at ...float64) {
	r.MoveTo(float32(at[0]), float32(at[1]))
	for i := 2; i < len(at); i += 2 {
		r.LineTo(float32(at[i]), float32(at[i+1]))
	}
	r.ClosePath()
}

// bars draws series i as bars, beside those of the other series.
func (p *plot) bars(f *frame, i int) {
	const room = 0.8 // share of the distance between two labels
	one := room / float64(len(p.series))
	s := &p.series[i]
	for k, x := range s.x {
		left := x - room/2 + float64(i)*one
		f.box(f.x(left), f.y(max(0, s.y[k])), f.x(left+one*0.95), f.y(min(0, s.y[k])), coloured[i])
	}
}

func (p *plot) bounds(of func(series) []float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, s := range p.series {
		for _, f := range of(s) {
			low, high = min(low, f), max(high, f)
		}
	}
	return low, high
}

func (p *plot) yTicks() []tick {
	low, high := p.bounds(func(s series) []float64 { return s.y })
	if p.kind == kindBar || low > 0 && low < high/3 {
		low, high = min(low, 0), max(high, 0)
	}
	return roundTicks(low, high)
}

// xTicks returns the ticks of the horizontal axis: some of the labels, or numbers.
func (p *plot) xTicks() []tick {
	low, last := p.bounds(func(s series) []float64 { return s.x })
	if len(p.labels) == 0 {
		return roundTicks(low, last)
	}
	ticks := []tick{{value: -0.5}}
	step := int(math.Ceil((last + 1) / 10))
	for i := 0; i <= int(last); i += step {
		ticks = append(ticks, tick{value: float64(i), label: txt.Clip(p.label(float64(i)), 14)})
	}
	return append(ticks, tick{value: last + 0.5})
}

// roundTicks returns about five round numbers that enclose an interval.
func roundTicks(low, high float64) []tick {
	const smallest = 1e-300 // below, the step between two ticks can be 0
	if high-low <= max(math.Abs(high)*1e-12, smallest) {
		low, high = low-1, high+1
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/4)))
	for _, more := range []float64{2, 2.5, 2} {
		if (high-low)/step > 6 {
			step *= more
		}
	}
	var ticks []tick
	for i := math.Floor(low / step); len(ticks) < 20; i++ {
		ticks = append(ticks, tick{value: i * step, label: formatNumber(i * step)})
		if i*step >= high {
			break
		}
	}
	return ticks
}

// box fills a rectangle of at least one pixel.
func (f *frame) box(left, top, right, bottom float64, colour color.Color) {
	r := image.Rect(round(left), round(top), max(round(right), round(left)+1), max(round(bottom), round(top)+1))
	draw.Draw(f, r, image.NewUniform(colour), image.Point{}, draw.Over)
}

func round(f float64) int { return int(math.Round(f)) }

func (f *frame) textWidth(text string) float64 { return float64(font.MeasureString(f.face, text)) / 64 }

// text draws a line of text with its baseline at y. share is the part of its width left of x.
func (f *frame) text(x, y, share float64, text string, colour color.Color) {
	x -= share * f.textWidth(text)
	d := font.Drawer{Dst: f, Src: image.NewUniform(colour), Face: f.face, Dot: fixed.P(round(x), round(y))}
	d.DrawString(text)
}
