package telegram

import (
	"context"
	"slices"
	"strings"

	"synthbot/core/driver"
)

// In private chats and groups of the old kind each account has numbers of its own
// for messages, which begin at 1. With the token of another bot they come again: so
// the ids of messages there begin with how many other bots this interface was
// before, and none is taken for one that is known.
const (
	accountsKey  = "accounts"
	accountShift = 32 // numbers have 31 bits
	firstShared  = -1_000_000_000_000
)

// messageID is the id of a message.
func (p *places) messageID(chat, number int64) string {
	if chat > firstShared {
		number += p.account << accountShift
	}
	return id(number)
}

// messageNumber is what the platform calls a message; 0: it is another account's.
func (p *places) messageNumber(chat, message int64) int64 {
	switch {
	case chat <= firstShared:
		return message
	case message>>accountShift != p.account:
		return 0
	}
	return message & (1<<accountShift - 1)
}

// account is the bot's number, which its token begins with; "" where it does not.
func (d *Driver) account() string {
	account, _, ok := strings.Cut(d.opt.Config.Token.Reveal(), ":")
	if !ok {
		return "" // what is kept must not be the secret
	}
	return account
}

// accounts lists the bots that the interface was so far, and this one.
func (d *Driver) accounts(ctx context.Context) (all []string, known bool, err error) {
	err = driver.Load(ctx, d.opt.State, accountsKey, &all)
	if err != nil {
		d.log.Warn("former bots not read", "err", err)
	}
	if slices.Contains(all, d.account()) {
		return all, true, err
	}
	return append(all, d.account()), false, err
}

// saveAccount stores which bot this is, once the platform knows it.
func (d *Driver) saveAccount(ctx context.Context) {
	all, known, err := d.accounts(ctx)
	if known || err != nil { // without the others, ids would be used again
		return
	}
	if len(all) > 1 {
		d.log.Warn("this is another bot than before, in the same places", "accounts", all)
	}
	if err := driver.Save(ctx, d.opt.State, accountsKey, all); err != nil {
		d.log.Warn("bot not stored", "err", err)
	}
}
