// Package recon says, locally and at once, in which language a conversation is
// held and in what tone a message and the conversation are. It asks no model;
// whoever wants that, adds a Small beside it.
//
// # Language
//
// The platform's locale is where a conversation begins; then the people's own
// words count, the latest most. Evidence are frequent little words, letters
// that few languages have, and scripts. A language takes over when its evidence
// is clearly stronger than that of the one in force, so that it changes when the
// conversation's does and not with one foreign word. The bot's own lines do not
// count: they follow.
//
// It is not a detector for every language of the world: what it does not know,
// it leaves to the locale and the model.
package recon
