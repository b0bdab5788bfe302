package commands

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"synthbot/config"
	"synthbot/core"
	"synthbot/core/txt"
	"synthbot/daemon"
)

// format is the output format of a command: text for users, or JSON, one object a line.
type format string

const (
	formatText format = "text"
	formatJSON format = "json"
)

// Set implements pflag.Value. jsonl is the former name of json.
func (f *format) Set(name string) error {
	switch name {
	case "text", "json":
		*f = format(name)
	case "jsonl":
		*f = formatJSON
	default:
		return errors.New("takes text or json")
	}
	return nil
}

// String implements pflag.Value.
func (f *format) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *format) Type() string { return "format" }

func formatFlag(c *cobra.Command) *format {
	f := formatText
	c.Flags().Var(&f, "format", "text or json (one object a line)")
	return &f
}

// findings prints what a check found, one finding a line.
type findings struct {
	out    io.Writer
	format format
	fatal  bool // something must be fixed
}

// findingLine is a finding in JSON. Level is ok, warning or error.
type findingLine struct {
	Level string `json:"level"`
	Group string `json:"group"`
	What  string `json:"what,omitempty"`
	Text  string `json:"text,omitempty"`
	Fix   string `json:"fix,omitempty"`
	File  string `json:"file,omitempty"`
	Line  int    `json:"line,omitempty"`
	Key   string `json:"key,omitempty"`
}

func (f *findings) addAll(group string, found []core.Finding) {
	for _, one := range found {
		f.add(group, one)
	}
}

func (f *findings) add(group string, found core.Finding) {
	level := "ok"
	switch {
	case found.Fix != "" && found.Fatal:
		level, f.fatal = "error", true
	case found.Fix != "":
		level = "warning"
	}
	if f.format == formatJSON {
		printJSON(f.out, findingLine{Level: level, Group: group, What: found.What, Text: found.Found, Fix: found.Fix})
		return
	}
	daemon.PrintFinding(f.out, group, found)
}

// faults prints an error in JSON, or the faults of a configuration. In text format it returns the error, which is
// printed at the end.
func (f *findings) faults(err error) error {
	var all config.Faults
	var printed exitStatus
	switch {
	case f.format != formatJSON || err == nil || errors.Is(err, errFindings) || errors.As(err, &printed):
		return err
	case !errors.As(err, &all):
		printJSON(f.out, findingLine{Level: "error", Group: "check", Text: txt.Line(err.Error())})
		return err
	}
	for _, one := range all {
		printJSON(f.out, findingLine{
			Level: "error", Group: "configuration", Text: one.Text, File: one.File, Line: one.Line, Key: one.Key,
		})
	}
	return exitStatus(statusUsage)
}

func printJSON(out io.Writer, value any) { fmt.Fprintf(out, "%s\n", core.JSON(value)) }
