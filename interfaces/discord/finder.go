package discord

import (
	"context"

	"synthbot/core"
	"synthbot/core/recent"
	"synthbot/interfaces/discord/rest"
)

// finder finds the channels of paths and users. Safe for concurrent use.
type finder struct {
	*account

	direct   *recent.Shared[string, string] // channels of direct messages, by person
	lookedUp *recent.Shared[string, place]  // channels of which the gateway said nothing
}

func newFinder(a *account) *finder {
	return &finder{
		account: a, direct: recent.NewShared[string, string](maxDirect),
		lookedUp: recent.NewShared[string, place](maxDirect),
	}
}

func (f *finder) channelOf(path core.Path) (string, error) {
	e := path.Elements()
	if len(e) < 3 || len(e) > 4 || e[0] != f.name || path.IsPerson() {
		return "", core.Errorf(core.Invalid,
			"%s is not a place of %s: write %s/<guild>/<channel>, or leave interface_path out", path, f.name, f.name)
	}
	return e[len(e)-1], nil
}

// checkPlace returns an error if a channel is not where a path says. Without it, a user
// who may write to a place and below would reach every channel by its id.
func (f *finder) checkPlace(ctx context.Context, path core.Path, id string) error {
	p, known := f.cache.place(id)
	if !known {
		err := f.closed.refused(id)
		if err != nil {
			return err
		}
		if p, err = f.locate(ctx, id); err != nil {
			f.markClosed(id, path, &outgoing{}, err)
			return rest.Failure("writing to "+path.String(), err)
		}
	}
	where, _, _ := f.cache.path(id, p)
	if where != path {
		return core.Errorf(core.Invalid, "there is no place %s", path)
	}
	return nil
}

// locate returns the place of a channel. It asks Discord if nothing is known of it.
func (f *finder) locate(ctx context.Context, id string) (place, error) {
	p, known := f.placeOf(id)
	if known {
		return p, nil
	}
	p, known = f.lookedUp.Get(id)
	if known {
		return p, nil
	}
	var c channel
	if err := f.rest.Get(ctx, &c, "/channels/{}", id); err != nil {
		return p, err
	}
	p = c.place()
	f.lookedUp.Put(id, p)
	return p, nil
}

// reach is the channel of a place, or of direct messages with a user, which is opened if
// there is none.
func (f *finder) reach(ctx context.Context, to core.Path) (string, error) {
	if to.Interface() != f.name || !to.IsPerson() {
		channel, err := f.channelOf(to)
		if err == nil {
			err = f.checkPlace(ctx, to, channel)
		}
		return channel, err
	}
	person := to.Elements()[2]
	channel, _ := f.direct.Get(person)
	if channel != "" {
		return channel, nil
	}
	var made created
	q := rest.Request{Method: "POST", Route: "/users/@me/channels", Out: &made}
	q.Body = map[string]string{"recipient_id": person}
	err := f.rest.Do(ctx, q)
	if err != nil || made.ID == "" {
		return "", rest.Failure("writing to that person", err)
	}
	f.direct.Put(person, made.ID)
	return made.ID, nil
}

// maxDirect is how many channels are remembered by user, and by id. A forgotten one is
// requested again.
const maxDirect = 1000
