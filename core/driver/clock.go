package driver

import (
	"time"

	"synthbot/core"
)

// maxSkew is how far this machine's clock may be from the platform's.
const maxSkew = 30 * time.Second

// ClockFinding says how far this machine's clock is ahead of the platform's, or behind.
func ClockFinding(ahead time.Duration) core.Finding {
	ahead = ahead.Round(time.Second).Abs()
	f := core.Finding{What: "clock", Found: ahead.String() + " from the platform's"}
	if ahead > maxSkew {
		f.Fix = "let this machine's clock be set by the network (timedatectl set-ntp true)"
	}
	return f
}
