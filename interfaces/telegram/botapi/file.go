package botapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// ErrNoFile means that a file does not exist, or cannot be read here.
var ErrNoFile = errors.New("no such file")

// ErrTooLarge means that a file is larger than was allowed.
var ErrTooLarge = errors.New("the file is too large")

// File returns the content of a file that the server named, at most most bytes. A file
// on this machine is read if it is in dir; everything else is downloaded from where
// the calls go to, and from nowhere else.
func (c *Client) File(ctx context.Context, file, dir string, most int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*c.opt.Timeout)
	defer cancel()
	if filepath.IsAbs(file) {
		return c.local(file, dir, most)
	}
	var clean []string
	for element := range strings.SplitSeq(file, "/") {
		if element == "" || element == "." || element == ".." {
			return nil, ErrNoFile
		}
		clean = append(clean, url.PathEscape(element))
	}
	// The library would put the token into an address that may be logged.
	address := c.base.String() + "/file/bot" + c.opt.Token + "/" + path.Join(clean...)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New(c.redact(err.Error()))
	}
	w := wire{ctx: ctx, client: c, method: "file"}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, w.broken(err, false)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w (%d)", ErrNoFile, resp.StatusCode)
	}
	return w.read(resp.Body, most)
}

func (w *wire) read(r io.Reader, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	switch {
	case err != nil:
		return nil, w.broken(err, false)
	case int64(len(data)) > most:
		return nil, ErrTooLarge
	}
	return data, nil
}

// local reads a file that a Bot API server of one's own keeps on this machine. Such a
// server keeps files in a folder with the token's name, which no error may show.
func (c *Client) local(file, dir string, most int64) ([]byte, error) {
	inside, err := filepath.Rel(dir, file)
	if dir == "" || err != nil || !filepath.IsLocal(inside) {
		return nil, fmt.Errorf("%w: the Bot API server keeps files outside of files_dir", ErrNoFile)
	}
	f, err := os.OpenInRoot(dir, inside)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrNoFile, c.redact(err.Error()))
	}
	defer func() { _ = f.Close() }()
	w := wire{ctx: context.Background(), client: c, method: "file"}
	return w.read(f, most)
}
