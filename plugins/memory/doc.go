// Package memory lets the bot remember: what people ask it to keep, what it
// finds worth keeping, and, once a conversation is over, what was said in it
// that will matter later. Facts themselves, and how they are found, are the
// store's; this package decides who may keep, change and forget what, which
// facts a prompt is told, and when a conversation is read again.
//
// # Who sees what
//
// A fact's origin is the place where it was said, always, and it is looked for
// with what a turn sees, never with more. A person's list of memories goes
// further only in his private chat, and there only to what he said himself, and
// to what was said about him in groups where he talks.
//
// # Who changes what
//
// People change and forget facts that they told or that are about them.
// Moderators forget, besides, what was said in their place, admins whatever they
// can see. The bot's own turns change only what nobody told. Ranks come with the
// call; a payload decides nothing. A fact is changed only where it was said, so
// that no word reaches readers who were not there.
//
// # What a prompt is told
//
// The most important facts about who speaks, always; further facts only where
// they share enough words with what was said. Small words and greetings carry
// no meaning, and so bring nothing up.
//
// # Reading conversations again
//
// When the bot took part in a conversation and nobody said anything more for a
// while, the new part of the log is put to a model, which names facts; each is
// held against that part and refused where it is not made of its words. A part
// is read once: it is marked before the model is asked, and a life that ends
// in between does not repeat it. Private chats are read only if the person
// agreed; who refuses is left out everywhere.
package memory
