package botapi

import (
	"errors"
	"sync"
	"time"
)

// outage is how long updates may fail to come before the client is not ready.
const outage = 30 * time.Second

// readiness knows whether updates come. The zero value is not connected yet.
type readiness struct {
	mu        sync.Mutex
	connected bool
	since     time.Time // when err began
	err       error     // nil: updates come
}

func (r *readiness) works() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.connected, r.err = true, nil
}

// fails notes an attempt that began at that time. A wait that the platform asked for
// does not count.
func (r *readiness) fails(began time.Time, err error) {
	if IsCode(err, 429) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.since = began
	}
	r.err = err
}

// Ready returns nil if updates come, or failed to for a short time only.
func (c *Client) Ready() error {
	r := &c.ready
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !r.connected:
		return errors.New("not connected yet")
	case r.err != nil && time.Since(r.since) >= outage:
		return r.err
	}
	return nil
}
