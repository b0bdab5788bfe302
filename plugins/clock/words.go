package clock

import (
	"cmp"
	"math"
	"strconv"
)

// skyWords are the weather codes of the WMO, as Open-Meteo uses them.
var skyWords = map[int]string{
	0: "clear sky", 1: "mainly clear", 2: "partly cloudy", 3: "overcast", 45: "fog", 48: "fog", 51: "drizzle",
	53: "drizzle", 55: "drizzle", 56: "freezing drizzle", 57: "freezing drizzle", 61: "light rain", 63: "rain",
	65: "heavy rain", 66: "freezing rain", 67: "freezing rain", 71: "light snow", 73: "snow", 75: "heavy snow",
	77: "snow grains", 80: "rain showers", 81: "rain showers", 82: "violent rain showers", 85: "snow showers",
	86: "snow showers", 95: "thunderstorm", 96: "thunderstorm with hail", 99: "thunderstorm with hail",
}

// words describes a weather code.
func words(code float64) string {
	return cmp.Or(skyWords[int(min(max(code, 0), 99))], "unknown weather")
}

// degrees is a temperature without false precision.
func degrees(t float64) string {
	n := math.Round(t)
	if n == 0 {
		n = 0 // no "-0"
	}
	return strconv.FormatFloat(n, 'f', 0, 64)
}
