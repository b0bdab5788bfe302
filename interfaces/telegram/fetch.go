package telegram

import (
	"cmp"
	"context"
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
	var f struct {
		Path string `json:"file_path"`
		Size int64  `json:"file_size"`
	}
	err := d.api.Get(ctx, "getFile", botapi.Params{"file_id": a.Ref}, &f)
	switch {
	case botapi.Says(err, "file is too big"), f.Size > most:
		return nil, tooLarge
	case err != nil:
		return nil, explain(err)
	case f.Path == "":
		return nil, core.Errorf(core.Broken, "the file is not there any more")
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
