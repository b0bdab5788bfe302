// Package persona knows who the bot is. It reads persona files (TOML) and
// character cards (V1, V2 and V3, as JSON or inside of a PNG picture), and
// renders them for a prompt. It does not decide who speaks where, and it never
// looks at a picture's pixels.
//
// # Persona files
//
// A persona file is TOML with these keys; name is required, all others may be
// left out:
//
//	name             = "Aria"
//	aliases          = ["Ari"]             # other names that it listens to
//	profile          = "who that is"
//	likes            = ["…"]
//	dislikes         = ["…"]
//	interests        = ["…"]
//	speaking_style   = "how it talks"
//	example_dialogue = "{{user}}: …\n{{char}}: …"
//	greeting         = "its first words"
//
// Every fault of a file is reported at once, each as
// "FILE:LINE: key: what is wrong and the mend".
//
// # Character cards
//
// description and scenario become the profile, personality, system_prompt and
// post_history_instructions keep a label of their own, first_mes is the greeting,
// mes_example the example dialogue; a nickname is what {{char}} stands for.
// character_book is kept as Persona.Book. creator_notes are meant for people and
// are never told to a model. In a PNG the card is the base64 text of a chunk
// (tEXt, zTXt or iTXt) with the keyword ccv3, or else chara.
//
// In all texts {{char}}, <BOT> and <CHAR> stand for the persona and {{user}} and
// <USER> for the person it talks to, in any case.
package persona
