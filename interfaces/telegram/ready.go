package telegram

import (
	"errors"
	"sync"
	"time"

	"synthbot/core"
)

var _ core.Readier = (*Driver)(nil)

// outage is how long updates may fail to come before the driver is not ready.
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

// fails notes an attempt that began at that time. A wait that the platform asked
// for is no failure.
func (r *readiness) fails(began time.Time, err error) {
	if isCode(err, 429) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.since = began
	}
	r.err = err
}

// Ready implements core.Readier.
func (d *Driver) Ready() error {
	r := &d.updates
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
