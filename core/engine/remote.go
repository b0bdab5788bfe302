package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/tmc/langchaingo/llms"

	"synthbot/core"
	"synthbot/core/llm"
	"synthbot/core/txt"
)

// remote is a llm.Model that calls a server. Safe for concurrent use.
type remote struct {
	provider
	form    atomic.Int32 // the strictest requestForm that the server has not refused
	broken  atomic.Int32 // requests in a row that failed with status 500 and succeeded without a schema
	learned learnedLimits
}

func newRemote(cfg Config, t *transport) (*remote, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	p, _ := presetOf(cfg.Provider)
	if p.name == "openai" && cfg.BaseURL != "" && !strings.Contains(cfg.BaseURL, "api.openai.com") {
		p.wire, p.form = openAI{}, formSchema // other servers often support only these
	}
	server, err := newProvider(cfg, p, t)
	r := &remote{provider: server}
	form := map[string]requestForm{
		structureAuto: p.form, "strict": formStrict, "schema": formSchema, "object": formObject,
		"off": formUnstructured,
	}
	r.form.Store(int32(form[cfg.Structure]))
	return r, err
}

// Limits implements llm.Model.
func (r *remote) Limits() llm.Limits {
	l := r.learned.limits(r.cfg.Limits(), r.transport.clock())
	forms := [...]llm.Structure{formStrict: llm.StructureStrict, formSchema: llm.StructureSchema, formMinimal: ""}
	l.Schemas = forms[r.form.Load()]
	return l
}

// Generate implements llm.Model. If the server refuses the form of a request, Generate tries
// the next form, and remembers the one that the server accepts.
func (r *remote) Generate(ctx context.Context, request llm.Request) (answer llm.Answer, err error) {
	limited, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	names := toolNames(request.Tools)
	messages, tools := messagesOf(request, r.cfg, names), toolsOf(request, names)
	begin, broke := requestForm(r.form.Load()), false
	if request.Schema == nil {
		begin = max(begin, formUnstructured)
	}
	for m := begin; ; m++ {
		c := &call{provider: &r.provider, request: request, form: m}
		if r.cfg.Stream {
			c.stream = request.Stream
		}
		_, err = c.GenerateContent(limited, messages, llms.WithMaxTokens(r.cfg.MaxTokens), llms.WithTools(tools))
		if err == nil {
			answer, err = r.answer(c, names)
		}
		if err == nil {
			r.rememberForm(m, begin, broke)
			return answer, nil
		}
		failed := r.failure(limited, ctx, r.learnSize(request, err))
		if m <= formSchema && failed.Status == http.StatusInternalServerError {
			broke, m = true, formSchema // the schema may be the reason
		} else if m >= formMinimal || failed.Kind != llm.ErrorFatal || !slices.Contains(refusedForm, failed.Status) {
			return llm.Answer{}, failed
		}
	}
}

// learnSize learns from an error about the size of a prompt, and returns the error.
func (r *remote) learnSize(request llm.Request, err error) error {
	said, ok := errors.AsType[*httpError](err)
	if ok && kindOf(said) == llm.ErrorTooLong {
		if hasFiles(request) {
			said.sizes.prompt = 0 // it includes the files
		}
		r.learned.learnWindow(said.sizes, textTokens(request), r.cfg.MaxTokens, r.transport.clock())
	}
	return err
}

// refusedForm lists the statuses after which the next form of the request may succeed.
var refusedForm = []int{http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusNotImplemented}

// rememberForm remembers the form in which a request succeeded that began in the form begin.
func (r *remote) rememberForm(m, begin requestForm, broke bool) {
	switch {
	case !broke:
		r.broken.Store(0)
	case r.broken.Add(1) < 3: // status 500 with a schema, and success without, may be chance
		return
	}
	if m != begin {
		r.form.Store(int32(m))
	}
}

func hasFiles(request llm.Request) bool {
	files := func(u llm.Utterance) bool { return len(u.Pictures)+len(u.Sounds) > 0 }
	return slices.ContainsFunc(request.Messages, files)
}

// Stop reasons of a refusal, in either API.
const (
	stopFiltered = "content_filter"
	stopRefusal  = "refusal"
)

// stopsEarly lists the stop reasons of incomplete answers. No reason is one of them.
var stopsEarly = []string{
	"", "length", "max_tokens", "model_length", "model_context_window_exceeded", "pause_turn", "error",
}

// answer makes an Answer of a call's result. It passes a text that did not arrive as a stream to Stream at once.
func (r *remote) answer(c *call, names map[string]string) (llm.Answer, error) {
	from := &c.got
	if from.usage.In > 0 && !hasFiles(c.request) {
		r.learned.learnScale(from.usage.In, textTokens(c.request))
	}
	answer := llm.Answer{
		Engine: r.cfg.Name, Text: from.text, Truncated: slices.Contains(stopsEarly, from.stop), Usage: c.usage(),
	}
	for i, call := range from.calls {
		answer.Calls = append(answer.Calls, toolCall(call, i, names))
	}
	switch stop := from.stop; {
	case stop == stopFiltered, stop == stopRefusal:
		err := fmt.Errorf("the model stopped with %q", stop)
		return llm.Answer{}, &llm.Error{Kind: llm.ErrorRefused, Engine: r.cfg.Name, Err: err}
	case isBlank(answer.Text) && len(answer.Calls) == 0:
		return llm.Answer{}, fmt.Errorf("%w (it stopped with %q)", errEmptyAnswer, txt.Clip(txt.Line(stop), 40))
	}
	if answer.Text != "" && (c.stream == nil || c.pieces == 0) && c.request.Stream != nil {
		c.request.Stream(answer.Text)
	}
	return answer, nil
}

// toolCall restores a tool call's name and completes it. Arguments that are not JSON, such as those of a truncated
// answer, become a JSON string: the corrector can be shown them, and they are not a valid payload.
func toolCall(c llm.ToolCall, n int, names map[string]string) llm.ToolCall {
	for name, plain := range names {
		if plain == c.Name {
			c.Name = name
			break
		}
	}
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
