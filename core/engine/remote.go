package engine

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/anthropic"

	"synthbot/core"
	"synthbot/core/llm"
	"synthbot/core/txt"
)

// remote is one model behind a network, as a llm.Model. Safe for concurrent
// use.
type remote struct {
	cfg    Config
	preset preset
	model  llms.Model
	redact *strings.Replacer

	transport *transport
	// form is the strictest one that the server has not refused.
	form    atomic.Int32
	broken  atomic.Int32 // answers in a row that came only without a schema, after a status of 500
	learned learnedLimits
}

// neutral is the model name that the library sees. Its own guesses about names
// (which take no system message, which take no temperature) are out of date;
// the transport writes the real one.
const neutral = "model"

func newRemote(cfg Config, t *transport) (*remote, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	p, _ := presetOf(cfg.Provider)
	if p.name == "openai" && cfg.BaseURL != "" && !strings.Contains(cfg.BaseURL, "api.openai.com") {
		p.maxField, p.form = "max_tokens", formSchema // servers of other makers often know no other
	}
	r := &remote{cfg: cfg, preset: p, redact: core.Conceal(cfg.APIKey), transport: t}
	form := map[string]requestForm{
		structureAuto: p.form, "strict": formStrict, "schema": formSchema, "object": formObject, "off": formWords,
	}
	r.form.Store(int32(form[cfg.Structure]))
	var err error
	r.model, err = p.client(cfg, t)
	return r, err
}

// client makes what writes the requests. Everything that it would take from the
// environment is given, so that no other program's settings leak in.
func (p preset) client(cfg Config, t *transport) (llms.Model, error) {
	endpoint, err := cfg.endpoint(p)
	if err != nil {
		return nil, fmt.Errorf("base_url: %w", err)
	}
	if p.name != "anthropic" {
		return openAIClient{t, endpoint}, nil
	}
	key := cmp.Or(cfg.APIKey.Reveal(), "none") // it insists on one; the transport takes it out again
	return anthropic.New(anthropic.WithToken(key), anthropic.WithBaseURL(endpoint), anthropic.WithModel(neutral),
		anthropic.WithHTTPClient(&http.Client{Transport: t}))
}

// Limits implements llm.Model.
func (r *remote) Limits() llm.Limits {
	l := r.learned.limits(r.cfg.Limits(), r.transport.clock())
	forms := map[requestForm]llm.Structure{formStrict: llm.StructureStrict, formSchema: llm.StructureSchema}
	l.Schemas = forms[requestForm(r.form.Load())]
	return l
}

// Generate implements llm.Model. A server that refuses the form of a request
// is asked again in a plainer one, and what it took is remembered.
func (r *remote) Generate(ctx context.Context, request llm.Request) (llm.Answer, error) {
	call, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	begin := requestForm(r.form.Load())
	if request.Schema == nil {
		begin = max(begin, formWords)
	}
	broke := false
	for m := begin; ; m++ {
		answer, err := r.once(call, request, m)
		if err == nil {
			r.took(m, begin, broke)
			return answer, nil
		}
		said, ok := errors.AsType[*httpError](err)
		if ok && kindOf(said) == llm.ErrorTooLong {
			if hasFiles(request) {
				said.sizes.prompt = 0 // it is more than the text
			}
			r.learned.tooLong(said.sizes, textTokens(request), r.cfg.MaxTokens, r.transport.clock())
		}
		failed := asModelError(r.cfg.Name, call, ctx, err)
		failed.Err = r.conceal(failed.Err)
		if m <= formSchema && failed.Status == http.StatusInternalServerError {
			broke, m = true, formSchema // perhaps over the schema
		} else if m >= formPlain || !mayTakePlainerForm(failed) {
			return llm.Answer{}, failed
		}
	}
}

// maxBroken is how often in a row a server may break over a schema and take a plainer form
// before it is asked for no schema any more. Once may be chance.
const maxBroken = 3

// took remembers the form in which a request was taken that began with another one.
func (r *remote) took(m, begin requestForm, broke bool) {
	switch {
	case !broke:
		r.broken.Store(0)
	case r.broken.Add(1) < maxBroken:
		return
	}
	if m != begin {
		r.form.Store(int32(m))
	}
}

// mayTakePlainerForm reports whether a plainer request might be taken.
func mayTakePlainerForm(e *llm.Error) bool {
	statuses := []int{http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusNotImplemented}
	return e.Kind == llm.ErrorFatal && slices.Contains(statuses, e.Status)
}

