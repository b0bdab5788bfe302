package web

import (
	"strings"
	"testing"
	"time"

	"synthbot/config"
)

func TestConfig(t *testing.T) {
	var c Config
	if err := config.Read("c.toml", nil, &c, config.Options{}); err != nil {
		t.Fatal(err)
	}
	if c.Remember != 10*time.Minute || c.Permission != "everyone" || c.MaxBody != 2<<20 || c.PerMinute != 10 {
		t.Errorf("got %+v", c)
	}
	for text, want := range map[string]string{
		`searxng = "127.0.0.1:8888"`:                              "searxng: is not an address",
		`searxng = "https://me:pw@h/"`:                            "searxng: must not contain",
		`searxng_headers = { A = "b" }`:                           "searxng_headers: is for a search server",
		`allow = ["a b"]`:                                         "allow[0]: write an address",
		"searxng = \"http://h\"\nsearxng_headers = { A = \"b\" }": "",
	} {
		err := config.Read("c.toml", []byte(text), &c, config.Options{})
		if got := ""; err != nil {
			got = err.Error()
			if want == "" || !strings.Contains(got, want) || strings.Contains(got, "pw") {
				t.Errorf("%s: got %s", text, got)
			}
		} else if want != "" {
			t.Errorf("%s: got no fault", text)
		}
		c = Config{}
	}
}
