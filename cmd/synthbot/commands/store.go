package commands

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"synthbot/core/secret"
	"synthbot/daemon"
	"synthbot/memory"
)

func storeCommand(p *program) *cobra.Command {
	c := group(&cobra.Command{Use: "store", Short: "Move the database between a file and a server"})
	c.AddCommand(copyCommand(p))
	return c
}

func copyCommand(p *program) *cobra.Command {
	var from, to string
	c := &cobra.Command{
		Use: "copy --from DIR|URL --to DIR|URL", Args: cobra.NoArgs,
		Short: "Copy everything between data directories and PostgreSQL databases",
		Long: "Copies everything from a data directory, or from a PostgreSQL database (postgres://HOST/NAME,\n" +
			"or env:NAME for a variable that holds such a URL), to another one, which must be empty.\n" +
			"No bot may run with either of them. It reads everything back, compares it, and prints\n" +
			"the number of pairs and the SHA-256 of each bucket.",
		RunE: func(c *cobra.Command, _ []string) error {
			source, err := location(p, "--from", from)
			if err != nil {
				return err
			}
			target, err := location(p, "--to", to)
			if err != nil {
				return err
			}
			return copyStore(c.Context(), p, source, target)
		},
	}
	c.Flags().StringVar(&from, "from", "", "data directory or URL of the `original`")
	c.Flags().StringVar(&to, "to", "", "data directory or URL of the `copy`")
	return c
}

// location reads where a database is from a flag.
func location(p *program, flag, given string) (memory.Location, error) {
	name, variable := strings.CutPrefix(given, "env:")
	if variable {
		given = p.Getenv(name)
	}
	switch {
	case given == "" && variable:
		return memory.Location{}, daemon.Usagef("%s: $%s is not set or empty", flag, name)
	case given == "":
		return memory.Location{}, daemon.Usagef("%s: name a data directory, or the URL of a database", flag)
	case variable || strings.Contains(given, "://"):
		return memory.Location{URL: secret.New(given)}, nil
	}
	return memory.Location{Dir: given}, nil
}

// progressPause is how long a command that lasts says nothing.
const progressPause = 2 * time.Second

func copyStore(ctx context.Context, p *program, from, to memory.Location) error {
	said := time.Now()
	sums, err := memory.Copy(ctx, from, to, func(bucket string, pairs int) {
		if time.Since(said) > progressPause {
			said = time.Now()
			fmt.Fprintf(p.Err, "%s: %d copied\n", bucket, pairs)
		}
	})
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "BUCKET\tPAIRS\tSHA-256")
	for _, s := range sums {
		fmt.Fprintf(w, "%s\t%d\t%x\n", s.Bucket, s.Pairs, s.Sum)
	}
	return w.Flush()
}
