package filter

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"synthbot/core"
)

func TestWordsOf(t *testing.T) {
	for text, want := range map[string]string{
		"Free *Money*, for-ALL!":       "free|money|for|all",
		"don't_do  it 2day":            "don|t|do|it|2day",
		"c\u200ba\u00adsino":           "casino",
		"КАЗИНО Straße ΣΊΣΥΦΟΣ":        "казино|straße|σίσυφοσ",
		"赌场abc":                        "赌|场|abc",
		"カジノ":                          "カ|ジ|ノ",
		"می\u200cخواهم":                "میخواهم",
		"🖕🏽!":                          "🖕",
		"❤️":                           "❤",
		"e\u0301t\u00e9":               "e\u0301té",
		"\xff\xfe a":                   "a",
		"K\u212Aelvin \u017Ft \u0130i": "kkelvin|st|ii",
		"":                             "",
		"...":                          "",
	} {
		if got := strings.Join(wordsOf(text), "|"); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// dictionaryOf returns a dictionary with a rule for each list of words.
func dictionaryOf(lists ...[]string) *dictionary {
	d := new(dictionary)
	for i, list := range lists {
		for _, w := range list {
			d.add(1<<i, w)
		}
	}
	return d
}

func TestDictionary(t *testing.T) {
	d := dictionaryOf([]string{"free money", "casino"}, []string{"free", "赌场"}, []string{"free money now"})
	for text, want := range map[string]uint64{
		"free money": 0b011, "FREE  money, now": 0b111, "a free money-box": 0b011, "freedom": 0, "money free": 0b010,
		"casinos": 0, "the casino": 0b001, "去赌场": 0b010, "赌 场": 0b010, "赌": 0, "free": 0b010, "free free money": 0b011, "": 0,
	} {
		var w words
		w.cut(text)
		if got := d.find(&w, ^uint64(0)); got != want {
			t.Errorf("%q: got %b, want %b", text, got, want)
		}
		if got := d.find(&w, 0b100); got != want&0b100 {
			t.Errorf("%q with the third list only: got %b", text, got)
		}
	}
}

// FuzzWords checks that a word is found in any text that contains it, in any case, and never inside another
// word.
func FuzzWords(f *testing.F) {
	for _, word := range []string{"casino", "Free money", "казино", "赌场", "ß", "ǅ", "a b c", "naïve", "🖕"} {
		f.Add(word, "some text, ", "; more")
	}
	f.Fuzz(func(t *testing.T, word, before, after string) {
		list := wordsOf(word)
		for _, w := range list {
			if again := wordsOf(w); len(again) != 1 || again[0] != w {
				t.Fatalf("the word %q is cut to %q", w, again)
			}
		}
		if checkWord(word) != nil {
			return
		}
		d := dictionaryOf([]string{word})
		var w words
		for _, text := range []string{word, before + " " + word + " " + after, strings.Join(list, "-"), " " + strings.ToTitle(strings.Join(list, " "))} {
			if w.cut(text); d.find(&w, 1) == 0 {
				t.Errorf("%q is not found in %q (%q)", word, text, w.list())
			}
		}
		first, _ := utf8.DecodeRuneInString(list[0])
		if classOf(first) != letter {
			return
		}
		if w.cut("x" + list[0]); len(list) == 1 && d.find(&w, 1) != 0 {
			t.Errorf("%q is found in %q", word, "x"+list[0])
		}
	})
}

func links(text string) (found []string) {
	known := func(host string) bool { return host == "intranet.corp" }
	hostsIn(text, known, func(host string) bool {
		found = append(found, host)
		return true
	})
	return found
}

func TestLinks(t *testing.T) {
	for text, want := range map[string]string{
		"no link at all":                "",
		"https://Example.ORG/a?b#c":     "example.org",
		"(see http://example.org:8080)": "example.org",
		"[here](https://example.org/x) and <ftp://files.example.net>": "example.org files.example.net",
		"here (https://evil.com/x)":                                   "evil.com", // Discord's and Telegram's text links
		"example.org (https://evil.com)":                              "example.org evil.com",
		"a prize (https://ok.org/x),evil.com":                         "ok.org evil.com",
		"a prize (https://ok.org/x())evil.com!":                       "ok.org evil.com",
		"a (https://ok.org/x)(http://b.zzz)":                          "ok.org b.zzz",
		"[here](<https://evil.com/a b>)":                              "evil.com", // a Discord link
		"[example.org](https://evil.com \"a title\")":                 "example.org evil.com",
		"[https://ok.org/x](https://evil.com/y)":                      "ok.org evil.com",
		"[x](https://ok.org/x)[y](ftp://evil.zzz)":                    "ok.org evil.zzz",
		"||https://evil.com|| <https://evil.net>":                     "evil.com evil.net",
		"https://ok.org/wiki/Moss_(plant)":                            "ok.org",
		"https://example.org@evil.com/":                               "evil.com",
		"https://a:b@evil.com":                                        "evil.com",
		`https://evil.com\@example.org`:                               "evil.com",
		"https://%65vil.com/":                                         "evil.com",
		"https://example.org.":                                        "example.org",
		"https://[2001:DB8::1]:80/x":                                  "2001:db8::1",
		"http://127.0.0.1/x":                                          "127.0.0.1",
		"https://evil。com":                                            "evil.com",
		"https://ev\u200bil.com":                                      "evil.com",
		"https:///nothing":                                            "",
		"https://a.com/?u=https://b.com":                              "a.com b.com",
		"https://a.com/?u=gopher://evil.zzz":                          "a.com evil.zzz",
		"a.com,b.org;c.net":                                           "a.com b.org c.net",
		"www.whatever.thing":                                          "www.whatever.thing",
		"evil.com.":                                                   "evil.com",
		"_evil.com_ **evil.net** evil.org@ x":                         "evil.com evil.net evil.org",
		"write to me@example.org":                                     "",
		"first.last@example.org, please":                              "",
		"me@example.org/x":                                            "example.org",
		"node.js and file.txt and v1.2.3 and e.g":                     "",
		"see intranet.corp or other.corp":                             "intranet.corp",
		"t.me/joinchat":                                               "t.me",
		"пример.рф":                                                   "пример.рф",
		"xn--e1afmkfd.xn--p1ai":                                       "xn--e1afmkfd.xn--p1ai",
		"well...no":                                                   "",
		"://x":                                                        "",
		"telegram: tg://resolve?domain=x":                             "resolve",
	} {
		got := strings.Join(links(text), " ")
		if text == "https:///nothing" {
			want = ""
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestHosts(t *testing.T) {
	h := newHosts([]string{"Example.org", "*.Sub.example.net", "ru"})
	for host, want := range map[string]bool{
		"example.org": true, "a.b.example.org": true, "badexample.org": false, "example.org.evil.com": false, "example.net": false,
		"x.sub.example.net": true, "mail.ru": true, "ru": true, "": false, "kru": false,
	} {
		if h.contain(host) != want {
			t.Errorf("%q: got %v", host, !want)
		}
	}
	for _, bad := range []string{"", "https://example.org", "example.org/x", "a b", "...", "*", "user@example.org", strings.Repeat("a", 300)} {
		if _, err := parseHost(bad); err == nil {
			t.Errorf("%q is accepted as a host", bad)
		}
	}
}

// FuzzLinks compares the hosts that are found with those of the standard library.
func FuzzLinks(f *testing.F) {
	for _, text := range []string{
		"https://example.org/x", "http://a:b@c.de:80?x", "http://[::1]/", "https://%65vil.com", "HTTPS://X.Y", "http://a_b.c", "a://b://c", "http://é.fr",
		"http://a%2eb.c/", "x.com y.org", "@a.com", "http://a@b@c.com", "https://evil。com",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		found := links(text)
		for _, host := range found {
			if host != plainHost(host) || strings.ContainsAny(host, " /") {
				t.Errorf("%q: the host %q", text, host)
			}
		}
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Contains(u.Hostname(), "%") {
			return
		}
		host := u.Hostname()
		if strings.ContainsFunc(host, func(r rune) bool { return !isHostRune(r) && r != ':' || r == utf8.RuneError }) || host == "" || !utf8.ValidString(text) {
			return // not an address that a browser opens
		}
		if !slices.Contains(found, plainHost(host)) {
			t.Errorf("%q links to %q, got %q", text, plainHost(host), found)
		}
	})
}

// TestLong checks that no message takes long to judge.
func TestLong(t *testing.T) {
	p, err := newRuleSet(&Config{Rules: []Rule{{Name: "all", Words: []string{"never there"}, Patterns: []string{"(a|b)*c$"}, Links: linksListed, Allow: []string{"a"}, Action: ruleDiscard, Private: true}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, piece := range []string{"a", "a ", "a.", "a://", "a://a ", "@a.a ", "://", "a.a@", "x.y/", "never "} {
		m := says("1", "jay", strings.Repeat(piece, core.MaxText/8/len(piece)))
		p.judge(m) // a quadratic algorithm needs many seconds
	}
}

func TestRules(t *testing.T) {
	c := Config{Rules: []Rule{
		{Name: "tell", Words: []string{"bad", "worse", "worst"}, Action: ruleTell, Private: true},
		{Name: "quiet", Words: []string{"worse", "worst"}},
		{Name: "discard", Patterns: []string{"WORST"}, Action: ruleDiscard, Paths: []core.Path{core.MustPath("room/1"), core.MustPath("room/cat")}, Except: []core.Path{core.MustPath("room/1/2")}},
		{Name: "deny", Deny: []string{"evil.com"}, Action: ruleQuiet},
	}}
	p, err := newRuleSet(&c)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ place, text, want string }{
		{"1", "good", ""}, {"1", "bad", "tell"}, {"1", "worse", "quiet"}, {"1", "the Worst", "discard"}, {"1/3", "worst", "discard"},
		{"1/2", "worst", "quiet"}, {"2", "worst", "quiet"}, {"jay", "worst", "tell"}, {"1", "https://www.evil.com", "deny"}, {"1", "evil.com.org", ""},
		{"jay", "evil.com", ""}, {"1", "", ""},
	} {
		got := ""
		if r := p.judge(says(tc.place, "jay", tc.text)); r != nil {
			got = r.Name
		}
		if got != tc.want {
			t.Errorf("%q in %s: got %q, want %q", tc.text, tc.place, got, tc.want)
		}
	}
	scoped := says("9", "jay", "worst")
	scoped.Scopes = []core.Path{core.MustPath("room/cat")}
	if r := p.judge(scoped); r == nil || r.Name != "discard" {
		t.Errorf("rule by scope: got %v", r)
	}
}

// faults returns the faults that Check reports.
func faults(c *Config) (all []string) {
	fault := func(text string, at ...any) { all = append(all, fmt.Sprintf("%v %s", at, text)) }
	c.Check(fault)
	for i := range c.Rules {
		c.Rules[i].Check(fault)
	}
	return all
}

func TestCheck(t *testing.T) {
	many := make([]string, maxWords+1)
	for i := range many {
		many[i] = "a"
	}
	for want, c := range map[string]Config{
		"":                             {Rules: []Rule{{Words: []string{"a"}}, {Links: linksNone}, {Deny: []string{"a.b"}}, {Patterns: []string{`\Qa|b`}}}},
		"matches nothing":              {Rules: []Rule{{Name: "x", Links: "any", Allow: []string{"a.b"}}}},
		"holds no letter":              {Rules: []Rule{{Words: []string{"a", "..."}}}},
		"a word has at most":           {Rules: []Rule{{Words: []string{strings.Repeat("a", 201)}}}},
		"not a regular expression":     {Rules: []Rule{{Patterns: []string{"(a"}}}},
		"is not a regular expression":  {Rules: []Rule{{Patterns: []string{"a)|(b"}}}},
		"a pattern has 1 to":           {Rules: []Rule{{Patterns: []string{strings.Repeat("a", 501)}}}},
		"is not a host":                {Rules: []Rule{{Deny: []string{"https://a"}}}},
		"is not a host; write it like": {Rules: []Rule{{Links: linksNone, Allow: []string{"a/b"}}}},
		"there are 65 rules":           {Rules: make([]Rule, 65)},
		"the rules have 5001 words":    {Rules: []Rule{{Words: many}}},
		"the rules have 101 patterns":  {Rules: []Rule{{Patterns: many[:101]}}},
		"there are 5001 hosts":         {Rules: []Rule{{Deny: many}}},
	} {
		all := faults(&c)
		if want == "" && len(all) > 0 || want != "" && !slices.ContainsFunc(all, func(f string) bool { return strings.Contains(f, want) }) {
			t.Errorf("Check: got %q, want %q", all, want)
		}
		if _, err := New(time.Now, c, nil); (err != nil) != (want != "") {
			t.Errorf("New: got %v, want %q", err, want)
		}
	}
}

// FuzzRule checks that a rule is rejected, or works for any text.
func FuzzRule(f *testing.F) {
	f.Add("free money", `\bwin+\b`, "example.org", "free winnn at www.example.org")
	f.Add("赌场", `(?s)^.{1000}`, "*.a", "a://b.a")
	f.Add("a", `\Qx`, "xn--p1ai", "")
	f.Add("ⅷ", `(?-i)A`, "é.fr", "É.FR")
	f.Fuzz(func(t *testing.T, word, pattern, host, text string) {
		c := Config{Rules: []Rule{
			{Name: "w", Words: []string{word}, Patterns: []string{pattern}}, {Name: "l", Links: linksListed, Allow: []string{host}}, {Name: "d", Deny: []string{host}},
		}}
		bad := len(faults(&c)) > 0
		p, err := newRuleSet(&c)
		if (err != nil) != bad {
			t.Fatalf("checked %v, made %v", bad, err)
		}
		if err != nil {
			return
		}
		p.judge(says("1", "jay", text))
		if r := p.judge(says("1", "jay", "so: "+word+" .")); r == nil || r.Name != "w" && r.Name != "l" && r.Name != "d" {
			t.Errorf("the word %q is not found", word)
		}
		if !strings.ContainsFunc(host, func(r rune) bool {
			return r == ':' || r == '[' || r == ']' || unicode.IsUpper(r) || r == utf8.RuneError
		}) {
			plain, _ := parseHost(host)
			if r := p.judge(says("1", "jay", "https://"+plain+"/")); r == nil {
				t.Errorf("the host %q is not found", host)
			}
		}
	})
}
