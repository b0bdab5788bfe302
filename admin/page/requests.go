package page

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"synthbot/admin"
	"synthbot/admin/page/template"
	"synthbot/core"
)

// policy lets a browser load only what this program serves.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Size limits in bytes.
const (
	maxForm  = 2 << 20 // two persona texts in which each byte is encoded as three
	maxCard  = 8 << 20 // a character card
	maxAgent = 120     // a kept User-Agent
)

const (
	cardsPath  = "/personas/import" // where browsers send cards
	cookieName = "synthbot_session"
	tooLarge   = "That is too much at once: go back, and make it smaller."
)

// withHeaders sets the headers of every response, and refuses requests from other sites.
func (p *Page) withHeaders(h http.Handler) http.Handler {
	return admin.LocalOnly(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Content-Security-Policy", policy)
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("X-Frame-Options", "DENY")
		head.Set("Referrer-Policy", "same-origin") // no-referrer would make the Origin of forms "null"
		head.Set("Cross-Origin-Opener-Policy", "same-origin")
		head.Set("Cross-Origin-Resource-Policy", "same-origin")
		head.Set("Cache-Control", "no-store")
		if r.Method != http.MethodGet && r.Method != http.MethodHead && !fromHere(r) {
			http.Error(w, "this form came from another site", http.StatusForbidden)
			return
		}
		limit := int64(maxForm)
		if r.URL.Path == cardsPath {
			limit = maxCard + maxForm
		}
		r.Body = http.MaxBytesReader(w, r.Body, limit)
		h.ServeHTTP(w, r)
	}))
}

// fromHere reports whether this page sent a form.
func fromHere(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	if site != "" && site != "same-origin" {
		return false
	}
	origin, err := url.Parse(r.Header.Get("Origin"))
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return err == nil && origin.Scheme == scheme && origin.Host == r.Host
}

// visit is one request of a session.
type visit struct {
	*http.Request
	w       http.ResponseWriter
	session *session
	now     time.Time
}

// handler serves a visit. A userError is shown to the admin; any other error is logged.
type handler func(v *visit) error

// userError is an error that the admin can fix.
type userError struct {
	status int
	text   string
}

func (t userError) Error() string { return t.text }

func badRequest(text string) error { return userError{http.StatusBadRequest, text} }

// withSession requires a session and, for forms, the session's CSRF token.
func (p *Page) withSession(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := p.visitor(r)
		isOurs := func(token string) bool { return subtle.ConstantTimeCompare([]byte(token), []byte(s.csrf)) == 1 }
		var large *http.MaxBytesError
		switch {
		case s == nil && r.Method == http.MethodGet && r.URL.Path == "/":
			http.Redirect(w, r, "/login", http.StatusSeeOther)
			return
		case s == nil:
			const text = "You are not logged in. Run `synthbot page` in a terminal for a link."
			p.refuse(w, r, http.StatusUnauthorized, text)
			return
		case errors.As(parseForm(r), &large):
			p.refuse(w, r, http.StatusRequestEntityTooLarge, tooLarge)
			return
		case r.Method == http.MethodPost && !isOurs(r.PostFormValue("csrf")):
			p.refuse(w, r, http.StatusForbidden, "This form is too old. Load the page again.")
			return
		}
		v := &visit{Request: r, w: w, session: s, now: p.Clock()}
		if err := h(v); err != nil {
			p.fail(v, err)
		}
	})
}

func parseForm(r *http.Request) error {
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		return r.ParseMultipartForm(maxCard + maxForm)
	}
	return r.ParseForm()
}

func (p *Page) visitor(r *http.Request) *session {
	c, err := r.Cookie(cookieOf(r))
	if err != nil {
		return nil
	}
	return p.logins.session(c.Value)
}

func (p *Page) fail(v *visit, err error) {
	var t userError
	switch {
	case errors.As(err, &t):
	case errors.Is(err, core.ErrUnknown), errors.Is(err, core.ErrForgotten):
		t = userError{http.StatusNotFound, "This memory is no longer available."}
	default:
		p.Log.Error("the page failed", "path", v.URL.Path, "err", err)
		t = userError{http.StatusInternalServerError, "That did not work; see the log."}
	}
	p.refuse(v.w, v.Request, t.status, t.text)
}

