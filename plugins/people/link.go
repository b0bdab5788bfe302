package people

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/users"
	"synthbot/core/values"
)

// Commands implements command.Commander.
func (p *Plugin) Commands() []command.Command {
	return []command.Command{
		{Spec: command.Spec{Name: "bio", Idempotent: true, Private: true,
			Brief: "Show everything that I know about you"},
			Do: p.show},
		{Spec: command.Spec{Name: "bio_erase", Idempotent: true,
			Brief: "Erase everything that I know about you, whoever said it"}, Do: p.erase},
		{Spec: command.Spec{
			Name: "bio_clear", Idempotent: true, Brief: "Clear what was said here about a person", Form: "PERSON",
			Rank: core.RankModerator,
			Args: []command.Arg{{Name: "who", Brief: "A name, tag or id, or reply to their message", Rest: true}},
		}, Do: p.clear},
		{Spec: command.Spec{
			Name: "link", Brief: "Link your accounts on two platforms", Private: true,
			Args: []command.Arg{{Name: "code",
				Brief: "The code from your other account; off: remove all links"}},
		}, Do: p.link},
	}
}

// show lists all values about the caller, and those about their linked accounts that were said in public.
func (p *Plugin) show(ctx context.Context, c command.Call) (string, error) {
	b, err := p.gather(ctx, c.Person, func(*value) bool { return true }, func(v *value) bool { return !v.Private })
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, f := range order() {
		for _, v := range b.fields[f] {
			day := v.Time.In(p.host.Clock().Location()).Format(time.DateOnly)
			fmt.Fprintf(&out, "- %s: %s (%s, %s)\n", f, v.Text, day, where(&v))
		}
	}
	for _, h := range b.others {
		fmt.Fprintf(&out, "- %s: %s (says %s, %s)\n", h.Field, h.Says, cmp.Or(h.By, "the bot"), where(&h.value))
	}
	records, err := p.records(ctx, c.Person)
	if err != nil {
		return "", err
	}
	for _, other := range links(records) {
		fmt.Fprintf(&out, "- linked with `%s`\n", other)
	}
	if out.Len() == 0 {
		return "I know nothing about you.", nil
	}
	return out.String() + "`/bio_erase` erases all of it.", nil
}

func where(v *value) string {
	if v.Private {
		return "in private"
	}
	return "`" + v.Origin.String() + "`"
}

// erase removes all records about the caller, and their links.
func (p *Plugin) erase(ctx context.Context, c command.Call) (string, error) {
	if err := p.unlink(ctx, c.Person); err != nil {
		return "", err
	}
	records, err := p.records(ctx, c.Person)
	if err != nil {
		return "", err
	}
	for _, r := range records {
		if err := values.Put(ctx, p.host.Items, c.Person, r.key, nil); err != nil {
			return "", err
		}
	}
	return "I know nothing about you any more.", nil
}

// clear removes the values about a user that were said in the moderator's place; for an admin, all
// that are visible there.
func (p *Plugin) clear(ctx context.Context, c command.Call) (string, error) {
	name := c.Args["who"]
	if name == "" {
		writer, err := users.Writer(ctx, p.host.Reader, c.Path, c.Target, c.Writer)
		if err != nil {
			return "", err
		}
		name = writer
	}
	if name == "" {
		return "", core.Errorf(core.Invalid, "Say whom, or reply to their message: `/bio_clear PERSON`.")
	}
	who, err := p.subject(ctx, &core.Call{Path: c.Path, Author: c.Author}, name)
	if err != nil {
		return "", err
	}
	see := []core.Path{c.Path}
	if c.Author.Rank >= core.RankAdmin {
		see = c.Sees
	}
	records, err := p.records(ctx, who.path)
	if err != nil {
		return "", err
	}
	found := false
	for _, r := range records {
		err := p.edit(ctx, who.path, r.key, func(r *record) {
			found = r.dropAll(func(v *value) bool { return v.seen(see) }) || found
		})
		if err != nil {
			return "", err
		}
	}
	if !found {
		return "There is nothing about that person here.", nil
	}
	return "Cleared.", nil
}

// link gives a code, accepts one, or removes all links.
func (p *Plugin) link(ctx context.Context, c command.Call) (string, error) {
	code := c.Args["code"]
	switch strings.ToLower(code) {
	case "":
		code, err := p.codes.give(c.Person)
		if err != nil {
			return "", err
		}
		return "Write `/link " + code + "` to me in private with your other account, within 10 minutes. Do not give" +
			" the code to anybody: they could link their account with yours.", nil
	case "off":
		return "Your accounts are not linked any more.", p.unlink(ctx, c.Person)
	}
	other, err := p.codes.take(code, c.Person)
	if err != nil {
		return "", err
	}
	if err := p.join(ctx, c.Person, other); err != nil {
		return "", err
	}
	if err := p.host.Messenger.Tell(ctx, other,
		"You are linked with `"+c.Person.String()+"` now. If that is not you, write `/link off`."); err != nil {
		p.host.Log.Warn("user not notified of a link", "user", other, "err", err)
	}
	return "You are linked with `" + other.String() + "` now. If that is not you, write `/link off`.", nil
}

