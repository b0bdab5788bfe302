package blueprint

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/schema"
	"synthbot/core/secret"
)

// Serving is the table [plugins.blueprint.serve].
type Serving struct {
	Listen  string        `toml:"listen" default:"" doc:"The local address at which other programs may call actions, such as 127.0.0.1:8790; empty turns this off."`
	Token   secret.Secret `toml:"token" example:"env:TOOLS_TOKEN" doc:"The bearer token that the programs send: at least 16 characters."`
	As      core.Path     `toml:"as" example:"telegram/@user/1000" doc:"The user on whose behalf the programs act."`
	Place   core.Path     `toml:"place" kind:"place" example:"telegram/1000" doc:"The place in which the actions work: its permissions apply, and they see what was said there."`
	Actions []string      `toml:"actions" example:"web_*, memory_search" doc:"The actions that may be called, by name; * matches any characters."`
}

const minToken = 16 // the length of the shortest token, in bytes

func (s *Serving) Check(fault func(text string, at ...any)) {
	action.CheckPatterns(s.Actions, fault, "actions")
	if s.Listen == "" {
		return
	}
	if len(s.Token.Reveal()) < minToken {
		fault("is missing or too short; write a secret of at least 16 characters", "token")
	}
	if !s.As.IsPerson() {
		fault("is missing or not a user; write it as telegram/@user/1000", "as")
	}
	if s.Place.IsZero() || s.Place.Interface() != s.As.Interface() {
		fault("is missing, or not in the interface of as; write it as telegram/1000", "place")
	}
	if len(s.Actions) == 0 {
		fault("is missing; name the actions that may be called", "actions")
	}
}

// Server lets other programs call actions over HTTP. Safe for concurrent use.
type Server struct {
	Log     *slog.Logger
	Version string
	Conf    func() Serving // returns the present configuration
	// Offer returns the actions that may be called now.
	Offer func(ctx context.Context) ([]core.Action, error)
	// Call carries out an action. A *core.Error has a text for the caller.
	Call func(ctx context.Context, name string, input json.RawMessage) (output json.RawMessage, err error)
}

const (
	maxInput = 256 << 10        // bytes
	maxCall  = 15 * time.Minute // for the answer to be written
)

// Handler serves the catalogue at /tools and calls at /tools/NAME, at an address.
func (s *Server) Handler(address string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /tools", func(w http.ResponseWriter, r *http.Request) {
		var catalogue json.RawMessage
		actions, err := s.Offer(r.Context())
		if err == nil {
			catalogue, err = export(s.Version, "http://"+address, actions)
		}
		s.answer(w, catalogue, err)
	})
	mux.HandleFunc("POST /tools/{name}", func(w http.ResponseWriter, r *http.Request) {
		output, err := s.call(w, r)
		s.answer(w, output, err)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, "NOT_FOUND", "Use GET /tools or POST /tools/NAME.")
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		token := s.Conf().Token.Reveal()
		if token == "" || subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, http.StatusUnauthorized, "UNAUTHORIZED", "Send the token: Authorization: Bearer TOKEN.")
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func (s *Server) call(w http.ResponseWriter, r *http.Request) (json.RawMessage, error) {
	name := r.PathValue("name")
	actions, err := s.Offer(r.Context())
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(actions, func(a core.Action) bool { return a.Name == name }) {
		return nil, errUnknownTool
	}
	// If this fails, the server's own deadline applies.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(maxCall))
	input, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxInput))
	if err != nil {
		return nil, err
	}
	if len(input) == 0 {
		input = []byte("{}")
	}
	if schema.Nesting(input) > maxDepth || !json.Valid(input) {
		return nil, core.Errorf(core.Invalid, "The body must be the input, as one JSON value.")
	}
	s.Log.Info("tool called", "tool", name, "user", s.Conf().As)
	return s.Call(r.Context(), name, input)
}

var errUnknownTool = errors.New("unknown tool")

// statuses contains the HTTP status and error code of each kind of error.
var statuses = map[core.ErrorKind]struct {
	status int
	code   string
}{
	core.Invalid:   {http.StatusBadRequest, "INVALID_INPUT"},
	core.Forbidden: {http.StatusForbidden, "FORBIDDEN"},
	core.Occupied:  {http.StatusTooManyRequests, "RATE_LIMIT"},
	core.Temporary: {http.StatusServiceUnavailable, "UNAVAILABLE"},
	core.Broken:    {http.StatusInternalServerError, "FAILED"},
	core.Unsure:    {http.StatusInternalServerError, "OUTCOME_UNKNOWN"},
	core.Mismatch:  {http.StatusBadGateway, "OUTPUT_MISMATCH"},
}

