package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"synthbot/core"
)

var _ core.Fetcher = (*Driver)(nil)

// Fetch returns the content of an attachment that this driver gave, at most most
// bytes and no more than Config.MaxFile. It reads nothing but files of the Bot
// API server, for at most ten times Config.Timeout.
func (d *Driver) Fetch(ctx context.Context, a core.Attachment, most int64) ([]byte, error) {
	most = min(most, d.opt.Config.MaxFile)
	switch {
	case a.Ref == "":
		return nil, core.Errorf(core.Broken, "the file is not there")
	case a.Size > most:
		return nil, tooLarge(most)
	}
	raw, err := d.do(ctx, request{method: "getFile", params: tgbotapi.Params{"file_id": a.Ref}, again: true})
	if err != nil {
		if codeSays(err, "file is too big") {
			return nil, tooLarge(most)
		}
		return nil, explain(err)
	}
	var f struct {
		Path string `json:"file_path"`
		Size int64  `json:"file_size"`
	}
	if err := json.Unmarshal(raw, &f); err != nil || f.Path == "" {
		return nil, core.Errorf(core.Broken, "the file is not there any more")
	}
	if f.Size > most {
		return nil, tooLarge(most)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*d.opt.Config.Timeout)
	defer cancel()
	if filepath.IsAbs(f.Path) {
		return d.local(f.Path, most)
	}
	return d.download(ctx, f.Path, most)
}

func tooLarge(most int64) error {
	return core.Errorf(core.Invalid, "the file is larger than %d bytes", most)
}

// download fetches a file from where the calls go to, and from nowhere else.
func (d *Driver) download(ctx context.Context, file string, most int64) ([]byte, error) {
	var clean []string
	for element := range strings.SplitSeq(file, "/") {
		if element == "" || element == "." || element == ".." {
			return nil, core.Errorf(core.Broken, "the file is not there")
		}
		clean = append(clean, url.PathEscape(element))
	}
	address := d.api.base.String() + "/file/bot" + d.api.token + "/" + path.Join(clean...)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New(d.api.redact(err.Error()))
	}
	w := wire{ctx: ctx, client: d.api, method: "file"}
	resp, err := d.api.http.Do(req)
	if err != nil {
		return nil, explain(w.broken(err, false))
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, core.Errorf(core.Broken, "the file is not there any more (%d)", resp.StatusCode)
	}
	return readFile(resp.Body, most, &w)
}

func readFile(r io.Reader, most int64, w *wire) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	switch {
	case err != nil:
		return nil, explain(w.broken(err, false))
	case int64(len(data)) > most:
		return nil, tooLarge(most)
	}
	return data, nil
}

// local reads a file that a server of one's own keeps on this machine, if it
// lies where the configuration says.
func (d *Driver) local(file string, most int64) ([]byte, error) {
	dir := d.opt.Config.FilesDir
	inside, err := filepath.Rel(dir, file)
	if dir == "" || err != nil || !filepath.IsLocal(inside) {
		return nil, &core.Error{Kind: core.Broken, Text: "the file cannot be fetched",
			Err: errors.New("the Bot API server keeps files outside of files_dir")}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, d.noFile(err)
	}
	defer func() { _ = root.Close() }()
	f, err := root.Open(inside)
	if err != nil {
		return nil, d.noFile(err)
	}
	defer func() { _ = f.Close() }()
	return readFile(f, most, &wire{ctx: context.Background(), client: d.api, method: "file"})
}

// noFile is a file that is not there. Such a server keeps files in a folder that
// is called like the token, so the system's words are not passed on as they are.
func (d *Driver) noFile(err error) error {
	return &core.Error{Kind: core.Broken, Text: "the file is not there any more", Err: errors.New(d.api.redact(err.Error()))}
}
