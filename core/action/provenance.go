package action

import (
	"encoding/hex"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"synthbot/core"
	"synthbot/core/schema"
	"synthbot/core/txt"
)

// Provenance tells who wrote what the prompt of a plan held, besides the new messages of the
// people who caused the turn. The zero value means that it held nothing else.
//
// Text has the rank of its author; a stranger's text has none. All texts of a prompt can influence the plan. So a step
// must be confirmed if it needs a higher rank than the author of one of them has, or if it changes something and not
// all of them are by people of a higher rank. After a stranger's text it must also be confirmed if it requests an
// address that nobody here wrote. Other people's messages do not matter for addresses: they may request them
// themselves.
type Provenance struct {
	Strangers bool `json:"strangers,omitempty"` // pages, files, forwarded and quoted text, answers of other programs
	// Own says that the bot's own messages count as a stranger's text: it wrote them after
	// reading one, or no user's words asked for what comes next. That alone does not make
	// the bot's next message a stranger's text, or it would never end.
	Own    bool      `json:"own,omitempty"`
	Others bool      `json:"others,omitempty"` // messages of other people in the bot's places
	Rank   core.Rank `json:"rank,omitempty"`   // the lowest of those other people
	// Addresses holds those that the people who caused the turn wrote, or that a search
	// found, as canonical returns them.
	Addresses []string `json:"addresses,omitempty"`
}

// AddLine adds a message of another person.
func (r *Provenance) AddLine(rank core.Rank) {
	if !r.Others {
		r.Rank = rank
	}
	r.Others, r.Rank = true, min(r.Rank, rank)
}

// AddWords adds the addresses in a text of the people who caused the turn.
func (r *Provenance) AddWords(text string) {
	for _, form := range addressForms(text) {
		for word := range strings.FieldsSeq(form) {
			if !strings.ContainsAny(word, ".:[/") { // every address has one of them
				continue
			}
			r.addAddresses(addressPattern().FindAllString(word, -1)...)
			isMark := func(r rune) bool { return !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.So) }
			inner := strings.TrimFunc(word, isMark)
			if strings.Contains(inner, ":") { // with any scheme, or a host with a port
				r.addAddresses(inner)
			}
		}
	}
}

func (r *Provenance) addAddresses(addresses ...string) {
	for _, address := range addresses {
		a := canonical(address)
		if !slices.Contains(r.Addresses, a) {
			r.Addresses = append(r.Addresses, a)
		}
	}
}

// AddOutput adds the result of a step, which the prompts of later rounds hold. private says that the place is private.
func (r *Provenance) AddOutput(s *Snapshot, d StepResult, private bool) {
	def, ok := s.Resolve(d.Action)
	ran := []core.Progress{core.ProgressDone, core.ProgressFailed, core.ProgressUnknown}
	if !ok || !slices.Contains(ran, d.Progress) {
		return
	}
	if def.Has(core.EffectReadsForeign) {
		r.Strangers = true
	}
	if def.Has(core.EffectReadsChat) && !private {
		r.AddLine(core.RankMember)
	}
	if def.Effects&core.EffectFinds != 0 {
		v, _ := schema.Decode(d.Output)
		walk(v, "", func(key, text string) {
			if key == "url" {
				r.addAddresses(addressForms(text)...)
			}
		})
	}
}

// confirmReason says why a step must be confirmed because of what the prompt held; "" if it need not be.
func (e *execution) confirmReason(t task, d *Definition, payload map[string]any) string {
	if d.IsMessage() {
		return ""
	}
	r := e.Read
	r.Strangers = r.Strangers || r.Own
	for _, name := range t.way { // the result that it follows from may hold a stranger's text
		if cause, ok := e.Snapshot.Resolve(name); !ok || cause.Has(core.EffectReadsForeign) {
			r.Strangers = true
		}
	}
	need, _ := e.Snapshot.needs(d, e.Who, payload)
	if need == core.RankBot { // in the bot's own turns only
		need = core.RankMember
	}
	if d.Has(core.EffectRanked | core.EffectRewrites) { // a higher rank may do more with it
		need = max(need, e.Who.rank())
	}
	changes := d.Has(core.EffectChanges)
	switch {
	case r.Strangers && (need > core.RankMember || changes):
		return "This was planned after reading a text by somebody else."
	case r.Strangers && d.Has(core.EffectRequests) &&
		!r.knowsAddresses(decodePayload(t.step.Payload), d.Has(core.EffectReadsForeign)):
		return "This was planned after reading a text by somebody else, and nobody here wrote the address."
	case r.Others && (r.Rank < need || changes && r.Rank <= e.Who.rank()):
		return "This was planned after reading what others wrote here."
	}
	return ""
}

