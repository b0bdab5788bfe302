// Package web lets the bot read pages of the web and search it. What it brings
// back was written by strangers: it is cut, freed of what a person would not see
// either, and marked as foreign, so that a model takes no orders from it.
//
// Addresses come from people and models, and so go through package outbound:
// nothing in a private network is ever asked, whatever a page, a redirect or a
// name server says. It is not a browser: no scripts run, nothing is logged in to,
// and nothing is sent but the address.
package web
