package rest

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/url"
	"strings"

	"github.com/bwmarrin/discordgo"
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
	Name string // on one line
	Data []byte
	MIME string // "": only the name says what it is
}

func (q *Request) address() string {
	address := q.Route
	for _, id := range q.IDs {
		address = strings.Replace(address, "{}", url.PathEscape(id), 1) // {} in an ID is escaped
	}
	if len(q.Query) > 0 {
		address += "?" + q.Query.Encode()
	}
	return address
}

// name identifies the request in errors and, until the server has named a bucket, in
// rate limits. It holds no ID, as a token may be among them.
func (q *Request) name() string { return q.Method + " " + q.Route }

func (q *Request) encode() (contentType string, body []byte, err error) {
	if len(q.Files) == 0 {
		if q.Body != nil {
			body, err = json.Marshal(q.Body)
		}
		return "application/json", body, err
	}
	var files []*discordgo.File
	for _, f := range q.Files {
		kind, _, _ := mime.ParseMediaType(f.MIME) // "" if it is invalid
		files = append(files, &discordgo.File{Name: f.Name, ContentType: kind, Reader: bytes.NewReader(f.Data)})
	}
	return discordgo.MultipartBodyWithJSON(q.Body, files)
}