func (p *Page) refuse(w http.ResponseWriter, r *http.Request, status int, text string) {
	p.render(w, r, status, "refused", pageData{Title: "Not possible", Data: text})
}

// pageData is the data of every page's template.
type pageData struct {
	Title, CSRF string // CSRF is "" without a session
	Menu        []menuEntry
	Note        string // the result of the last form
	Data        any
}

type menuEntry struct {
	Path, Name string
	Here       bool // it is the current page
}

func (p *Page) show(v *visit, name, title, here string, data any) error {
	menu := []menuEntry{
		{Path: "/", Name: "Now"}, {Path: "/talk", Name: "Conversations"}, {Path: "/memories", Name: "Memories"},
		{Path: "/knowledge", Name: "Knowledge"}, {Path: "/reminders", Name: "Reminders"},
		{Path: "/personas", Name: "Personas"},
		{Path: "/charts", Name: "Charts"}, {Path: "/catalogue", Name: "Catalogue"},
		{Path: "/settings", Name: "Settings"}, {Path: "/log", Name: "Log"}, {Path: "/sessions", Name: "Sessions"},
	}
	for i := range menu {
		menu[i].Here = menu[i].Path == here
	}
	s := pageData{Title: title, CSRF: v.session.csrf, Menu: menu, Data: data}
	v.session.locked(func() { s.Note, v.session.note = v.session.note, "" })
	p.render(v.w, v.Request, http.StatusOK, name, s)
	return nil
}

func (p *Page) render(w http.ResponseWriter, r *http.Request, status int, name string, s pageData) {
	var b bytes.Buffer
	if err := p.execute(r.Context(), &b, name, "layout", s); err != nil {
		p.Log.Error("the page cannot be shown", "name", name, "err", err)
		http.Error(w, "that cannot be shown; see the log", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}

// execute executes a template of a page. The first execution finds out which names are needed. If there are any, they
// are looked up together, and the template is executed again.
func (p *Page) execute(ctx context.Context, b *bytes.Buffer, page, name string, data any) error {
	var paths []core.Path
	var known map[core.Path]string
	functions := p.functions(func(path core.Path) string {
		if !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
		return known[path]
	})
	err := p.templateSets[page].Execute(b, name, data, functions)
	if err != nil || len(paths) == 0 {
		return err
	}
	known = p.Bot.Names(ctx, paths...)
	b.Reset()
	return p.templateSets[page].Execute(b, name, data, functions)
}

// functions returns the functions with which templates format values.
func (p *Page) functions(name func(core.Path) string) template.Funcs {
	return template.Funcs{
		"name":    func(v any) string { return name(v.(core.Path)) },
		"date":    func(v any) string { return p.formatDate(v.(time.Time)) },
		"hour":    func(v any) string { return p.formatHour(v.(time.Time)) },
		"span":    func(v any) string { return formatDuration(v.(time.Duration)) },
		"grouped": func(v any) string { return groupDigits(v.(int64)) },
		"size":    func(v any) string { return formatBytes(v.(uint64)) },
		"indent":  func(v any) string { return indentJSON(v.(json.RawMessage)) },
		"cost":    func(v any) string { return fmt.Sprintf("%.2f", v) },
		"len":     func(v any) string { return strconv.Itoa(reflect.ValueOf(v).Len()) },
		"q":       func(v any) string { return url.QueryEscape(fmt.Sprint(v)) },
	}
}

func groupDigits(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

// formatBytes formats a number of bytes; "" for 0.
func formatBytes(bytes uint64) string {
	switch {
	case bytes == 0:
		return ""
	case bytes < 1e9:
		return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(bytes)/1e9)
}

// indentJSON returns JSON on several lines; "" if it is invalid.
func indentJSON(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return ""
	}
	return b.String()
}

func (v *visit) redirect(path string, query ...string) error {
	q := make(url.Values)
	for i := 0; i+1 < len(query); i += 2 {
		q.Set(query[i], query[i+1])
	}
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	http.Redirect(v.w, v.Request, path, http.StatusSeeOther)
	return nil
}

// atPlace calls h with the place of a visit.
func atPlace(h func(v *visit, place core.Path) error) handler {
	return func(v *visit) error {
		place, err := core.ParsePath(v.FormValue("place"))
		if err != nil {
			return badRequest("That is not a place.")
		}
		return h(v, place)
	}
}

// atAnyPlace is atPlace for visits that need not name a place; then h gets the zero Path.
func atAnyPlace(h func(v *visit, place core.Path) error) handler {
	return func(v *visit) error {
		if v.FormValue("place") == "" {
			return h(v, core.Path{})
		}
		return atPlace(h)(v)
	}
}

// cookieOf returns the name of the session cookie. It contains the port, because browsers share cookies between the
// ports of a machine, and each port may be another bot.
func cookieOf(r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		return cookieName + "_" + port
	}
	return cookieName
}

func (p *Page) loginForm(w http.ResponseWriter, r *http.Request) {
	if p.visitor(r) != nil {
		http.Redirect(w, r, "/#main", http.StatusSeeOther) // replaces the token in the address
		return
	}
	p.render(w, r, http.StatusOK, "login", pageData{Title: "Log in"})
}

// login exchanges a ticket for a session. The ticket is in the form, never in a URL.
func (p *Page) login(w http.ResponseWriter, r *http.Request) {
	agent := r.UserAgent()
	agent = strings.ToValidUTF8(agent[:min(len(agent), maxAgent)], "")
	cookie, wait := p.logins.login(strings.TrimSpace(r.PostFormValue("token")), agent)
	if wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds())+1))
		const text = "Too many wrong tokens. Wait a few minutes, or run `synthbot page` for a new one."
		p.refuse(w, r, http.StatusTooManyRequests, text)
		return
	}
	address, _, _ := net.SplitHostPort(r.RemoteAddr)
	if cookie == "" {
		p.Log.Warn("login refused", "address", address)
		const text = "That token is wrong, used already, or older than ten minutes. Run `synthbot page` for a new one."
		p.render(w, r, http.StatusForbidden, "login", pageData{Title: "Log in", Data: text})
		return
	}
	p.Log.Info("login", "address", address)
	http.SetCookie(w, &http.Cookie{
		Name: cookieOf(r), Value: cookie, Path: "/", HttpOnly: true, Secure: r.TLS != nil,
		SameSite: http.SameSiteStrictMode, MaxAge: int(sessionTime.Seconds()),
	})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (p *Page) logout(v *visit) error {
	p.logins.revoke(v.session.id, false)
	http.SetCookie(v.w, &http.Cookie{
		Name: cookieOf(v.Request), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: -1,
	})
	return v.redirect("/login")
}

