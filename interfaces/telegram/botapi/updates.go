package botapi

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"synthbot/core/loop"
	"synthbot/core/secret"
	"synthbot/core/sorting"
)

// Intake stores updates.
type Intake interface {
	// Take stores a batch of updates, in order. It returns the offset that confirms the stored ones, or 0 if none may
	// be confirmed. After an error, and for updates that are held back, Take is called again with the same updates.
	Take(ctx context.Context, raws []json.RawMessage) (offset int64, err error)
	// Pause returns how long to wait before the next Take, because an album that is held back may still grow.
	Pause() time.Duration
	// Held reports whether the last Take held an update back.
	Held(id int64) bool
}

// Poll asks for updates and passes them to the intake, until ctx ends or Telegram refuses the token. An update is
// confirmed when the next poll asks for those after it. An offset is used for one poll only, because after a week
// without updates Telegram continues with any other id.
func (c *Client) Poll(ctx context.Context, in Intake, wanted string) error {
	var offset int64
	delay := newBackoff(time.Second, 30*time.Second)
	reported := ""
	c.health.Works(0)
	for ctx.Err() == nil {
		began, wait := time.Now(), 50 // seconds
		if reported != "" {
			wait = 0 // an immediate response shows that polling works again
		}
		loop.Sleep(ctx, in.Pause())
		raws, err := c.getUpdates(ctx, wait, offset, wanted)
		switch {
		case ctx.Err() != nil || IsCode(err, 401, 404):
			return err
		case err != nil:
			c.noteFailure(began, err)
			reported = c.pollFailed(ctx, err, reported)
			loop.Sleep(ctx, max(delay.NextBackOff(), refusal(err).After))
			continue
		}
		reported = ""
		if offset, err = in.Take(ctx, raws); err != nil && ctx.Err() == nil {
			c.noteFailure(time.Now(), err)
			c.opt.Log.Error("updates not stored; Telegram keeps them", "err", err)
			loop.Sleep(ctx, delay.NextBackOff())
			continue
		}
		c.health.Works(0)
		delay.Reset()
		if offset == 0 { // nothing was confirmed, so the next poll returns the same updates at once
			loop.Sleep(ctx, time.Second-time.Since(began))
		}
	}
	return ctx.Err()
}

// getUpdates makes one getUpdates call, to which the server should respond within wait seconds.
func (c *Client) getUpdates(ctx context.Context, wait int, offset int64, wanted string) ([]json.RawMessage, error) {
	params := Params{"allowed_updates": wanted, "offset": offset, "timeout": wait}
	limit := time.Duration(wait+15) * time.Second
	var raws []json.RawMessage
	err := c.call(ctx, &Request{Method: "getUpdates", Params: params, Limit: limit, Result: &raws})
	if err == nil && raws == nil {
		err = &NetError{Method: "getUpdates", Text: "no list of updates"}
	}
	return raws, err
}

// pollFailed handles the error of a poll and returns its description. It logs a warning if that differs from reported.
func (c *Client) pollFailed(ctx context.Context, err error, reported string) string {
	text := err.Error()
	if IsCode(err, 409) {
		text = "another process asks for this bot's updates: stop it, or give this one a token of its own"
		if Says(err, "webhook") {
			text = "a webhook was set for this bot; it is removed, because this process polls for updates"
			if err := c.Do(ctx, &Request{Method: "deleteWebhook", Repeatable: true}); err != nil && ctx.Err() == nil {
				c.opt.Log.Warn("webhook not removed", "err", err)
			}
		} else if time.Since(c.conflictReported) > 6*time.Hour { // pollers end each other in turn, so it recurs
			c.conflictReported = time.Now()
			c.opt.Admin(c.opt.Name + ": " + text)
		}
	}
	level := slog.LevelDebug
	if text != reported {
		level = slog.LevelWarn
	}
	c.opt.Log.Log(ctx, level, "no updates", "reason", text)
	return text
}

