// Command synthbot is a chat bot daemon that gives a community a companion with a persona.
package main

import (
	"context"
	"os"
	"time"
	_ "time/tzdata" // home servers do not always have it

	"synthbot/cmd/synthbot/commands"
	"synthbot/daemon"
)

const (
	grace     = 20 * time.Second // turns may take to finish when the bot ends
	closeTime = 15 * time.Second // and then everything else
)

func main() {
	e := &daemon.Env{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Clock: time.Now}
	os.Exit(commands.Main(context.Background(), e, os.Args[1:], grace, closeTime))
}
