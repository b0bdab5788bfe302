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

// Unheld returns a context for requests that are sent whether a [Holder] holds or not, such as notices to
// admins while the database is away.
func Unheld(ctx context.Context) context.Context { return context.WithValue(ctx, unheldKey{}, true) }

// Held returns the request to send in place of one that changes something on a platform. If s is a [Holder],
// Held waits until it holds, within the request's context; when that ends, the error is [ErrNotHeld]. The
// process may be stopped between that and the sending, and go on much later: so the body asks the Holder
// once more when it is read, and fails with ErrNotHeld. Requests whose context is [Unheld] stay as they are.
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
