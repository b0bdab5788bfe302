package turn

import (
	"slices"

	"synthbot/core"
	"synthbot/core/gate"
)

// Access says who may talk to the bot at all. A place includes all places below it. Deny wins over
// everything but admins, who cannot be denied.
type Access struct {
	Private    string      `toml:"private" default:"open" oneof:"open|pairing|allow" doc:"Who may write in private. open: everybody; pairing: users whose code an admin confirmed; allow: users in allow."`
	Groups     string      `toml:"groups" default:"open" oneof:"open|allow" doc:"Where the bot answers in groups. open: everywhere; allow: in the places in allow."`
	Allow      []core.Path `toml:"allow" doc:"Users and places that have access."`
	Deny       []core.Path `toml:"deny" doc:"Users and places that do not have access."`
	Channels   string      `toml:"channels" default:"linked" oneof:"none|linked|all" doc:"Which messages sent as a channel or group are accepted; these hide their author. linked: those of the group itself (anonymous admins), of its linked channel and of webhooks of the place."`
	PerMinute  int         `toml:"per_minute" default:"30" min:"0" max:"10000" doc:"How many model calls one user may cause in a minute. Faster messages wait a little and are answered together; if the wait is too long, they are stored as context only. Admins have no limit; 0 for no limit."`
	Moderators []core.Path `toml:"moderators" kind:"user" doc:"Users who are moderators everywhere, in addition to those of the platform."`
}

// admits reports whether the author has access to the bot in the place.
func (s *setup) admits(m *core.Message) bool {
	person, err := m.Path.Person(m.Author.ID)
	if err != nil {
		return false
	}
	if m.Author.Rank >= core.RankAdmin {
		return true
	}
	a := &s.Access
	if isListed(a.Deny, person, m) {
		return false
	}
	channel := m.Author.Channel // checked because denied users could write as a channel
	asItself := channel == "" || a.Channels == "all" || a.Channels != "none" && channel == core.ChannelLinked
	if !asItself && !slices.Contains(a.Allow, person) {
		return false
	}
	rule := a.Groups
	if m.Private {
		rule = a.Private
	}
	return rule != "allow" || isListed(a.Allow, person, m)
}

// askGates returns the strictest verdict of the gates, the first of equals. A gate that
// panics has the message stored without its content.
func (s *setup) askGates(m *core.Message, again bool) (strictest gate.Verdict) {
	if m.Author.Rank >= core.RankAdmin {
		return strictest
	}
	for _, g := range s.Plugins.Gates {
		v := gate.Verdict{Admission: gate.Redact}
		guard(s.Log, "gate", func() { v = g.Judge(m, again) })
		if v.Admission > strictest.Admission || strictest == (gate.Verdict{}) {
			strictest = v
		}
	}
	return strictest
}

// dropUnwanted removes messages that are not to be answered any more.
func (in *input) dropUnwanted() {
	t := in.turn
	asks := t.turns.attention.mayAsk(t.path, t.setup.Clock())
	place := t.turns.judgedAs(t.setup, t.path)
	t.messages = slices.DeleteFunc(t.messages, func(e core.Entry) bool { return !t.setup.isWanted(&e, place, asks) })
}

// isWanted reports whether an entry that waits is still to be answered: it was not deleted, and its author may still
// write. place is the path by which it is judged. asks says that a question may wait for an answer in the place.
func (s *setup) isWanted(e *core.Entry, place core.Path, asks bool) bool {
	switch {
	case e.Deleted:
		return false
	case e.Kind == core.KindBeat:
		return !s.isSuppressed(&e.Event) && s.waited(e) <= beatLasts
	case e.Self || e.Kind == core.KindContinue || e.Reply != "":
		return true
	}
	now := e.Event // with the rank that the configuration gives now
	now.Message.Path = place
	answers := false // see answersQuestion; gates have admitted any other yes or no
	if asks && e.Kind == core.KindMessage {
		_, answers = s.yesOrNo(&now.Message)
	}
	v, ok := s.judge(&now, answers, true)
	if !ok || v.Admission != gate.Quiet {
		return ok && v.Admission == gate.Admit
	}
	return answers || s.isAnsweredWhileQuiet(&now)
}

// judge raises the author's rank, and returns what access and gates decide; again is as in gate.Gate. ok is false if
// the author has no access. An answer to a question counts as a press of a button, which has no text to judge.
func (s *setup) judge(e *core.Event, answers, again bool) (v gate.Verdict, ok bool) {
	m := &e.Message
	s.raiseRank(m)
	if !s.admits(m) {
		return v, false
	}
	if e.Command == nil || !s.isOpenCommand(e) {
		judged := m
		if answers {
			judged = new(*m)
			judged.Text = ""
		}
		v = s.askGates(judged, again)
	}
	if v.Admission == gate.Admit && s.Places.Asleep(m.Path) {
		v.Admission = gate.Quiet
	}
	return v, true
}

// Allows reports whether allow lists the user, the place, or a place above it.
func (a *Access) Allows(person core.Path, m *core.Message) bool { return isListed(a.Allow, person, m) }

// isListed reports whether the list holds the user, the place, or a place above it.
func isListed(list []core.Path, person core.Path, m *core.Message) bool {
	return slices.ContainsFunc(list, func(p core.Path) bool { return p == person || m.In(p) })
}

// raiseRank raises the author's rank to what the configuration says. Without a valid id, it is that of a member.
func (s *setup) raiseRank(m *core.Message) {
	person, err := m.Path.Person(m.Author.ID)
	switch {
	case err != nil:
		m.Author.Rank = core.RankMember
	case slices.Contains(s.Admins, person):
		m.Author.Rank = core.RankAdmin
	case slices.Contains(s.Access.Moderators, person):
		m.Author.Rank = max(m.Author.Rank, core.RankModerator)
	}
}
