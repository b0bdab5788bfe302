// Package engine asks language models. It turns the [[engine]] tables of the configuration into a Chain: the first
// engine that can answer does, the next ones are its fallbacks, and the last one is the offline engine, which needs no
// model, no key and no network.
//
// Requests are built from langchaingo's types, which stay inside of this package, and made through
// its interface. Its own clients encode a request several times, and lose and mix up parts of
// answers, so the bodies of both APIs, openai and anthropic, are written and read here: once, with
// limits on the size of answers and streams, and errors with the server's Retry-After.
//
// Each question carries the people who caused it. Waiting calls are served person by person. An engine that fails
// repeatedly is paused for everybody only if no single person caused all the failures. The usage of every call that
// reached a model is recorded for the people who caused it.
//
// The package does not build prompts, does not read plans and keeps no history. It has more than 2,500 lines because
// two APIs with their streams, the fallbacks, the budgets and the live text of an answer share its types.
package engine
