package discordtest

import "slices"

// Permissions.
const (
	MayAdminister   = 1 << 3
	MayReact        = 1 << 6
	MayView         = 1 << 10
	MaySend         = 1 << 11
	MayManage       = 1 << 13 // messages
	MayAttach       = 1 << 15
	MayReadHistory  = 1 << 16
	MayOpenThreads  = 1 << 35
	MaySendInThread = 1 << 38
	MayPoll         = 1 << 49

	mayAll = MayReact | MayView | MaySend | MayAttach | MayReadHistory | MayOpenThreads | MaySendInThread | MayPoll
)

// power returns a user's permissions in a channel; s.mu is held.
func (s *Server) power(c *Channel, id string) uint64 {
	g := s.guild(c.Guild)
	if g == nil {
		return mayAll // direct messages; callers check for a guild that the bot has left
	}
	if g.Owner == id {
		return ^uint64(0) >> 8
	}
	roles := append([]string{g.ID}, s.member(g.ID, id).Roles...)
	power := uint64(0)
	for _, r := range g.Roles {
		if slices.Contains(roles, r.ID) {
			power |= r.Power
		}
	}
	if power&MayAdminister != 0 {
		return ^uint64(0) >> 8
	}
	at := c
	if c.thread() && s.channels[c.Parent] != nil {
		at = s.channels[c.Parent]
	}
	return at.overwritten(power, roles, id)
}

// overwritten applies the channel's overwrites to permissions: first everyone's,
// then those of the roles, then the user's.
func (c *Channel) overwritten(power uint64, roles []string, id string) uint64 {
	var allow, deny uint64
	for _, o := range c.Over {
		if o.ID == c.Guild {
			power = power&^o.Deny | o.Allow
		} else if slices.Contains(roles, o.ID) {
			allow, deny = allow|o.Allow, deny|o.Deny
		}
	}
	power = power&^deny | allow
	for _, o := range c.Over {
		if o.ID == id {
			power = power&^o.Deny | o.Allow
		}
	}
	return power
}

// may reports whether a user has all these permissions in a channel; s.mu is held.
func (s *Server) may(c *Channel, id string, what uint64) bool {
	power := s.power(c, id)
	return power&MayView != 0 && power&what == what
}
