package driver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"synthbot/core/loop"
)

// ErrNotHeld means that a request was not sent because another process may have taken over.
var ErrNotHeld = errors.New("not sent: another process may have taken over")

type unheldKey struct{}

// Unheld returns a context whose requests are sent even if another process may have taken over, such as
// alerts to admins while the database is away.
func Unheld(ctx context.Context) context.Context { return context.WithValue(ctx, unheldKey{}, true) }

// Held guards a request that changes something on a platform. It returns a copy of it with the context ctx,
// to send instead. If s is a [Holder], Held blocks until it holds. If ctx ends first, the error wraps
// [ErrNotHeld]. The process may be suspended between this check and the sending, so reading the body checks
// again and fails with ErrNotHeld. If ctx is [Unheld], the copy is not guarded.
func Held(ctx context.Context, s State, r *http.Request) (*http.Request, error) {
	held := r.WithContext(ctx)
	holder, ok := s.(Holder)
	if !ok || ctx.Value(unheldKey{}) != nil {
		return held, nil
	}
	for !holder.Holds() {
		if !loop.Sleep(ctx, 50*time.Millisecond) {
			return nil, errors.Join(ErrNotHeld, context.Cause(ctx))
		}
	}
	if r.Body == nil || r.Body == http.NoBody {
		return held, nil
	}
	held.Body = &heldBody{r.Body, holder}
	if r.GetBody != nil {
		held.GetBody = func() (io.ReadCloser, error) {
			body, err := r.GetBody()
			return &heldBody{body, holder}, err
		}
	}
	return held, nil
}

// heldBody is a request body that fails to read if the Holder does not hold.
type heldBody struct {
	io.ReadCloser
	holder Holder
}

func (b *heldBody) Read(p []byte) (int, error) {
	if !b.holder.Holds() {
		return 0, ErrNotHeld
	}
	return b.ReadCloser.Read(p)
}
