package web

import (
	"net/url"
	"time"

	"synthbot/core/outbound"
	"synthbot/core/secret"
)

// Config is the table [plugins.web].
type Config struct {
	SearXNG    string                   `toml:"searxng" example:"http://127.0.0.1:8888" doc:"The address of a SearXNG server with its JSON format enabled; empty: no web search."`
	Headers    map[string]secret.Secret `toml:"searxng_headers" example:"X-Key=env:SEARX_KEY" doc:"Headers of every request to it."`
	Safe       string                   `toml:"safe_search" default:"moderate" oneof:"off|moderate|strict" doc:"How strictly explicit results are left out."`
	Results    int                      `toml:"results" default:"6" min:"1" max:"20" doc:"How many search results the model sees."`
	Allow      []outbound.Peer          `toml:"allow" example:"wiki.lan, 10.0.0.5:8080" doc:"Private addresses, ranges or names that may be read."`
	Timeout    time.Duration            `toml:"timeout" default:"15s" min:"1s" max:"2m" doc:"How long fetching a page or searching may take."`
	MaxBody    int64                    `toml:"max_body" default:"2097152" min:"1024" max:"16777216" doc:"The maximum size of a page, in bytes, uncompressed."`
	MaxText    int                      `toml:"max_text" default:"8000" min:"1000" max:"50000" doc:"How many bytes of a page's text the model sees at once."`
	PerMinute  int                      `toml:"per_minute" default:"10" min:"1" max:"1000" doc:"How many pages, and how many searches, one user may request per minute."`
	Remember   time.Duration            `toml:"remember" default:"10m" min:"0s" max:"24h" doc:"How long pages and search results are cached."`
	UserAgent  string                   `toml:"user_agent" default:"Mozilla/5.0 (compatible; synthbot)" min:"1" max:"200" doc:"The User-Agent header."`
	Permission string                   `toml:"permission" default:"everyone" oneof:"everyone|moderators|admins" doc:"Who may use it."`
}

// Check implements the configuration's own check.
func (c *Config) Check(fault func(text string, at ...any)) {
	if c.SearXNG == "" {
		if len(c.Headers) > 0 {
			fault("is for a search server, and there is none; set searxng", "searxng_headers")
		}
		return
	}
	u, err := url.Parse(c.SearXNG)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		fault("is not an address; write it as http://host:port", "searxng")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		fault("no name, password, query or fragment belongs into it; put keys into searxng_headers", "searxng")
	}
}