func (p *Plugin) join(ctx context.Context, a, b core.Path) error {
	for _, side := range [][2]core.Path{{a, b}, {b, a}} {
		records, err := p.records(ctx, side[0])
		if err != nil {
			return err
		}
		others := links(records)
		if len(others) >= linksMax && !slices.Contains(others, side[1]) {
			return core.Errorf(core.Forbidden, "Too many accounts are linked. `/link off` removes all links.")
		}
	}
	return p.setLinked(ctx, a, b, true)
}

// setLinked stores with both accounts whether they are linked.
func (p *Plugin) setLinked(ctx context.Context, a, b core.Path, linked bool) error {
	for _, side := range [][2]core.Path{{a, b}, {b, a}} {
		if err := p.edit(ctx, side[0], side[1].String(), func(r *record) { r.Linked = linked }); err != nil {
			return err
		}
	}
	return nil
}

// unlink removes all links of a user, on both sides.
func (p *Plugin) unlink(ctx context.Context, person core.Path) error {
	records, err := p.records(ctx, person)
	if err != nil {
		return err
	}
	for _, other := range links(records) {
		if err := p.setLinked(ctx, other, person, false); err != nil {
			return err
		}
	}
	return nil
}

// Limits of codes.
const (
	codeLength = 8
	codeLasts  = 10 * time.Minute
	codesMax   = 5   // codes that a user may request or try in an hour
	missesMax  = 100 // wrong codes in an hour, by all users
	linksMax   = 4   // of one user
)

type offer struct {
	person core.Path
	until  time.Time
}

// codes holds the hashes of the valid codes, in memory only.
type codes struct {
	clock func() time.Time

	mu     sync.Mutex
	open   map[[sha256.Size]byte]offer
	used   map[core.Path][]time.Time // when a user requested or tried codes
	misses []time.Time               // when wrong codes were tried
}

func newCodes(clock func() time.Time) *codes {
	return &codes{clock: clock, open: make(map[[sha256.Size]byte]offer), used: make(map[core.Path][]time.Time)}
}

var errOften = core.Errorf(core.Occupied, "That was too often. Try again in an hour.")

// give makes a code for a user. It replaces an earlier one.
func (c *codes) give(person core.Path) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tidy()
	if !c.spend(person) {
		return "", errOften
	}
	c.end(person)
	code := rand.Text()[:codeLength]
	c.open[sha256.Sum256([]byte(code))] = offer{person, c.clock().Add(codeLasts)}
	return code, nil
}

// take consumes a code, and returns the user to whom it was given.
func (c *codes) take(code string, by core.Path) (core.Path, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tidy()
	if len(c.misses) >= missesMax || !c.spend(by) {
		return core.Path{}, errOften
	}
	plain := strings.ToUpper(strings.NewReplacer("-", "", " ", "", "`", "").Replace(code))
	hash := sha256.Sum256([]byte(plain))
	o, ok := c.open[hash]
	switch {
	case !ok:
		c.misses = append(c.misses, c.clock())
		return core.Path{}, core.Errorf(core.Invalid,
			"The code is wrong or has expired. `/link` without a code gives a new one.")
	case o.person == by:
		return core.Path{}, core.Errorf(core.Invalid, "Write this code with your other account.")
	}
	delete(c.open, hash)
	return o.person, nil
}

func (c *codes) forget(person core.Path) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end(person)
	delete(c.used, person)
}

func (c *codes) end(person core.Path) {
	maps.DeleteFunc(c.open, func(_ [sha256.Size]byte, o offer) bool { return o.person == person })
}

// spend counts a request or try. It returns false if the user has made too many in the last hour.
func (c *codes) spend(person core.Path) bool {
	if len(c.used[person]) >= codesMax {
		return false
	}
	c.used[person] = append(c.used[person], c.clock())
	return true
}

// tidy removes expired codes and times.
func (c *codes) tidy() {
	now := c.clock()
	maps.DeleteFunc(c.open, func(_ [sha256.Size]byte, o offer) bool { return !now.Before(o.until) })
	over := func(t time.Time) bool { return now.Sub(t) >= time.Hour }
	c.misses = slices.DeleteFunc(c.misses, over)
	for person, list := range c.used {
		c.used[person] = slices.DeleteFunc(list, over)
	}
	maps.DeleteFunc(c.used, func(_ core.Path, list []time.Time) bool { return len(list) == 0 })
}
