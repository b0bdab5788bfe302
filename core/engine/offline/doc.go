// Package offline is the engine that is always there: a llm.Model that needs
// no language model, no key and no network. It reads the same request as any
// other model and answers with a plan, too: small talk in the persona's voice, the time and the date anywhere, sums
// and units, dice and coins, and notes and reminders where there are actions for them. What it does not understand
// it says so, in one line, and it claims nothing that it did not do.
//
// What people say and what is answered is in words/*.txt, one file for each
// language; en.txt describes their form. A message is understood if phrases of one language cover it, so that its
// language is found along with its meaning. A plan asks for one thing at a time: what an action puts out is worded
// in the next round, for which the message is understood anew. What was asked back, such as a reminder's
// time, is read off the history; there is no other state.
package offline
