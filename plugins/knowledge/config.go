package knowledge

import (
	"net/url"
	"slices"
	"time"

	"synthbot/core"
	"synthbot/core/outbound"
	"synthbot/core/txt"
)

// Config is the table [plugins.knowledge].
type Config struct {
	Sources  []Source        `toml:"source" doc:"Documents that the bot answers from."`
	Escalate core.Path       `toml:"escalate" example:"discord/81384788765712384/81384788765712999" doc:"A place where questions are put that no document answers; empty: they are only listed."`
	Teach    string          `toml:"teach" default:"moderators" oneof:"everyone|moderators|admins" doc:"Who may add to the knowledge from the chat (/teach)."`
	Passages int             `toml:"passages" default:"4" min:"0" max:"20" doc:"How many passages of documents a prompt contains at most."`
	Chars    int             `toml:"chars" default:"2400" min:"200" max:"12000" doc:"The maximum length of these passages together, in characters."`
	Every    time.Duration   `toml:"every" default:"15s" min:"1s" max:"24h" doc:"How often folders are looked through for changes."`
	Refresh  time.Duration   `toml:"refresh" default:"1h" min:"1m" max:"720h" doc:"How often web pages and feeds are read again."`
	Allow    []outbound.Peer `toml:"allow" example:"wiki.lan, 10.0.0.5:8080" doc:"Private addresses, ranges or names that may be read."`
	Timeout  time.Duration   `toml:"timeout" default:"20s" min:"1s" max:"5m" doc:"How long reading one web page or one file may take."`

	// Dir is the folder to which relative paths refer; "": the working directory.
	Dir string
}

// Source is a table [[plugins.knowledge.source]].
type Source struct {
	Name   string      `toml:"name" required:"true" example:"handbook" doc:"Its name, of a-z, 0-9, _ and -."`
	Path   string      `toml:"path" example:"docs" doc:"A folder or a file (.md, .txt, .html, .pdf, .docx), relative to the configuration file. It is watched."`
	URLs   []string    `toml:"urls" example:"https://example.org/faq" doc:"Web pages."`
	Feed   string      `toml:"feed" example:"https://example.org/feed.xml" doc:"A feed (RSS or Atom)."`
	Places []core.Path `toml:"places" example:"discord/81384788765712384" doc:"The places where it may be cited, with all places below them; empty: everywhere."`
}

var sourceName = txt.Pattern(`^[a-z0-9_-]{1,64}$`)

// Check implements the configuration's own check.
func (c *Config) Check(fault func(text string, at ...any)) {
	var names []string
	for i, s := range c.Sources {
		switch {
		case !sourceName().MatchString(s.Name):
			fault("is not a name of a-z, 0-9, _ and -", "source", i, "name")
		case s.Name == taught:
			fault("is the name of what users teach; take another", "source", i, "name")
		case slices.Contains(names, s.Name):
			fault("is the name of another source", "source", i, "name")
		case s.Path == "" && len(s.URLs) == 0 && s.Feed == "":
			fault("has no documents; set path, urls or feed", "source", i)
		}
		names = append(names, s.Name)
		for k, address := range s.URLs {
			if !isAddress(address) {
				fault("is not an address; write it as https://example.org/page", "source", i, "urls", k)
			}
		}
		if s.Feed != "" && !isAddress(s.Feed) {
			fault("is not an address; write it as https://example.org/feed.xml", "source", i, "feed")
		}
	}
}

func isAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil
}