// knowsAddresses reports whether all addresses of a payload are in Addresses. foreign says that the payload goes to a
// program of others, which may accept web and mail addresses under any key and without a scheme.
func (r *Provenance) knowsAddresses(payload map[string]any, foreign bool) bool {
	known := true
	walk(payload, "", func(key, text string) {
		for _, form := range addressForms(text) {
			for _, address := range addresses(key, form, foreign) {
				known = known && slices.Contains(r.Addresses, canonical(address))
			}
		}
	})
	return known
}

// walk visits all strings of a decoded JSON value, with the key of each.
func walk(v any, key string, visit func(key, text string)) {
	switch v := v.(type) {
	case string:
		visit(key, v)
	case []any:
		for _, e := range v {
			walk(e, key, visit)
		}
	case map[string]any:
		for k, e := range v {
			visit("", k)
			walk(e, k, visit)
		}
	}
}

// addressPattern matches what programs may accept as an address. It matches rather too much:
// a file name like "notes.md" may be a host.
var addressPattern = sync.OnceValue(func() *regexp.Regexp {
	const (
		label  = `[\p{L}\p{M}\p{N}\p{So}_-]+`
		dotted = `(` + label + `\.)+`
		last   = `[\p{L}\p{So}][\p{L}\p{M}\p{N}\p{So}_-]+` // not "1.5" or "e.g."
		number = `(0x[0-9a-f]+|\d+)`
		ip     = number + `(\.` + number + `){3}|\[[0-9a-f]*:[0-9a-f:.]*\]`
	)
	return regexp.MustCompile(`(?i)` + strings.Join([]string{
		`[a-z][a-z0-9+.-]*://\S+`,
		`\b(https?|ftp|wss?|file|data|javascript):\S+`,
		`[^\s@<>()\[\],;:"']+@` + dotted + label + `([:/]\S*)?`,
		`(` + dotted + label + `|\blocalhost)\.?(:\d+)?[/?]\S+`,
		`(` + dotted + last + `|\blocalhost\b|` + ip + `)\.?(:\d+)?([/?#]\S*)?`,
		`\b\p{L}` + label + `:\d+/\S*`,
	}, "|"))
})

var (
	// Keys whose values may be addresses, and those whose values are addresses even as a single word.
	likelyKey = txt.Pattern(`(?i)ur[il]|href|link|host|domain|address|endpoint|webhook|site|page`)
	hostKey   = txt.Pattern(`(?i)ur[il]|href|link|host|domain|endpoint|webhook`)
	escape    = txt.Pattern(`(?i)%(2[1-9a-f]|[3-9a-f][0-9a-f])`) // except for white space
)

// addressForms returns the text and, if it differs, the text as lenient parsers of addresses read it: without escapes
// and invisible characters, in the compatibility form of Unicode, with IDNA's dots as dots and backslashes as slashes.
func addressForms(text string) []string {
	plain := text
	if strings.Contains(text, "%") {
		plain = escape().ReplaceAllStringFunc(text, func(code string) string {
			b, _ := hex.DecodeString(code[1:])
			return string(b)
		})
	}
	tables := []*unicode.RangeTable{unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point}
	plain = strings.Map(func(r rune) rune {
		switch {
		case r == '\\':
			return '/'
		case r < unicode.MaxASCII:
			return r
		case r == '。':
			return '.'
		case unicode.In(r, tables...):
			return -1
		}
		return r
	}, norm.NFKC.String(plain))
	if plain == text {
		return []string{text}
	}
	return []string{text, plain}
}

// addresses returns the addresses in the value of a key: the whole value if the key says that it is an address; else
// all with a scheme, and, if foreign or if the key suggests an address, also those without one.
func addresses(key, text string, foreign bool) []string {
	isAddress := slices.Contains([]string{"url", "uri", "href"}, strings.ToLower(key))
	oneWord := foreign && hostKey().MatchString(key) && !strings.ContainsAny(text, " \t\n")
	if text != "" && (isAddress || oneWord) {
		return []string{text}
	}
	found := addressPattern().FindAllString(text, -1)
	if foreign || likelyKey().MatchString(key) {
		return found
	}
	return slices.DeleteFunc(found, func(a string) bool { return !strings.Contains(a, "://") })
}

// canonical returns the form in which addresses are compared: without scheme, www., fragment,
// final slash and the punctuation that follows it.
func canonical(address string) string {
	address = strings.TrimRight(strings.TrimSpace(address), ".,;:!?)]}>\"'*_`»”’…")
	if !strings.Contains(address, "://") {
		address = "https://" + strings.TrimPrefix(address, "//")
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return address
	}
	host := strings.TrimPrefix(strings.ToLower(u.Host), "www.")
	if u.User != nil {
		host = u.User.String() + "@" + host
	}
	path := strings.TrimRight(u.Path, "/")
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	return host + path
}