// answer writes an output, or an error by the protocol of blueprints.
func (s *Server) answer(w http.ResponseWriter, output json.RawMessage, err error) {
	var large *http.MaxBytesError
	var known *core.Error
	switch {
	case err == nil:
		if len(output) == 0 {
			output = json.RawMessage("null")
		}
		writeJSON(w, http.StatusOK, output)
	case errors.Is(err, errUnknownTool):
		refuse(w, http.StatusNotFound, "NOT_FOUND", "Unknown tool; GET /tools lists all.")
	case errors.As(err, &large):
		refuse(w, http.StatusRequestEntityTooLarge, "INVALID_INPUT", "The input is too large.")
	case errors.As(err, &known):
		if known.After > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(known.After.Seconds()))))
		}
		how, ok := statuses[known.Kind]
		if !ok {
			how = statuses[core.Broken]
		}
		refuse(w, how.status, how.code, known.Text)
	default:
		s.Log.Warn("tool not called", "err", err)
		refuse(w, http.StatusInternalServerError, "FAILED", "That did not work.")
	}
}

func refuse(w http.ResponseWriter, status int, code, text string) {
	writeJSON(w, status, core.JSON(map[string]any{
		"success": false, "error": map[string]string{"code": code, "message": text},
	}))
}

func writeJSON(w http.ResponseWriter, status int, body json.RawMessage) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a caller that went away does not read it
}

// Export returns actions as a blueprint for other agents. The plugin makes the same actions from
// it. version is the program's; if it is not a semantic version, 0.0.0+version is written.
func Export(version string, actions []core.Action) ([]byte, error) {
	return export(version, "", actions)
}

// export is like Export. address is where a Server serves the actions; "" if none does.
func export(version, address string, actions []core.Action) ([]byte, error) {
	tools := make([]Tool, len(actions))
	for i := range actions {
		t, err := exported(&actions[i])
		if err != nil {
			return nil, fmt.Errorf("action %s: %w", actions[i].Name, err)
		}
		if address != "" {
			t.Endpoint = endpoint{Method: http.MethodPost, Path: "/tools/" + t.Name}
		}
		tools[i] = t
	}
	if !semantic().MatchString(version) {
		version = "0.0.0+" + cmp.Or(version, "unknown")
	}
	file := struct {
		Name         string         `json:"name"`
		Type         string         `json:"type"`
		Version      string         `json:"version"`
		Description  string         `json:"description"`
		Endpoint     string         `json:"endpoint,omitempty"`
		Capabilities map[string]any `json:"capabilities"`
	}{"synthbot", "agent", version, "What this bot can do.", address, map[string]any{
		"interfaces": []string{"chat"}, "tools": tools,
	}}
	data, err := json.MarshalIndent(file, "", "  ")
	return append(data, '\n'), err
}

func exported(a *core.Action) (Tool, error) {
	if !json.Valid(a.Schema) || a.Output != nil && !json.Valid(a.Output) {
		return Tool{}, errors.New("a schema is not JSON")
	}
	var schema struct{ Title string }
	_ = json.Unmarshal(a.Schema, &schema) // a schema may be true or false
	t := Tool{
		Name: a.Name, Title: schema.Title, Description: a.Brief, Input: a.Schema, Output: a.Output,
		Annotations: Annotations{ReadOnly: a.ReadOnly(), Idempotent: a.Idempotent},
		Security:    Security{Confirm: a.Confirm},
	}
	rest := strings.TrimSpace(a.Examples.Description)
	if rest != "" {
		t.Description = strings.TrimSuffix(a.Brief, ".") + ". " + rest
	}
	if a.Allows() != core.PermissionConcerned { // other programs do not know that value
		t.Security.Permission = string(a.Allows())
	}
	for _, x := range a.Examples.Examples {
		raw, err := json.Marshal(x)
		if err != nil {
			return t, fmt.Errorf("example %q: %w", x.Scenario, err)
		}
		t.Examples = append(t.Examples, raw)
	}
	t.Meta.Own = &exportedAction{
		Brief: a.Brief, Similes: a.Similes, Examples: a.Examples, DependsOn: a.DependsOn, Effects: a.Effects,
		Essential: a.Essential, External: a.External, Outside: a.Outside,
		Permission: a.Permission, Concerns: a.Concerns, Confirm: a.Confirm,
		Timeout: span(a.Timeout), Retries: a.Retries, Idempotent: a.Idempotent, Busy: a.Busy,
		RateCount: a.RateLimit.Count, RatePer: span(a.RateLimit.Per), Cache: span(a.Cache),
	}
	return t, nil
}
