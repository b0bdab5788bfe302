package discord

import (
	"context"
	"fmt"
	"time"

	"synthbot/core/driver"

	"synthbot/core"
	"synthbot/interfaces/discord/gateway"
	"synthbot/interfaces/discord/rest"
)

var _ core.Prober = (*Driver)(nil)

// Flags of an application for which the message content intent is switched on.
const contentFlags = 1<<18 | 1<<19

// Probe implements core.Prober. It does not connect to the gateway: a running bot with the
// same token would be disturbed.
func (d *Driver) Probe(ctx context.Context) []core.Finding {
	var me user
	f := core.Finding{What: "identity", Found: "unknown", Fatal: true}
	err := d.rest.Get(ctx, &me, "/users/@me")
	switch {
	case rest.Refusal(err).Status == 401:
		f.Fix = "the token is refused; the developer portal gives a new one under Bot, for interfaces." +
			d.name + ".token"
	case err != nil:
		f.Fix = rest.Failure("asking Discord", err).Text + "; check the network and api_url"
	case me.ID == "":
		f.Fix = "the server speaks another language; check api_url"
	default:
		f = core.Finding{What: "identity", Found: "@" + line(me.Name, core.MaxName) + " (" + me.ID + ")"}
		return []core.Finding{f, d.probeContent(ctx), d.probeGateway(ctx), driver.ClockFinding(-d.rest.Ahead())}
	}
	return []core.Finding{f}
}

func (a *account) probeContent(ctx context.Context) core.Finding {
	f := core.Finding{What: "content", Found: "unknown"}
	var app struct {
		Flags int `json:"flags"`
	}
	err := a.rest.Get(ctx, &app, "/applications/@me")
	switch {
	case err != nil:
	case app.Flags&contentFlags != 0:
		f.Found = "hears all talk"
	case !a.set.MessageContent:
		f.Found = "hears what mentions it, replies to it, or is said in private, as configured"
	default:
		f.Found = "hears what mentions it, replies to it, or is said in private alone"
		f.Fix = "switch the message content intent on in the developer portal, under Bot"
	}
	return f
}

func (a *account) probeGateway(ctx context.Context) core.Finding {
	f := core.Finding{What: "gateway", Found: "unknown"}
	g, err := gateway.Ask(ctx, a.rest)
	if err != nil {
		f.Fix, f.Fatal = "the gateway's address is unknown: "+rest.Failure("asking", err).Text, true
		return f
	}
	f.Found = fmt.Sprintf("%d shards are recommended", g.Shards)
	if g.Shards == 1 {
		f.Found = "one connection is enough"
	}
	if g.Remaining == 0 {
		f.Fix = fmt.Sprintf("Discord allows no more sessions for %s: something connects again and again",
			g.Reset.Round(time.Second))
	}
	return f
}