// noteFailure records that receiving updates has failed since then. A wait that Telegram asked for does not count.
func (c *Client) noteFailure(began time.Time, err error) {
	if !IsCode(err, 429) {
		c.health.Fails(0, began, err)
	}
}

// Ready returns nil if updates can be received, or could shortly before. See driver.Health.
func (c *Client) Ready() error { return c.health.Ready() }

const (
	hookWait     = 50 * time.Second // a little less than Telegram waits for our response
	secretHeader = "X-Telegram-Bot-Api-Secret-Token"
)

// Webhook configures how Telegram reaches the bot; the zero value means polling.
type Webhook struct {
	URL         string        `toml:"url" doc:"The public https address; empty: poll for updates." example:"https://bot.example.org/telegram"`
	Listen      string        `toml:"listen" default:"127.0.0.1:8443" doc:"The address to listen on, for a reverse proxy or the platform itself."`
	Secret      secret.Secret `toml:"secret" doc:"The secret that the platform must send with each call; empty: derived from the token."`
	Certificate string        `toml:"certificate" kind:"file" doc:"A certificate as a PEM file, relative to the configuration file. With key, the driver serves TLS itself and sends the certificate to the platform."`
	Key         string        `toml:"key" kind:"private file" doc:"The certificate's private key as a PEM file, relative to the configuration file."`
}

// Check implements the configuration's own check.
func (w *Webhook) Check(fault func(text string, at ...any)) {
	if w.URL == "" {
		return
	}
	u, err := url.Parse(w.URL)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		fault(fmt.Sprintf("%q is not an https address", w.URL), "url")
	}
	if (w.Certificate == "") != (w.Key == "") {
		fault("certificate and key belong together", "certificate")
	}
	_, port, err := net.SplitHostPort(w.Listen)
	_, wrong := strconv.ParseUint(port, 10, 16)
	if err != nil || wrong != nil {
		fault(fmt.Sprintf("%q is not an address; write one like 127.0.0.1:8443", w.Listen), "listen")
	}
}

// CheckSecret is Check for the secret.
func (w *Webhook) CheckSecret(fault func(text string, at ...any)) {
	if w.URL != "" && !regexp.MustCompile(`^[A-Za-z0-9_-]{0,256}$`).MatchString(w.Secret.Reveal()) {
		fault("only letters, digits, _ and - are allowed, at most 256", "webhook", "secret")
	}
}

// LoadCertificate returns an error if the certificate and its key cannot be used.
func (w *Webhook) LoadCertificate() error {
	if w.URL == "" || w.Certificate == "" {
		return nil
	}
	if _, err := tls.LoadX509KeyPair(w.Certificate, w.Key); err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	return nil
}

// secret returns the secret that Telegram sends with each call.
func (c *Client) secret(hook Webhook) string {
	own := hook.Secret.Reveal()
	if own != "" {
		return own
	}
	mac := hmac.New(sha256.New, []byte(c.opt.Token))
	mac.Write([]byte("webhook"))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// Serve receives updates from a webhook and passes them to the intake, until ctx ends or Telegram refuses the token.
func (c *Client) Serve(ctx context.Context, hook Webhook, in Intake, wanted string) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", hook.Listen)
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	calls := make(chan hookCall)
	server := &http.Server{
		Handler: hookHandler(calls, c.secret(hook)), BaseContext: func(net.Listener) context.Context { return ctx },
		ReadTimeout: 20 * time.Second, WriteTimeout: hookWait + 10*time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 32 << 10,
	}
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var err error
		if hook.Certificate == "" {
			err = server.Serve(l)
		} else {
			err = server.ServeTLS(l, hook.Certificate, hook.Key)
		}
		cancel(fmt.Errorf("webhook: %w", err))
	}()
	defer func() { _ = server.Close(); <-done }()
	if err := c.setWebhook(ctx, hook, wanted); err != nil {
		return err
	}
	c.opt.Log.Info("webhook listens", "address", l.Addr().String())
	c.health.Works(0)
	var watch sync.WaitGroup
	watch.Go(func() { c.watchHook(ctx, hook.URL) })
	c.serveCalls(ctx, in, calls)
	watch.Wait()
	return context.Cause(ctx)
}

