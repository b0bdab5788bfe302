package main

import (
	"synthbot/plugins/blueprint"
	"synthbot/plugins/diary"
	"synthbot/plugins/games"
	"synthbot/plugins/mcp"
	"synthbot/plugins/memory"
	"synthbot/plugins/pairing"
	"synthbot/plugins/people"
	"synthbot/plugins/reminders"
	"synthbot/plugins/standard"
)

// abilities is the list of all plugins that this program holds, in the order in
// which they are made.
var abilities = []ability{
	{"memory", "Facts that the bot keeps, finds and forgets.", true, func() any { return new(memory.Config) }, own(memory.New)},
	{"reminders", "Reminders, once or again and again.", true, func() any { return new(reminders.Config) }, own(reminders.New)},
	{"people", "Short bios of people, from what they say of themselves.", false, func() any { return new(people.Config) }, own(people.New)},
	{"diary", "The bot's own diary, place by place.", false, func() any { return new(diary.Config) }, own(diary.New)},
	{"games", "Dice, random choice and polls.", false, func() any { return new(games.Config) }, own(games.New)},
	{"standard", "The standard actions of the plan schema: display, notify, wait, confirm, api_call, speak.", false, func() any { return new(standard.Config) }, own(standard.New)},
	{"blueprint", "Actions out of agent blueprints (ai-tools.json), over HTTP or by local commands.", false, func() any { return new(blueprint.Config) }, own(blueprint.New)},
	{"mcp", "Actions out of Model Context Protocol servers.", false, func() any { return new(mcp.Config) }, own(mcp.New)},
	{pairingName, "Lets unknown people in by a code; it is there where access.private is pairing.", false, func() any { return new(pairing.Config) }, own(pairing.New)},
}
