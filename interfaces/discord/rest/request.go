package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"mime/multipart"
	"net/textproto"
	"net/url"
	"strings"
)

// Request is one call of the REST interface.
type Request struct {
	Method string
	Route  string   // with {} for each ID; rate limits depend on the first one
	IDs    []string // in order
	Query  url.Values
	Body   any
	Files  []File
	Out    any  // receives the answer; nil: the answer is ignored
	Once   bool // is not repeated while its outcome is unknown
	Fast   bool // answers an interaction: has no rate limit and cannot wait
}

// File is a file that is sent with a request.
type File struct {
	Name string
	Data []byte
	MIME string // "": only the name says what it is
}

// address fills the IDs into the route.
func (q *Request) address() string {
	var b strings.Builder
	pieces := strings.Split(q.Route, "{}")
	for i, piece := range pieces {
		b.WriteString(piece)
		if i < len(pieces)-1 {
			b.WriteString(url.PathEscape(q.IDs[i]))
		}
	}
	if len(q.Query) > 0 {
		b.WriteString("?" + q.Query.Encode())
	}
	return b.String()
}

// name identifies the request in errors and, until the server has named a bucket, in
// rate limits. It holds no ID, as a token may be among them.
func (q *Request) name() string { return q.Method + " " + q.Route }

// major is the ID that rate limits depend on.
func (q *Request) major() string {
	if len(q.IDs) > 0 {
		return q.IDs[0]
	}
	return ""
}

// encode makes the body.
func (q *Request) encode() (contentType string, body []byte, err error) {
	if q.Body == nil && len(q.Files) == 0 {
		return "", nil, nil
	}
	text, err := json.Marshal(q.Body)
	if err != nil || len(q.Files) == 0 {
		return "application/json", text, err
	}
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, _ := w.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {`form-data; name="payload_json"`}, "Content-Type": {"application/json"},
	})
	_, _ = part.Write(text)
	for i := range q.Files {
		part, _ := w.CreatePart(q.Files[i].header(i))
		_, _ = part.Write(q.Files[i].Data) // a buffer takes everything
	}
	_ = w.Close()
	return w.FormDataContentType(), b.Bytes(), nil
}

// quoted removes what would end a quoted file name.
var quoted = strings.NewReplacer(`"`, "", `\`, "", "\r", "", "\n", "")

// header describes the i-th file.
func (f *File) header(i int) textproto.MIMEHeader {
	kind := "application/octet-stream"
	if known, _, err := mime.ParseMediaType(f.MIME); err == nil {
		kind = known
	}
	disposition := fmt.Sprintf(`form-data; name="files[%d]"; filename="%s"`, i, quoted.Replace(f.Name))
	return textproto.MIMEHeader{"Content-Disposition": {disposition}, "Content-Type": {kind}}
}
