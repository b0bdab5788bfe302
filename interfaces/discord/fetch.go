package discord

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"synthbot/core"
	"synthbot/interfaces/discord/rest"
)

// Fetch returns the content of an attachment of this interface, at most max
// bytes; a larger one is an error. Files come from cdn_url and nowhere else.
func (d *Driver) Fetch(ctx context.Context, a core.Attachment, max int64) ([]byte, error) {
	ref, err := url.Parse(a.Ref)
	if err != nil || ref.IsAbs() || ref.Host != "" || !strings.HasPrefix(ref.Path, "/") ||
		strings.Contains(ref.Path, "..") {
		return nil, core.Errorf(core.Invalid, "the file %q has no address", a.Name)
	}
	address := d.set.cdn.String() + ref.RequestURI()
	data, status, err := d.rest.Download(ctx, address, max)
	if err == nil && (status == http.StatusForbidden || status == http.StatusNotFound) {
		// Addresses are signed, and their signatures grow old.
		var fresh struct {
			URLs []struct {
				Fresh string `json:"refreshed"`
			} `json:"refreshed_urls"`
		}
		body := map[string]any{"attachment_urls": []string{address}}
		q := rest.Request{Method: "POST", Route: "/attachments/refresh-urls", Body: body, Out: &fresh}
		if d.rest.Do(ctx, q) == nil && len(fresh.URLs) > 0 {
			data, status, err = d.rest.Download(ctx, d.set.cdn.String()+handle(fresh.URLs[0].Fresh), max)
		}
	}
	switch {
	case err != nil:
		return nil, rest.Failure("fetching the file", err)
	case status != http.StatusOK:
		return nil, rest.Failure("fetching the file", &rest.Error{Route: "file", Status: status})
	case int64(len(data)) > max:
		return nil, core.Errorf(core.Invalid, "the file %q is larger than %d bytes", a.Name, max)
	}
	return data, nil
}
