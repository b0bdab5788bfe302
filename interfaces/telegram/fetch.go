package telegram

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"synthbot/core"
	"synthbot/interfaces/telegram/botapi"
)

var _ core.Fetcher = (*Driver)(nil)

// Fetch returns the content of an attachment that this driver gave, at most most
// bytes and no more than Config.MaxFile. It reads nothing but files of the Bot API
// server, for at most ten times Config.Timeout.
func (d *Driver) Fetch(ctx context.Context, a core.Attachment, most int64) ([]byte, error) {
	most = min(most, cmp.Or(d.opt.Config.MaxFile, 20<<20))
	tooLarge := core.Errorf(core.Invalid, "the file is larger than %d bytes", most)
	switch {
	case a.Ref == "":
		return nil, core.Errorf(core.Broken, "the file is not there")
	case a.Size > most:
		return nil, tooLarge
	}
	raw, err := d.api.Do(ctx, botapi.Request{Method: "getFile", Params: botapi.Params{"file_id": a.Ref}, Again: true})
	if botapi.Says(err, "file is too big") {
		return nil, tooLarge
	}
	if err != nil {
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
		return nil, tooLarge
	}
	data, err := d.api.File(ctx, f.Path, d.opt.Config.FilesDir, most)
	switch {
	case errors.Is(err, botapi.ErrTooLarge):
		return nil, tooLarge
	case errors.Is(err, botapi.ErrNoFile):
		return nil, &core.Error{Kind: core.Broken, Text: "the file is not there any more", Err: err}
	case err != nil:
		return nil, explain(err)
	}
	return data, nil
}
