// Package calendar tells when something happens: what a wall clock's time means
// where clocks are put forward and back, and when a rule of RFC 5545 falls due.
// It is pure; what people say is read elsewhere.
package calendar
