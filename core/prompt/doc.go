// Package prompt turns what is known when a turn begins into the JSON prompt, and that into a model's request. It is
// a pure function: it reads neither a store nor a clock; a Cache only saves it work.
//
// # The JSON prompt
//
// One object with the keys, in this order, context, input, instructions, instructions_verbose, actions and
// __pre_reduction_size. In context are, in this order, history_current_chat, history_recent, participants, memories,
// conversation_state, what plugins inject (sorted by key), recon and recon_instructions: keys that only grow come
// before those that change every time. Empty keys are left out. A delivery has the further key system_message after
// input.
//
// Every text of a person, a platform, a tool or a file is in a JSON string of its own, so that it cannot pass for
// another message, another author or a rule. Bytes that are not UTF-8 and lone surrogates become U+FFFD.
//
// # Reduction
//
// Size is the number of characters (runes) of the compact JSON. Over the limit,
// it is reduced by these steps, in this order, until it fits:
//
//  1. texts of attached files and outputs of actions are shortened to a third
//     of the limit together;
//  2. history_recent: over-long entries are shortened, then the oldest dropped;
//  3. history_current_chat: likewise, down to the newest entry. The window's
//     beginning moves in steps here too, so that prompts keep sharing it;
//  4. memories are dropped, the last ones first;
//  5. the other keys of context are dropped: injections, participants,
//     conversation_state, recon_instructions, recon;
//  6. the newest entry of the history is shortened, or dropped;
//  7. the texts of input are shortened, the longest most.
//
// Every shortened text has a visible mark. If a prompt still does not fit, Build
// returns a *llm.Error of kind llm.ErrorTooLong that names the sizes.
package prompt
