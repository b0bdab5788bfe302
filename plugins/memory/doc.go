// Package memory lets the bot remember: what users ask it to keep, what it finds worth
// keeping, and, once a conversation is over, what was said in it that will matter later. The
// store keeps facts and finds them. This package decides who may keep, change and forget
// what, which facts a prompt shows, and when a conversation is read again.
//
// # Who sees what
//
// The origin of a fact is always the place where it was said, and searches never see more
// than the turn does. A user's list of memories goes further only in their private chat, and
// there only to what they said themselves and to what was said about them in groups where
// they talk.
//
// # Who changes what
//
// Users change and forget facts that they stated or that are about them. Moderators may also
// forget what was said in their place, admins whatever they can see. The bot's own turns
// change only what nobody stated. Ranks come with the call; a payload decides nothing. A fact
// is changed only where it was said, so that no word reaches readers who were not there.
//
// # What a prompt shows
//
// The most important facts about the author, always; further facts only if they share enough
// words with what was said. Small words and greetings find nothing.
//
// # Reading conversations again
//
// When the bot took part in a conversation and nobody said anything for a while, a model
// reads the new part of the log and names facts. Each is compared with that part, and refused
// if it is not made of its words. A part is read once: it is marked before the model is
// asked, and a crash in between does not repeat it. Private chats are read only if the user
// agreed; users who refuse are left out everywhere.
package memory
