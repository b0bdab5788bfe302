// Package clock tells the model what the calendar, the wall clock and the sky
// say, where the bot is and where the person is: as a small injection that is
// made of what is at hand and never waits for anybody, and, where it is asked
// for, as the action weather.
//
// Weather and cities come from servers that speak the API of Open-Meteo, without
// a key. Nothing is asked of them but when a person names a city or wants the
// weather, or, with weather = "prompt", to keep what prompts tell at most that
// old as the configuration says; what they answer is data, capped and checked.
//
// Where a person is stands under his path, with the place where he said so: it is
// told there, and in private, and nowhere else.
package clock
