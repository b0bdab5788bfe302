package page

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
)

// upload posts a file to the form that imports personas. With nil data, the form has no file.
func (c *client) upload(csrf, name string, data []byte) reply {
	c.w.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	err := form.WriteField("csrf", csrf)
	if err == nil && data != nil {
		part, failed := form.CreateFormFile("file", name)
		if err = failed; err == nil {
			_, err = part.Write(data)
		}
	}
	if err != nil || form.Close() != nil {
		c.w.Fatal(err)
	}
	r, err := http.NewRequestWithContext(c.w.Context(), http.MethodPost, c.w.server.URL+cardsPath, &body)
	if err != nil {
		c.w.Fatal(err)
	}
	r.Header.Set("Content-Type", form.FormDataContentType())
	r.Header.Set("Origin", c.w.server.URL)
	return c.send(r)
}

// TestCards checks that a card can be imported, viewed with its picture, and removed, and that other files are
// refused with a message.
func TestCards(t *testing.T) {
	w := newWorld(t)
	c := w.in()
	csrf := c.csrf()
	if body := c.get("/personas").body; strings.Contains(body, "<img") || !strings.Contains(body, `enctype="multipart/form-data"`) {
		t.Errorf("before the import: %s", body)
	}
	for what, tc := range map[string]struct {
		csrf   string
		data   []byte
		status int
		text   string
	}{
		"not a card": {csrf, []byte("x"), http.StatusBadRequest, "Not imported: mira.png: no card &lt;script"},
		"no file":    {csrf, nil, http.StatusBadRequest, "Choose a file."},
		"no token":   {"", []byte("a card"), http.StatusForbidden, "too old"},
		"a big one":  {csrf, make([]byte, maxCard+1), http.StatusRequestEntityTooLarge, "too much at once"},
		"a huge one": {csrf, make([]byte, maxCard+maxForm), http.StatusRequestEntityTooLarge, "too much at once"},
	} {
		r := c.upload(tc.csrf, "mira.png", tc.data)
		if r.status != tc.status || !strings.Contains(r.body, tc.text) || strings.Contains(r.body, "<script>alert") || w.dress.card {
			t.Errorf("%s: got %d %s", what, r.status, r.body)
		}
	}
	if r := c.get("/personas/avatar?id=aria.toml"); r.status != http.StatusNotFound {
		t.Errorf("avatar of a persona without a picture: status %d", r.status)
	}
	r := c.upload(csrf, "mira.png", []byte("a card"))
	if to := r.head.Get("Location"); r.status != http.StatusSeeOther || to != "/personas/one?id=aria.toml" {
		t.Fatalf("import: status %d, to %q, %s", r.status, to, r.body)
	}
	has(t, c.get("/personas/one?id=aria.toml").body, "It is imported.", `src="/personas/avatar?id=aria.toml" alt="The picture of &lt;script`, "Remove it for good")
	has(t, c.get("/personas").body, `<img class="avatar" src="/personas/avatar?id=aria.toml" alt=""`, "imported")
	r = c.get("/personas/avatar?id=aria.toml")
	if r.status != http.StatusOK || r.head.Get("Content-Type") != "image/png" || r.body != "\x89PNG" || r.head.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("picture: status %d, %v, %q", r.status, r.head, r.body)
	}
	for _, status := range []int{http.StatusSeeOther, http.StatusBadRequest} {
		if r := c.post("/personas/remove", "csrf", csrf, "id", "aria.toml"); r.status != status {
			t.Errorf("removal: status %d, %s", r.status, r.body)
		}
	}
	has(t, w.log.String(), `"persona imported by an admin" file=aria.toml`, `"persona removed by an admin"`)
}
