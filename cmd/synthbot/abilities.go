package main

import (
	"synthbot/plugins/games"
	"synthbot/plugins/memory"
	"synthbot/plugins/pairing"
	"synthbot/plugins/people"
)

// abilities is the list of all plugins that this program holds, in the order in
// which they are made.
var abilities = []ability{
	{"memory", "Facts that the bot keeps, finds and forgets.", true, func() any { return new(memory.Config) }, own(memory.New)},
	{"people", "Short bios of people, from what they say of themselves.", false, func() any { return new(people.Config) }, own(people.New)},
	{pairingName, "Lets unknown people in by a code; it is there where access.private is pairing.", false, func() any { return new(pairing.Config) }, own(pairing.New)},
	{"games", "Dice, random choice and polls.", false, func() any { return new(games.Config) }, own(games.New)},
}
