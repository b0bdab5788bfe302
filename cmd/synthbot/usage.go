package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"synthbot/daemon"
	"synthbot/memory"
)

func usageCommand(p *program) *cobra.Command {
	var days int
	c := &cobra.Command{
		Use: "usage", Short: "Print token usage and cost per day", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if days < 1 || days > 3660 {
				return daemon.Usagef("--days takes a number from 1 to 3660")
			}
			return p.withStore(false, func(cfg *daemon.Config, s daemon.Store) error {
				return p.usage(c.Context(), cfg, s, days)
			})
		},
	}
	c.Flags().IntVar(&days, "days", 30, "number of days, up to today")
	return p.atDaemon(c)
}

// usage prints what the engines were used for in the last days.
func (p *program) usage(ctx context.Context, cfg *daemon.Config, s daemon.Store, days int) error {
	var uses []memory.Use
	if db, ok := s.(*memory.DB); ok {
		today := cfg.Clock(p.Clock)()
		first := today.AddDate(0, 0, 1-days)
		var err error
		uses, err = db.Uses(ctx, first.Format(time.DateOnly), today.Format(time.DateOnly))
		if err != nil {
			return err
		}
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "DAY\tENGINE\tCALLS\tIN\tCACHED\tOUT\tCOST\t")
	for _, r := range daemon.Spending(uses) {
		cost := cfg.Cost(r.Engine, r.Usage)
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%.4f\t\n", r.Day, r.Engine, r.Calls, r.In, r.Cached, r.Out, cost)
	}
	return w.Flush()
}
