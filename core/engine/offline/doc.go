// Package offline is the engine that is always there: a llm.Model that needs
// no language model, no key and no network. It reads the same request as any
// other model and answers with a plan, too: small talk in the persona's voice
// out of the persona's own fields, the time and the date, what the bot can do,
// notes and reminders where there are actions for them, and what was said
// before. What it does not understand it says so, and it claims nothing that it
// did not do.
//
// What people say and what is answered is in words/*.txt, one file for each
// language; a further language is a further file. The choice among the wordings
// depends on the message alone, so that equal requests get equal answers.
package offline
