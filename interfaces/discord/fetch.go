package discord

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"synthbot/core"
)

// fetchTime is how long one file may take.
const fetchTime = time.Minute

// Fetch returns the content of an attachment of this interface, at most max
// bytes; a larger one is an error. Files come from cdn_url and nowhere else.
func (d *Driver) Fetch(ctx context.Context, a core.Attachment, max int64) ([]byte, error) {
	ref, ok := escaped(a.Ref)
	if !ok {
		return nil, core.Errorf(core.Invalid, "the file %q has no address", a.Name)
	}
	data, status, err := d.load(ctx, ref.RequestURI(), max)
	if err == nil && (status == http.StatusForbidden || status == http.StatusNotFound) {
		// Addresses are signed, and their signatures grow old.
		var fresh struct {
			URLs []struct {
				Fresh string `json:"refreshed"`
			} `json:"refreshed_urls"`
		}
		q := request{method: "POST", route: "/attachments/refresh-urls", body: map[string]any{"attachment_urls": []string{d.set.cdn.String() + ref.RequestURI()}}, out: &fresh}
		if err := d.rest.do(ctx, q); err == nil && len(fresh.URLs) > 0 {
			data, status, err = d.load(ctx, handle(fresh.URLs[0].Fresh), max)
			if err != nil {
				return nil, failure("fetching the file", err)
			}
		}
	}
	switch {
	case err != nil:
		return nil, failure("fetching the file", err)
	case status != http.StatusOK:
		return nil, failure("fetching the file", &apiError{route: "file", status: status})
	case int64(len(data)) > max:
		return nil, core.Errorf(core.Invalid, "the file %q is larger than %d bytes", a.Name, max)
	}
	return data, nil
}

// load makes the request; the token has no business there.
func (d *Driver) load(ctx context.Context, ref string, max int64) ([]byte, int, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.set.cdn.String()+ref, nil)
	if err != nil {
		return nil, 0, fmt.Errorf("file: %w", err)
	}
	client := http.Client{
		Transport:     d.rest.files,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(r)
	if err != nil {
		return nil, 0, fmt.Errorf("file: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(resp.Body, max+1))
	return data, resp.StatusCode, err
}
