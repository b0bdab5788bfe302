// Package persona describes who the bot is. It reads persona files (TOML) and character
// cards (V1, V2 and V3, as JSON or in a PNG picture), and renders them for a prompt. It does
// not decide which persona speaks in a place, and it never decodes pixels.
//
// # Persona files
//
// A persona file is TOML; the tags of [Persona] list its keys. Only name is required. All
// problems of a file are reported at once, each as "FILE:LINE: key: problem and fix".
//
// # Character cards
//
// description and scenario become the profile; personality, system_prompt and
// post_history_instructions have labels of their own; first_mes is the greeting and
// mes_example the example dialogue; a nickname replaces {{char}}. character_book becomes
// Persona.Book. creator_notes are meant for users, and no model gets them. In a PNG, the card
// is the base64 text of a chunk (tEXt, zTXt or iTXt) with the keyword ccv3 or else chara.
//
// In all texts, {{char}}, <BOT> and <CHAR> are replaced by the persona's name, {{user}} and
// <USER> by the user's, in any case.
package persona
