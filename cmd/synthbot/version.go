package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Set by the linker in released binaries.
var (
	version = "dev"
	commit  = ""
)

func versionCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print version, commit and Go version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			from := commit
			if info, ok := debug.ReadBuildInfo(); ok && from == "" {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						from = s.Value
					}
				}
			}
			from = cmp.Or(from, "unknown")
			_, err := fmt.Fprintf(p.Out, "synthbot %s, commit %s, %s\n", version, from, runtime.Version())
			return err
		},
	}
}