// once makes one call through the library.
func (r *remote) once(ctx context.Context, request llm.Request, m requestForm) (answer llm.Answer, err error) {
	c := &call{cfg: r.cfg, preset: r.preset, form: m, tools: len(request.Tools) > 0, schema: request.Schema}
	c.system = slices.DeleteFunc(slices.Clone(request.System), isBlank)
	if r.cfg.Stream {
		c.stream = request.Stream
	}
	names := toolNames(request.Tools)
	defer recovered(&err)
	if request.Used != nil {
		defer func() {
			if c.sent.Load() {
				request.Used(c.usage(request))
			}
		}()
	}
	_, err = r.model.GenerateContent(c.in(ctx), r.messages(c, request, names), r.options(request, names)...)
	got, err := c.result(err)
	if err != nil {
		return llm.Answer{}, err
	}
	answer, err = r.answer(got, names)
	answer.Usage = c.usage(request)
	if c.got.usage.In > 0 && !hasFiles(request) {
		r.learned.counted(c.got.usage.In, textTokens(request))
	}
	if err == nil && answer.Text != "" && c.stream == nil && request.Stream != nil {
		request.Stream(answer.Text)
	}
	return answer, err
}

// recovered makes an error of a panic of the library. It is to be deferred.
func recovered(err *error) {
	p := recover()
	if p != nil {
		*err = fmt.Errorf("%w: %s", errPanic, txt.Clip(txt.Line(fmt.Sprint(p)), 200))
	}
}

// hasFiles reports whether anything travels beside the text.
func hasFiles(request llm.Request) bool {
	files := func(u llm.Utterance) bool { return len(u.Pictures)+len(u.Sounds) > 0 }
	return slices.ContainsFunc(request.Messages, files)
}

func isBlank(text string) bool { return strings.TrimSpace(text) == "" }

