// Package clock gives the model date, time, season and weather, for the bot and for the user:
// as a small injection that never waits for anything, and on request as the action weather.
//
// Weather and cities come from servers with the API of Open-Meteo, without a key. They are
// asked only when a user names a city or wants the weather, or, with weather = "prompt", to
// keep what prompts show as fresh as the configuration says. Their answers are data: capped
// and checked.
//
// A user's location lies under their path, with the place where they said so. It is shown
// there and in private, and nowhere else.
package clock
