// Package outbound makes HTTP clients for requests that somebody else's text
// leads to: a page that a model wants to read, a server that a blueprint names.
//
// A client refuses private addresses where it dials, after the name was resolved
// and for the very address that is dialled, so that neither a spelling, nor a
// redirect, nor a name that changes its mind leads into the network of the bot.
// It caps bodies, decompressed, bounds redirects, knows no proxy and keeps no
// cookies. What may be private all the same is listed as Peers.
//
// It is not for what the configuration alone decides, such as the address of a
// platform or of an engine.
package outbound
