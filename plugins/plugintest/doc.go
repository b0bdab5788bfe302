// Package plugintest tests plugins with scripted conversations ([Run]). They go
// through the real turns, catalogue and database; only the model's answers come
// from the script. [Conform] checks what every plugin must do, and a [Harness] is
// for tests that need no conversation. Only tests import this package; it does not
// depend on any plugin.
//
//	func TestScripts(t *testing.T) {
//		plugintest.Run(t, "testdata/*.txt", plugintest.Of(New))
//	}
//
//	func TestConform(t *testing.T) {
//		plugintest.Conform(t, plugintest.Case{
//			Name: "notes",
//			Make: func(t *testing.T, s *plugintest.Harness) core.Plugin {
//				p, err := New(s.Host, Config{})
//				if err != nil {
//					t.Fatal(err)
//				}
//				return p
//			},
//			Keep: []plugintest.Sample{{Action: "note_add", Payload: `{"text":"` + plugintest.Canary + `"}`}},
//			Ask:  []plugintest.Sample{{Action: "note_list", Payload: `{}`}},
//		})
//	}
//
// # A script
//
// A script is the head of a txtar file. Its files follow: config.toml is the
// plugin's table (of several plugins NAME.toml each), all others can be sent as
// attachments. In the script '#' begins a comment line, a line that begins with
// white space continues the one before (with a line break), and ${NAME} is a
// variable.
//
//	# Jay asks in the group, the model rolls, its output goes back to it.
//	Jay> roll two dice
//	does< dice_roll {"dice":"2d6"}
//	prompt~ "total":7
//	says< Seven!
//	bot= Seven!
//
// # What happens
//
//	Jay> text               Jay says it to the bot, in the group room/1
//	Jay (private)> text     in a private chat, room/jay
//	Jay @ room/2> text      in another place; other/1 is another interface's
//	Jay> /name args         calls a command
//	press LABEL             the last speaker presses the newest button of that label
//	clock +90m              time goes by; with a date (RFC 3339), until then.
//	                        As a script's first line a date says when it begins.
//	stop, start, restart    the bot's life ends, begins; database and plugins are
//	                        opened anew, and nothing else is remembered
//
// Words in the parentheses, separated by commas, say how something is said:
// private, aside (not to the bot), admin (an admin from the beginning),
// moderator (there and then), bot (the author is a bot), voice, reply (to what the bot
// said last), reply NAME (to what they said last), locale TAG, file NAME (a file of the script is attached), edit
// (the speaker's last message now says this), delete (it is gone), react (the text is the
// emoji put on what the bot said last), forwards (what somebody else said), presses (the button of that label, in
// this place or anywhere).
// A person's id is their name in small letters, so Jay is room/@user/jay.
//
// # What the model answers
//
//	model< {"actions":…}    to the next question, word by word
//	says< text              a plan that says this
//	does< NAME {…}          a plan of this action
//	fails< retry_later      an error of the engine: a llm.ErrorKind, or none
//	                        for core.ErrNoEngine
//
// The model waits for its line: the lines between are what people see while it
// thinks. Plugins ask the same model; who asked first is answered first.
//
// # What is expected
//
//	bot= text               the next message in the place of the last event: exactly;
//	bot~ regexp             or so that it matches. bot @ PLACE= for another place
//	edit= text              a message that was there says this now
//	whisper= text           shown to one person alone, who pressed a button
//	tell @ PATH= text       what the plugin sent to a place or a person
//	admins= text            what the plugin sent to the admins
//	file= NAME | caption    the file that the plugin sent to the place
//	nothing                 nothing of all this is left that was not expected
//	anything                whatever is left, it is as it should be
//	prompt~ regexp          the question that the model is asked, or was asked last,
//	prompt! regexp          holds this (as it is sent: JSON); or does not
//	rules~, rules!          so do its instructions, with the actions on offer
//	asked N                 how many questions there were since the last asked, or the start
//
// Order counts for each kind and place. What was said and not expected is an
// error when the next thing happens. A named group of a regexp that matched,
// (?P<code>[0-9]+), sets the variable ${code}. With -update-scripts what is
// wrong behind '=' is written anew, and what was not expected is added.
//
// # Settings, before anything happens
//
//	zone Europe/Rome        the bot's; else UTC
//	language it             the bot's; else en
//	share room/1 room/2     places that see each other's talk
//	buttons off             the interface has none
//	engine none             plugins have no model to ask (turns still do)
//
// # Time
//
// A script runs in a bubble of testing/synctest: nothing waits in truth, timers
// fire when the script moves the clock, and before each line everything that
// can run has come to rest. In there a plugin can neither use the network nor
// start processes. Where it must, [Live] runs the script outside: then Clock
// moves, but timers do not, and a line waits until its condition holds.
package plugintest
