package driver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// ErrNotHeld is the error of a request that was not sent, because another process may have taken over.
var ErrNotHeld = errors.New("another process may have taken over")

// holdPause is how long a request waits before it looks again.
const holdPause = 50 * time.Millisecond

type unheldKey struct{}

// Unheld returns a context for requests that may be sent in any case, for example what admins hear while
// the database is away.
func Unheld(ctx context.Context) context.Context { return context.WithValue(ctx, unheldKey{}, true) }

// Held returns a request that changes something on a platform as one which is sent only while s holds, if
// s is a [Holder], unless its context is [Unheld]. It waits for that within the request's context. A process
// that is stopped, or a machine that sleeps, may go on much later and just before the request is sent: so a
// body looks again when it is read, which is the last moment.
func Held(s State, r *http.Request) (*http.Request, error) {
	holder, ok := s.(Holder)
	if !ok || r.Context().Value(unheldKey{}) != nil {
		return r, nil
	}
	for !holder.Holds() {
		if !Sleep(r.Context(), holdPause) {
			return nil, errors.Join(ErrNotHeld, context.Cause(r.Context()))
		}
	}
	if r.Body == nil || r.Body == http.NoBody {
		return r, nil
	}
	held := r.WithContext(r.Context())
	held.Body = &heldBody{r.Body, holder}
	if r.GetBody != nil {
		held.GetBody = func() (io.ReadCloser, error) {
			body, err := r.GetBody()
			return &heldBody{body, holder}, err
		}
	}
	return held, nil
}

// heldBody is a body that cannot be read while the process does not hold what it served.
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
