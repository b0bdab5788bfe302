// Command synthbot is a chat bot daemon that gives a community a companion with a persona.
package main

import (
	"context"
	"os"
	"time"
	_ "time/tzdata" // for machines without a time zone database

	"synthbot/cmd/synthbot/commands"
	"synthbot/daemon"
)

const (
	grace     = 20 * time.Second // how long turns may take to finish when the bot stops
	closeTime = 15 * time.Second // how long everything else may take after that
)

func main() {
	e := &daemon.Env{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Clock: time.Now}
	os.Exit(commands.Main(context.Background(), e, os.Args[1:], grace, closeTime))
}
