package discord

import (
	"context"
	"sync"

	"synthbot/core"
	"synthbot/interfaces/discord/rest"
)

// finder finds the channels that paths and people stand for. Safe for concurrent use.
type finder struct {
	*account

	mu       sync.Mutex
	direct   map[string]string // channels of direct messages, by person
	lookedUp map[string]place  // channels of which the gateway said nothing
}

// channelOf is the channel that a path of ours names.
func (f *finder) channelOf(path core.Path) (string, error) {
	e := path.Elements()
	if len(e) < 3 || len(e) > 4 || e[0] != f.name || path.IsPerson() {
		return "", core.Errorf(core.Invalid, "%s is no place of %s: write %s/<guild>/<channel>, or leave interface_path out", path, f.name, f.name)
	}
	return e[len(e)-1], nil
}

// stands reports as an error that a channel is not where a path says: who may write
// to a place and below it would reach every channel by its id.
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

// whereIs is the place of a channel that the gateway did not tell of.
func (f *finder) locate(ctx context.Context, id string) (place, error) {
	cur, known := f.cursors.get(id)
	if known {
		return cur.place, nil
	}
	f.mu.Lock()
	p, known := f.lookedUp[id]
	f.mu.Unlock()
	if known {
		return p, nil
	}
	var c channel
	if err := f.rest.Do(ctx, rest.Request{Method: "GET", Route: "/channels/{}", IDs: []string{id}, Out: &c}); err != nil {
		return p, err
	}
	p = place{Guild: c.Guild, Parent: c.Parent, Kind: uint8(min(max(c.Type, 0), 255))}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.lookedUp) >= maxDirect {
		clear(f.lookedUp)
	}
	f.lookedUp[id] = p
	return p, nil
}

// reach is the channel of a place, or of direct messages with a person, which is
// opened where there is none.
func (f *finder) reach(ctx context.Context, to core.Path) (string, error) {
	if to.Interface() != f.name || !to.IsPerson() {
		channel, err := f.channelOf(to)
		if err == nil {
			err = f.checkPlace(ctx, to, channel)
		}
		return channel, err
	}
	person := to.Elements()[2]
	f.mu.Lock()
	channel := f.direct[person]
	f.mu.Unlock()
	if channel != "" {
		return channel, nil
	}
	var made created
	err := f.rest.Do(ctx, rest.Request{Method: "POST", Route: "/users/@me/channels", Body: map[string]string{"recipient_id": person}, Out: &made})
	if err != nil || made.ID == "" {
		return "", rest.Failure("writing to that person", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.direct) >= maxDirect {
		clear(f.direct)
	}
	f.direct[person] = made.ID
	return made.ID, nil
}

// maxDirect is how many channels of direct messages are remembered by person;
// the platform tells again what is forgotten.
const maxDirect = 1000
