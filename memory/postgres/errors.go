package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"synthbot/core"
)

// awayError is the error of a connection that could not be made, or that was lost.
type awayError struct{ error }

func (e *awayError) Unwrap() error { return e.error }

// codeOf returns the SQLSTATE of an error of the server; "" for other errors.
func codeOf(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// Codes of the server.
const (
	serializationFailure = "40001"
	divisionByZero       = "22012"
	uniqueViolation      = "23505"
	duplicateTable       = "42P07"
	duplicateType        = "42710"
	protocolViolation    = "08P01"
	diskFull             = "53100"
)

// isAway reports whether the database could not be reached, or is not ready.
func isAway(err error) bool {
	refusals := []string{"28P01", "28000", "3D000", "42501"} // with which a server permanently refuses to connect
	_, lost := errors.AsType[*awayError](err)
	code := codeOf(err)
	return lost && !slices.Contains(refusals, code) ||
		strings.HasPrefix(code, "57P") || strings.HasPrefix(code, "08") || code == "53300" || code == "25006"
}

// isConflict reports whether a transaction can be retried: it conflicted with another one, it was idle
// for too long, the lease was not renewed in time, or a pooler changed the server process.
func isConflict(err error) bool {
	code := codeOf(err)
	return code == serializationFailure || code == "40P01" || code == "25P03" || code == divisionByZero ||
		isUnprepared(err)
}

// openError adds the cause and the fix to an error of Open.
func (db *DB) openError(err error) error {
	text := "start it, or correct the URL"
	switch code := codeOf(err); {
	case errors.Is(err, core.ErrLocked):
		return fmt.Errorf("%s: %w", db.name, err)
	case code == "28P01" || code == "28000":
		text = "the server refuses this user or password; correct the URL, or the user's rights to connect"
	case code == "3D000":
		text = "create the database, or correct the URL"
	case code == "42501":
		text = "this user may not create or use the tables kv, worker and part; grant create and usage on the schema"
	case code == "53300":
		text = "it has no connection left; raise max_connections, or use a pooler"
	case code != "" && !isAway(err):
		text = "the server cannot be used"
	}
	return fmt.Errorf("%s: %w: %s", db.name, withoutConfig(err), text)
}

// withoutConfig returns the server's message, or why it could not be reached, without the user's name.
func withoutConfig(err error) error {
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		return fmt.Errorf("%s (SQLSTATE %s)", said.Message, said.Code)
	}
	connect, ok := errors.AsType[*pgconn.ConnectError](err)
	if !ok {
		return err
	}
	err = connect.Unwrap()
	if all, ok := err.(interface{ Unwrap() []error }); ok { // one for each address and attempt
		list := all.Unwrap()
		err = list[len(list)-1]
	}
	return err
}
