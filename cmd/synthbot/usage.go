package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"synthbot/daemon"
)

func usageCommand(p *program) *cobra.Command {
	var days int
	c := &cobra.Command{
		Use: "usage", Short: "Print tokens and cost by day", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if days < 1 || days > 3660 {
				return daemon.Usagef("--days takes a number from 1 to 3660")
			}
			return p.usage(c, days)
		},
	}
	c.Flags().IntVar(&days, "days", 30, "how many days, up to today")
	return atDaemon(p.fileFlag(c))
}

func (p *program) usage(c *cobra.Command, days int) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	db, err := p.readDB(cfg)
	if err != nil {
		return err
	}
	var rows []daemon.Spent
	if db != nil {
		today := cfg.Clock(p.Clock)()
		first := today.AddDate(0, 0, 1-days)
		uses, err := db.Uses(c.Context(), first.Format(time.DateOnly), today.Format(time.DateOnly))
		if err := p.closing(db, err); err != nil {
			return err
		}
		rows = daemon.Spending(uses)
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "DAY\tENGINE\tCALLS\tIN\tCACHED\tOUT\tCOST\t")
	for _, r := range rows {
		cost := cfg.Cost(r.Engine, r.Usage)
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%.4f\t\n", r.Day, r.Engine, r.Calls, r.In, r.Cached, r.Out, cost)
	}
	return w.Flush()
}
