package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"synthbot/core"
)

// Probe is what an engine said when it was asked who it is.
type Probe struct {
	Engine string
	Err    error // nil: it answers, takes the key and knows the model
}

// probeTime is how long an engine may take to say who it is.
const probeTime = 10 * time.Second

// Probe asks every engine for its list of models, which costs no tokens. The
// offline engine needs no asking.
func (c *Chain) Probe(ctx context.Context) []Probe {
	var probes []Probe
	for _, l := range c.links {
		if r, ok := l.model.(*remote); ok {
			probes = append(probes, Probe{l.name, r.probe(ctx)})
		}
	}
	return probes
}

func (r *remote) probe(ctx context.Context) error {
	call, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	err := r.askModels(call)
	if err == nil {
		return nil
	}
	failed := asModelError(r.cfg.Name, call, ctx, err)
	failed.Err = r.conceal(failed.Err)
	return failed
}

func (r *remote) askModels(ctx context.Context) error {
	endpoint, err := r.cfg.endpoint(r.preset)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint+"/models?limit=1000", nil)
	if err != nil {
		return err
	}
	if !r.cfg.APIKey.IsZero() {
		request.Header.Set("Authorization", "Bearer "+r.cfg.APIKey.Reveal())
		if r.preset.name == "anthropic" {
			request.Header.Del("Authorization")
			request.Header.Set("X-Api-Key", r.cfg.APIKey.Reveal())
			request.Header.Set("Anthropic-Version", "2023-06-01")
		}
	}
	response, err := r.transport.base.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("connection: %w", err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errCut, err)
	case response.StatusCode != http.StatusOK:
		return readHTTPError(response, data[:min(len(data), maxErrors)], r.transport.clock())
	}
	return knows(data, r.cfg.Model)
}

var errUnknownModel = errors.New("the server does not list this model")

// knows looks for the model in a list of models; a body of another shape is no
// objection.
func knows(data []byte, model string) error {
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if json.Unmarshal(data, &list) != nil || len(list.Data) == 0 {
		return nil
	}
	for _, m := range list.Data {
		id := strings.TrimPrefix(m.ID, "models/") // Gemini's spelling
		if id == model || strings.TrimSuffix(id, ":latest") == model {
			return nil
		}
	}
	return &core.ModelError{Kind: core.Fatal, Err: fmt.Errorf("%w: %s", errUnknownModel, model)}
}