// buttonCommands holds the commands that buttons may execute; true if they may show what users wrote in the place.
var buttonCommands = map[string]bool{
	"activation": false, "engine": false, "knowledge": true, "log": false, "mute": false, "pair": false,
	"persona": false, "reload": false, "remind": true, "set": false, "sleep": false, "switch": false, "unmute": false,
	"unteach": true, "wake": false,
}

// do executes the command of a button. The next page shows its answer, or why it was refused.
func (p *Page) do(v *visit, place core.Path) error {
	name := v.PostFormValue("command")
	quotes, known := buttonCommands[name]
	if !known {
		return badRequest("No button does that.")
	}
	if quotes {
		if err := p.mustBeOpen(v, place); err != nil {
			return err
		}
	}
	answer, err := p.Bot.Do(v.Context(), place, name, v.arguments())
	var said *core.Error
	switch {
	case errors.As(err, &said):
		answer = "Not done: " + said.Text
	case err != nil:
		return err
	default:
		p.Log.Info("command by an admin on the page", "command", name, "path", place, "session", v.session.id)
	}
	v.note(answer)
	return v.redirectBack(v.PostFormValue("back"))
}

// arguments returns the arguments of a button's command, by their names.
func (v *visit) arguments() map[string]string {
	args := make(map[string]string)
	for key := range v.PostForm {
		arg, ok := strings.CutPrefix(key, "arg-")
		if ok {
			args[arg] = normalizeLines(v.PostFormValue(key))
		}
	}
	return args
}

func (v *visit) note(text string) {
	v.session.locked(func() { v.session.note = strings.ReplaceAll(text, "`", "") })
}

func (v *visit) redirectBack(to string) error {
	u, err := url.Parse(to)
	if err != nil {
		return v.redirect("/")
	}
	local := url.URL{Path: path.Clean("/" + u.Path), RawQuery: u.RawQuery}
	return v.redirect(local.String())
}
