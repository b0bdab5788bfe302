// Package plugintest tests plugins with scripted conversations ([Run]). They go through the real turns, catalogue and
// database; only the model's answers come from the script. [Conform] checks what every plugin must do, and a [Harness]
// is for tests that need no conversation. Only tests import this package; it does not depend on any plugin.
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
// A script is the head of a txtar file. Its files follow: config.toml is the plugin's table (of several plugins
// NAME.toml each), all others can be sent as attachments. In the script '#' begins a comment line, a line that begins
// with white space continues the one before (with a line break), and ${NAME} is a variable.
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
//	clock +90m              moves the clock forward, or to a date (RFC 3339). A date in
//	                        the script's first line is the time at which it begins
//	stop, start, restart    stops or starts the bot, with the same database
//
// Words in the parentheses, separated by commas, say how somebody speaks or acts: private, aside (not to the bot),
// admin (from the beginning of the script), moderator (of this message), bot (the author is a bot), voice, reply (to
// the bot's last message), reply NAME (to that user's last message), locale TAG, file NAME (attaches a file of the
// script), edit (changes the speaker's last message), delete (deletes it), react (the text is an emoji on the bot's
// last message), forwards (the text is by somebody else), presses (the button with that label, here or anywhere). A
// user's id is their name in lower case, so Jay is room/@user/jay.
//
// # Answers of the model
//
//	model< {"actions":…}    answers the next question with this text
//	says< text              a plan that sends this text
//	does< NAME {…}          a plan with this action
//	fails< retry_later      an error of the engine: a llm.ErrorKind, or none
//	                        for core.ErrNoEngine
//
// A question waits for such a line; the lines before it see what the bot shows
// meanwhile. Plugins ask the same model, and questions are answered in their order.
//
// # Expected output
//
//	bot= text               the next message in the place of the last event is this text
//	bot~ regexp             it matches. bot @ PLACE= is for another place
//	edit= text              a message was changed to this text
//	whisper= text           was shown only to the user who pressed a button
//	tell @ PATH= text       was sent by the plugin to a place or a user
//	admins= text            was sent by the plugin to the admins
//	file= NAME | caption    was sent by the plugin as a file to the place
//	nothing                 there is no further output
//	anything                accepts all further output
//	prompt~ regexp          the model's present or last question, as JSON, matches
//	prompt! regexp          it does not match
//	rules~, rules!          the same for its system prompt, with the available actions
//	asked N                 the number of questions since the last asked, or the start
//
// The order counts within each kind and place. Output that was not expected before the next event is an error. A named
// group of a regexp that matched, (?P<code>[0-9]+), sets the variable ${code}. With -update-scripts, wrong texts after
// '=' are replaced, and output that was not expected is added.
//
// # Settings, before the first event
//
//	zone Europe/Rome        the bot's time zone; default: UTC
//	language it             the bot's language; default: en
//	share room/1 room/2     places that see each other's messages
//	buttons off             the interface has no buttons
//	engine none             plugins cannot ask a model; turns still can
//
// # Time
//
// A script runs in a testing/synctest bubble: pauses take no real time, timers fire when the script moves the clock,
// and each line begins when nothing else can run. In the bubble a plugin can neither use the network nor start
// processes. With [Live], the script runs outside of it: the clock command then moves the bot's clock but no timers,
// and a line waits until its condition is met.
package plugintest
