package discord

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"synthbot/core"
	"synthbot/core/driver"
	"synthbot/interfaces/discord/gateway"
)

// NewShards returns a Driver for each shard if the configuration sets their number, so that several
// processes can divide the shards among them. Otherwise it returns one Driver for the account.
func NewShards(o Options) ([]*Driver, error) {
	set, err := o.Config.check()
	if err != nil || set.shards < 2 {
		d, err := New(o)
		return []*Driver{d}, err
	}
	all, stored := make([]*Driver, set.shards), o.State
	o.starts = gateway.NewStarts(defaultTimings.gateway.Identify, stored)
	for i := range all {
		o.shard = i + 1
		o.State = &shardState{stored, fmt.Sprintf("shard %d/%d ", o.shard, set.shards)}
		if all[i], err = New(o); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Part names the shard that this Driver connects, such as "shard 1/2"; "" if it connects the whole account.
func (d *Driver) Part() string {
	if d.gateway.Only == 0 {
		return ""
	}
	return fmt.Sprintf("shard %d/%d", d.gateway.Only, d.set.shards)
}

// Serves reports whether this Driver receives the events of a place.
func (d *Driver) Serves(place core.Path) bool {
	name, below, _ := strings.Cut(place.String(), "/")
	guild, _, _ := strings.Cut(below, "/")
	return name == d.opt.Name && (d.gateway.Only == 0 || shardOf(guild, d.set.shards) == d.gateway.Only-1)
}

// shardOf returns the shard that receives the events of a guild, from 0. What belongs to no guild, such as
// direct messages, goes to shard 0.
func shardOf(guild string, shards int) int {
	n, err := strconv.ParseUint(guild, 10, 64)
	if err != nil {
		return 0
	}
	return int((n >> 22) % uint64(shards))
}

// shardState is the State of one shard. Keys that the shard has not stored yet have the values that the
// account stored before it was divided.
type shardState struct {
	driver.State
	prefix string
}

func (s *shardState) Get(ctx context.Context, key string) ([]byte, error) {
	value, err := s.State.Get(ctx, s.prefix+key)
	if err == nil && value == nil {
		value, err = s.State.Get(ctx, key)
	}
	return value, err
}

func (s *shardState) Holds() bool {
	h, ok := s.State.(driver.Holder)
	return !ok || h.Holds()
}

// Swap implements driver.Swapper.
func (s *shardState) Swap(ctx context.Context, key string, old, value []byte) (ok bool, err error) {
	shared, ok := s.State.(driver.Swapper)
	if !ok {
		return true, s.Put(ctx, key, value)
	}
	own, err := s.State.Get(ctx, s.prefix+key)
	if err != nil {
		return false, err
	}
	if own == nil { // old is what the account stored
		old = nil
	}
	return shared.Swap(ctx, s.prefix+key, old, value)
}

func (s *shardState) Put(ctx context.Context, key string, value []byte) error {
	return s.State.Put(ctx, s.prefix+key, value)
}
