package setup

import (
	"errors"

	"synthbot/core/secret"
	"synthbot/core/txt"
)

// CheckToken returns an error if a token does not look like one of a platform. A missing one is none.
func CheckToken(platform string, token secret.Secret) error {
	switch {
	case token.IsZero():
	case platform == Discord && !discordToken().MatchString(token.Reveal()):
		return errors.New("its token does not look like one of Discord: three parts with dots between, from the " +
			"portal's page Bot (neither the client secret nor the public key)")
	case platform == Telegram && !telegramToken().MatchString(token.Reveal()):
		return errors.New("its token does not look like one of Telegram: digits, a colon and 35 letters, " +
			"from @BotFather")
	}
	return nil
}

// Tokens of the platforms: of Discord the bot's id, a time and a signature in base64, of Telegram
// the bot's id and a secret.
var (
	discordToken  = txt.Pattern(`^[\w-]{18,}\.[\w-]{6}\.[\w-]{27,}$`)
	telegramToken = txt.Pattern(`^\d{6,}:[\w-]{30,}$`)
)