// options are what the library itself can say.
func (r *remote) options(request llm.Request, names map[string]string) []llms.CallOption {
	var options []llms.CallOption
	tokens := r.cfg.MaxTokens
	if tokens == 0 && r.preset.name == "anthropic" {
		tokens = anthropicTokens
	}
	if tokens > 0 {
		options = append(options, llms.WithMaxTokens(tokens))
	}
	var tools []llms.Tool
	for _, t := range request.Tools {
		schema := t.Schema
		if !isObject(schema) {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		function := &llms.FunctionDefinition{Name: apiName(names, t.Name), Description: t.Brief, Parameters: schema}
		tools = append(tools, llms.Tool{Type: "function", Function: function})
	}
	if len(tools) > 0 {
		options = append(options, llms.WithTools(tools))
	}
	return options
}

// toolNames maps the names that APIs do not take (they know no dots) to such
// that they do, each to another one.
func toolNames(from []llm.Tool) map[string]string {
	taken := make(map[string]bool, len(from))
	for _, t := range from {
		taken[t.Name] = true
	}
	names := make(map[string]string)
	for _, t := range from {
		if !strings.Contains(t.Name, ".") {
			continue
		}
		plain := strings.ReplaceAll(t.Name, ".", "_")
		for taken[plain] {
			plain += "_"
		}
		taken[plain] = true
		names[t.Name] = plain
	}
	return names
}

func apiName(names map[string]string, name string) string {
	if plain, ok := names[name]; ok {
		return plain
	}
	return strings.ReplaceAll(name, ".", "_")
}

func actionName(names map[string]string, plain string) string {
	for name, p := range names {
		if p == plain {
			return name
		}
	}
	return plain
}

// messages puts the request into the library's words: a single system message,
// and one part for each message where the client sends no more than that. The Anthropic
// client sends the first part of a model's message only; the transport joins them again.
func (r *remote) messages(c *call, request llm.Request, names map[string]string) []llms.MessageContent {
	var made []llms.MessageContent
	add := func(role llms.ChatMessageType, parts ...llms.ContentPart) {
		if len(parts) > 0 {
			made = append(made, llms.MessageContent{Role: role, Parts: parts})
		}
	}
	if len(c.system) > 0 {
		add(llms.ChatMessageTypeSystem, llms.TextPart(strings.Join(c.system, "\n\n")))
	}
	for _, u := range completeTurns(request.Messages) {
		switch {
		case u.CallID != "":
			add(llms.ChatMessageTypeTool, llms.ToolCallResponse{ToolCallID: u.CallID, Content: u.Text})
		case u.Role == llm.RoleModel && r.preset.name == "anthropic":
			for _, part := range r.modelParts(u, names) {
				add(llms.ChatMessageTypeAI, part)
			}
		case u.Role == llm.RoleModel:
			add(llms.ChatMessageTypeAI, r.modelParts(u, names)...)
		default:
			add(llms.ChatMessageTypeHuman, r.userParts(u)...)
		}
	}
	return made
}

func (r *remote) userParts(u llm.Utterance) []llms.ContentPart {
	var parts []llms.ContentPart
	if !isBlank(u.Text) {
		parts = append(parts, llms.TextPart(u.Text))
	}
	for _, s := range u.Sounds {
		if r.cfg.Hearing {
			parts = append(parts, llms.BinaryPart(s.MIME, s.Data))
		}
	}
	for _, p := range u.Pictures {
		switch {
		case !r.cfg.Vision:
		case r.preset.name == "anthropic":
			parts = append(parts, llms.BinaryPart(p.MIME, p.Data))
		default:
			data := base64.StdEncoding.EncodeToString(p.Data)
			parts = append(parts, llms.ImageURLPart("data:"+p.MIME+";base64,"+data))
		}
	}
	return parts
}

// modelParts are what the model said and called.
func (r *remote) modelParts(u llm.Utterance, names map[string]string) []llms.ContentPart {
	var parts []llms.ContentPart
	if !isBlank(u.Text) {
		parts = append(parts, llms.TextPart(u.Text))
	}
	for _, c := range u.Calls {
		function := &llms.FunctionCall{Name: apiName(names, c.Name), Arguments: string(c.Arguments)}
		if r.preset.name == "anthropic" {
			function.Arguments = string(core.JSON(wrappedArguments{function.Arguments}))
		}
		parts = append(parts, llms.ToolCall{ID: c.ID, Type: "function", FunctionCall: function})
	}
	return parts
}

// Reasons why a model stopped, in the words of both APIs.
const (
	stopFiltered = "content_filter"
	stopRefusal  = "refusal"
)

// truncated reports whether the model was stopped before it was done. No reason
// at all means that, too.
func truncated(stop string) bool {
	cut := []string{"", "length", "max_tokens", "model_length", "model_context_window_exceeded", "pause_turn", "error"}
	return slices.Contains(cut, stop)
}

// answer makes the model's answer of a reply.
func (r *remote) answer(from reply, names map[string]string) (llm.Answer, error) {
	answer := llm.Answer{Engine: r.cfg.Name, Text: from.text, Truncated: truncated(from.stop)}
	for i, c := range from.calls {
		answer.Calls = append(answer.Calls, toolCall(c, i, names))
	}
	switch stop := from.stop; {
	case stop == stopFiltered, stop == stopRefusal:
		err := fmt.Errorf("the model stopped with %q", stop)
		return llm.Answer{}, &llm.Error{Kind: llm.ErrorRefused, Engine: r.cfg.Name, Err: err}
	case isBlank(answer.Text) && len(answer.Calls) == 0:
		return llm.Answer{}, fmt.Errorf("%w (it stopped with %q)", errEmptyAnswer, txt.Clip(txt.Line(stop), 40))
	}
	return answer, nil
}

// toolCall completes one call. Arguments that are not JSON, as when the answer was
// cut, become a JSON string: they can be shown to a corrector, and never pass
// for a payload.
func toolCall(c llm.ToolCall, n int, names map[string]string) llm.ToolCall {
	c.Name = actionName(names, c.Name)
	if c.ID == "" {
		c.ID = fmt.Sprintf("call_%d", n)
	}
	arguments := strings.TrimSpace(string(c.Arguments))
	switch {
	case arguments == "" || arguments == "null":
		c.Arguments = json.RawMessage(`{}`)
	case !json.Valid(c.Arguments):
		c.Arguments = core.JSON(string(c.Arguments))
	}
	return c
}

// usage is what the call took: what the server counted, else an estimate. An answer
// that did not come to its end takes as many tokens as came, at least.
func (c *call) usage(request llm.Request) llm.Usage {
	u := c.got.usage
	if u.In == 0 {
		u.In = int(tokensOf(request))
	}
	if u.Out == 0 || c.got.stop == "" {
		u.Out = max(u.Out, c.pieces, c.got.tokens())
	}
	return u
}
