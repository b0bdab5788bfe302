// Package prompt turns what is known when a turn begins into the JSON prompt, and that into a model's request. It is
// a pure function: it reads no store, knows no clock and asks nobody; a Cache only saves it work.
//
// # The JSON prompt
//
// One object with the keys, in this order, context, input, instructions, instructions_verbose, actions and
// __pre_reduction_size. In context are, in this order, history_current_chat, history_recent, participants, memories,
// conversation_state, what plugins inject (sorted by key), recon and recon_instructions: what grows at its end comes
// before what changes every time. Keys with nothing to say are left out. A delivery has the further key
// system_message behind input.
//
// Everything that a person, a platform, a tool or a file said is in a JSON string of its own, so that no text can
// pass for another line, another author or a rule. Bytes that are not UTF-8 and lone surrogates become U+FFFD.
//
// # Reduction
//
// Size is the number of characters (runes) of the compact JSON. Over the limit
// these give way, in this order, until it fits:
//
//  1. texts of attached files and outputs of actions that are longer than a
//     third of the limit together are shortened;
//  2. history_recent: over-long entries are shortened, then the oldest go;
//  3. history_current_chat: likewise, down to the newest entry. The window's
//     beginning moves in steps here too, so that prompts keep sharing it;
//  4. memories, the last ones first;
//  5. the other keys of context: injections, participants,
//     conversation_state, recon_instructions, recon;
//  6. the whole of context, after its newest entry was shortened in vain;
//  7. the texts of input are shortened, the longest most.
//
// Everything shortened carries a visible mark. A prompt that still does not fit
// is a *llm.Error of kind llm.ErrorTooLong that names the sizes.
package prompt
