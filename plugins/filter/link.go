package filter

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

const maxHost = 253 // the maximum length of a host name, in bytes

// parseHost reads a host of a rule: a name, which includes all hosts below it.
func parseHost(text string) (string, error) {
	host := strings.TrimPrefix(strings.TrimSpace(text), "*.")
	foreign := func(r rune) bool { return !isHostRune(r) && r != ':' && r != '[' && r != ']' }
	if host == "" || len(host) > maxHost || strings.ContainsFunc(host, foreign) {
		return "", fmt.Errorf("%q is not a host; write it like example.org, without scheme and path", text)
	}
	host = plainHost(host)
	if host == "" {
		return "", fmt.Errorf("%q is not a host; write it like example.org", text)
	}
	return host, nil
}

// hosts is a set of hosts, each with all below it.
type hosts map[string]bool

// newHosts makes a set of hosts that were checked.
func newHosts(list []string) hosts {
	h := make(hosts, len(list))
	for _, text := range list {
		host, _ := parseHost(text)
		h[host] = true
	}
	return h
}

// contain reports whether the host is in the set, or below one that is.
func (h hosts) contain(host string) bool {
	for host != "" {
		if h[host] {
			return true
		}
		_, host, _ = strings.Cut(host, ".")
	}
	return false
}

// hostsIn calls use for the host of each link in the text, until it returns false. known reports whether a bare host is
// a link although its ending is unusual. A host that cannot be read is "".
func hostsIn(text string, known func(host string) bool, use func(host string) bool) {
	for {
		i := strings.Index(text, "://")
		if i < 0 {
			bareHosts(text, known, use)
			return
		}
		scheme := schemeStart(text[:i])
		if !bareHosts(text[:scheme], known, use) {
			return
		}
		text = text[i+len("://"):]
		if scheme == i {
			continue // there is no scheme
		}
		end := strings.IndexFunc(text, endsAuthority)
		if end < 0 {
			end = len(text)
		}
		if !use(hostOf(text[:end])) {
			return
		}
		text = skipLink(text[end:])
	}
}

// schemeStart returns where the scheme begins that the text ends with.
func schemeStart(text string) int {
	return len(strings.TrimRightFunc(text, func(r rune) bool {
		return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) || r == '+' || r == '-' || r == '.'
	}))
}

func endsAuthority(r rune) bool {
	return strings.ContainsRune("/?#\\<>\"`|{}", r) || unicode.IsSpace(r) || unicode.IsControl(r)
}

// skipLink returns what follows a link's path: it ends at what looks like another link,
// and at a parenthesis, because Markdown puts addresses in parentheses.
func skipLink(text string) string {
	for i, r := range text {
		if r == ':' && strings.HasPrefix(text[i:], "://") {
			return text[schemeStart(text[:i]):]
		}
		if strings.ContainsRune("<>\"`)", r) || unicode.IsSpace(r) {
			return text[i:]
		}
	}
	return ""
}

// hostOf returns the host of an authority, as browsers read it: what precedes an @ is a
// user name, and percent signs are decoded.
func hostOf(authority string) string {
	authority = authority[strings.LastIndexByte(authority, '@')+1:]
	if plain, err := url.PathUnescape(authority); err == nil {
		authority = plain
	}
	if strings.HasPrefix(authority, "[") {
		inside, _, _ := strings.Cut(authority, "]")
		return plainHost(inside[1:])
	}
	end := strings.IndexFunc(authority, func(r rune) bool { return !isHostRune(r) })
	if end >= 0 {
		authority = authority[:end]
	}
	return plainHost(authority)
}

// isHostRune reports whether a host may contain the character. Dots of other scripts are
// dots, and invisible characters are left out later.
func isHostRune(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_' || r == '.'
	}
	return isDot(r) || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) ||
		unicode.Is(unicode.So, r) || unicode.Is(unicode.Cf, r)
}

func isDot(r rune) bool { return r == '.' || r == '\u3002' || r == '\uff0e' || r == '\uff61' }

// plainHost returns the normal spelling of a host.
func plainHost(host string) string {
	host = strings.Map(func(r rune) rune {
		switch {
		case isDot(r):
			return '.'
		case unicode.Is(unicode.Cf, r):
			return -1
		}
		return fold(r)
	}, host)
	return strings.Trim(host, ".[]-_")
}

// bareHosts calls use for each host without a scheme, unless it is a part of a mail
// address. It returns false if use did.
func bareHosts(text string, known func(string) bool, use func(string) bool) (next bool) {
	last := strings.LastIndexFunc(text, isDot)
	for at := 0; at < last; {
		start := strings.IndexFunc(text[at:], isHostRune)
		if start < 0 {
			return true
		}
		start += at
		end := start + strings.IndexFunc(text[start:], func(r rune) bool { return !isHostRune(r) })
		if end < start {
			end = len(text)
		}
		at = end
		if isMail(text, start, end) {
			continue
		}
		host := plainHost(text[start:end])
		if !strings.Contains(host, ".") || strings.Contains(host, "..") || len(host) > maxHost {
			continue
		}
		if isLink(host, known) && !use(host) {
			return false
		}
	}
	return true
}

// isMail reports whether the text from start to end is a part of a mail address: next to
// an @, and not followed by a path.
func isMail(text string, start, end int) bool {
	behind, _ := utf8.DecodeRuneInString(text[min(end+1, len(text)):])
	return start > 0 && text[start-1] == '@' && !strings.HasPrefix(text[end:], "/") ||
		strings.HasPrefix(text[end:], "@") && isHostRune(behind) && behind != utf8.RuneError
}

// isLink reports whether chat clients turn a bare host into a link.
func isLink(host string, known func(string) bool) bool {
	if strings.HasPrefix(host, "www.") || known(host) {
		return true
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	return strings.HasPrefix(last, "xn--") || last != "" && strings.Contains(endings, " "+last+" ")
}

// endings lists the top-level domains that make a bare host a link: all country codes and other common ones.
const endings = " ac ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs bt bw" +
	" by bz ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg er es et eu fi fj fk" +
	" fm fo fr ga gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie il im in io iq ir is it" +
	" je jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb lc li lk lr ls lt lu lv ly ma mc md me mg mh mk ml mm mn mo" +
	" mp mq mr ms mt mu mv mw mx my mz na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw" +
	" py qa re ro rs ru rw sa sb sc sd se sg sh si sk sl sm sn so sr ss st su sv sx sy sz tc td tf tg th tj tk tl tm" +
	" tn to tr tt tv tw tz ua ug uk us uy uz va vc ve vg vi vn vu wf ws ye yt za zm zw рф бел укр срб мкд қаз 中国 中國" +
	" 台灣 香港 한국 भारत com org net edu gov mil int info biz name pro mobi asia cat jobs tel travel xxx aero coop museum" +
	" post arpa onion academy app art bar bet bid blog buzz casino cash chat click cloud club code codes company" +
	" community cool dating deals dev digital direct discount download earth email events exchange expert express" +
	" faith farm finance fit fun fund fyi game games gift gold group guru help host house icu ink institute land" +
	" legal life link live loan lol love ltd market media men mom money moe monster network news ninja one online" +
	" page party photos pics pictures pink plus poker porn press promo pub pw quest racing red rent report review rip" +
	" rocks run sale sbs science sex sexy shop show site social software solutions space sport store stream studio" +
	" support surf systems tax team tech tips today tools top trade trading vip video wang watch webcam website wiki" +
	" win wine work works world wtf xyz yoga zone gle goo "
