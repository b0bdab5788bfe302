// Package engine asks language models. It turns the [[engine]] tables of the
// configuration into a Chain: the first engine that can answer does, the next
// ones are its fallbacks, and last of all stands the offline engine, which needs
// no model, no key and no network.
//
// langchaingo builds the requests and reads the answers; all its types stay
// inside of this package. Between it and the network stands one RoundTripper
// that knows what the library does not: typed errors with the server's
// Retry-After, structured output, cache marks, limits on the size of an answer,
// and event streams. The library itself is only ever given one whole, clean
// answer, so that its own parsers meet nothing that they trip over.
//
// Whoever asks is known with each question. Calls that wait are served person by
// person, failures in a row take an engine away from everybody only if no single
// person caused them all, and every call that reached a model is booked for those
// who caused it.
//
// The package does not build prompts, does not read plans and keeps no history.
package engine