func (c *Client) setWebhook(ctx context.Context, hook Webhook, wanted string) error {
	params := Params{"url": hook.URL, "secret_token": c.secret(hook), "allowed_updates": wanted}
	r := &Request{Method: "setWebhook", Params: params, Repeatable: true, Fatal: []int{400, 401, 404}}
	if hook.Certificate != "" {
		r.Files = []File{{Field: "certificate", Path: hook.Certificate}}
	}
	return c.Do(ctx, r)
}

// watchHook asks Telegram regularly whether it can deliver updates to the webhook.
func (c *Client) watchHook(ctx context.Context, url string) {
	var settled int64 // time of the last failure after which all updates were delivered
	for loop.Sleep(ctx, time.Minute) {
		began := time.Now()
		var info struct {
			URL     string `json:"url"`
			Pending int    `json:"pending_update_count"`
			Failed  int64  `json:"last_error_date"`
			Reason  string `json:"last_error_message"`
		}
		err := c.Do(ctx, &Request{Method: "getWebhookInfo", Repeatable: true, Result: &info})
		switch {
		case err != nil:
		case info.URL != url:
			err = fmt.Errorf("the webhook was set to another address: %q", info.URL)
		case info.Pending > 0 && info.Failed > settled:
			err = fmt.Errorf("updates cannot be delivered: %s", info.Reason)
		}
		if err != nil {
			c.opt.Log.Warn("webhook", "err", err)
			c.noteFailure(began, err)
			continue
		}
		c.health.Works(0)
		if info.Pending == 0 {
			settled = info.Failed
		}
	}
}

// hookCall is a call of the webhook with one update. answer receives nil once the update is stored.
type hookCall struct {
	id     int64
	raw    json.RawMessage
	answer chan error
}

// hookHandler responds with 200 only once the update is stored. After any other response, Telegram sends the update
// again.
func hookHandler(calls chan<- hookCall, secret string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said := []byte(r.Header.Get(secretHeader))
		if r.Method != http.MethodPost || subtle.ConstantTimeCompare(said, []byte(secret)) != 1 {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 4<<20))
		if err != nil {
			http.Error(w, "too large", http.StatusRequestEntityTooLarge)
			return
		}
		var update struct {
			ID int64 `json:"update_id"`
		}
		_ = json.Unmarshal(raw, &update) // the intake reports an update that cannot be decoded
		ctx, cancel := context.WithTimeout(r.Context(), hookWait)
		defer cancel()
		answer := make(chan error, 1)
		select {
		case calls <- hookCall{update.ID, raw, answer}:
		case <-ctx.Done():
		}
		select {
		case err = <-answer:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			http.Error(w, "later", http.StatusServiceUnavailable)
		}
	})
}

// serveCalls passes the updates of webhook calls to the intake, and answers the calls. The call of an update that the
// intake holds back stays open.
func (c *Client) serveCalls(ctx context.Context, in Intake, calls <-chan hookCall) {
	var waiting []hookCall
	for {
		var quiet <-chan time.Time
		pause := in.Pause()
		if pause > 0 {
			quiet = time.After(pause)
		}
		select {
		case <-ctx.Done():
			return
		case <-quiet:
		case call := <-calls:
			waiting = append(waiting, call)
		}
		sorting.SortStable(waiting, func(a, b hookCall) int { return cmp.Compare(a.id, b.id) })
		raws := make([]json.RawMessage, len(waiting))
		for n, call := range waiting {
			raws[n] = call.raw
		}
		began := time.Now()
		_, err := in.Take(ctx, raws)
		if err != nil {
			c.noteFailure(began, err)
		} else if len(waiting) > 0 {
			c.health.Works(0)
		}
		waiting = slices.DeleteFunc(waiting, func(call hookCall) bool {
			held := err == nil && in.Held(call.id)
			if !held {
				call.answer <- err
			}
			return !held
		})
	}
}
