package display

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// canvas is a picture that lines, boxes and words are drawn on.
type canvas struct {
	*image.RGBA
	face font.Face
}

// newCanvas is a white picture.
func newCanvas(width, height int) (*canvas, error) {
	f, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return nil, fmt.Errorf("font: %w", err)
	}
	face, err := opentype.NewFace(f, &opentype.FaceOptions{Size: 14, DPI: 72})
	if err != nil {
		return nil, fmt.Errorf("font: %w", err)
	}
	c := &canvas{image.NewRGBA(image.Rect(0, 0, width, height)), face}
	draw.Draw(c, c.Bounds(), image.White, image.Point{}, draw.Src)
	return c, nil
}

// box fills a rectangle, at least one pixel of it.
func (c *canvas) box(left, top, right, bottom float64, colour color.Color) {
	r := image.Rect(round(left), round(top), max(round(right), round(left)+1), max(round(bottom), round(top)+1))
	draw.Draw(c, r, image.NewUniform(colour), image.Point{}, draw.Over)
}

func round(f float64) int { return int(math.Round(f)) }

// shape collects lines and discs that are filled at once.
type shape struct{ *vector.Rasterizer }

// line adds a straight line.
func (s shape) line(x0, y0, x1, y1, thick float64) {
	length := math.Hypot(x1-x0, y1-y0)
	if length == 0 {
		return
	}
	dx, dy := (y1-y0)/length*thick/2, (x0-x1)/length*thick/2
	s.polygon(x0+dx, y0+dy, x1+dx, y1+dy, x1-dx, y1-dy, x0-dx, y0-dy)
}

// dot adds a disc.
func (s shape) dot(x, y, radius float64) {
	const corners = 12
	var at []float64
	for i := range corners {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / corners)
		at = append(at, x+radius*cos, y+radius*sin)
	}
	s.polygon(at...)
}

// polygon adds what lies between corners, given as x, y, x, y and so on, clockwise.
func (s shape) polygon(at ...float64) {
	s.MoveTo(float32(at[0]), float32(at[1]))
	for i := 2; i < len(at); i += 2 {
		s.LineTo(float32(at[i]), float32(at[i+1]))
	}
	s.ClosePath()
}

// wide is how many pixels a text takes.
func (c *canvas) wide(text string) float64 { return float64(font.MeasureString(c.face, text)) / 64 }

// text writes a line whose baseline is at y. Of its width, share lies left of x.
func (c *canvas) text(x, y, share float64, text string, colour color.Color) {
	x -= share * c.wide(text)
	d := font.Drawer{Dst: c, Src: image.NewUniform(colour), Face: c.face, Dot: fixed.P(round(x), round(y))}
	d.DrawString(text)
}
