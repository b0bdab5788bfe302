package clock

import (
	"math"
	"strconv"
)

// words says what a WMO weather code means.
func words(code int) string {
	switch code {
	case 0:
		return "clear sky"
	case 1:
		return "mainly clear"
	case 2:
		return "partly cloudy"
	case 3:
		return "overcast"
	case 45, 48:
		return "fog"
	case 51, 53, 55:
		return "drizzle"
	case 56, 57:
		return "freezing drizzle"
	case 61:
		return "light rain"
	case 63:
		return "rain"
	case 65:
		return "heavy rain"
	case 66, 67:
		return "freezing rain"
	case 71:
		return "light snow"
	case 73:
		return "snow"
	case 75:
		return "heavy snow"
	case 77:
		return "snow grains"
	case 80, 81:
		return "rain showers"
	case 82:
		return "violent rain showers"
	case 85, 86:
		return "snow showers"
	case 95:
		return "thunderstorm"
	case 96, 99:
		return "thunderstorm with hail"
	}
	return "unknown weather"
}

// degrees is a temperature without false precision.
func degrees(t float64) string {
	n := math.Round(t)
	if n == 0 {
		n = 0 // no "-0"
	}
	return strconv.FormatFloat(n, 'f', 0, 64)
}
