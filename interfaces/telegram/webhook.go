package telegram

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"
)

const (
	maxUpdate    = 4 << 20          // bytes of one update
	hookWait     = 50 * time.Second // how long the platform waits for our answer, less a little
	secretHeader = "X-Telegram-Bot-Api-Secret-Token"
)

func (w *Webhook) check() error {
	if w.URL == "" {
		return nil
	}
	u, err := url.Parse(w.URL)
	switch {
	case err != nil || u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("url: %q is no https address", w.URL)
	case (w.Certificate == "") != (w.Key == ""):
		return errors.New("certificate and key belong together")
	case !regexp.MustCompile(`^[A-Za-z0-9_-]{0,256}$`).MatchString(w.Secret.Reveal()):
		return errors.New("secret: only letters, digits, _ and - are possible, at most 256")
	}
	_, port, err := net.SplitHostPort(w.Listen)
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil {
		return fmt.Errorf("listen: %q is no address; write one like 127.0.0.1:8443", w.Listen)
	}
	if w.Certificate == "" {
		return nil
	}
	if _, err := tls.LoadX509KeyPair(w.Certificate, w.Key); err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	return nil
}

// secret is what the platform must say with each call.
func (d *Driver) secret() string {
	if s := d.opt.Config.Webhook.Secret.Reveal(); s != "" {
		return s
	}
	mac := hmac.New(sha256.New, []byte(d.api.token))
	mac.Write([]byte("webhook"))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// serve takes updates in from a webhook until ctx ends.
func (d *Driver) serve(ctx context.Context, i *intake) error {
	hook := d.opt.Config.Webhook
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", hook.Listen)
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	calls := make(chan hookCall)
	server := &http.Server{
		Handler: d.hookHandler(calls), ReadTimeout: 20 * time.Second, WriteTimeout: hookWait + 10*time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10, BaseContext: func(net.Listener) context.Context { return ctx },
	}
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		cancel(serveOn(server, l, hook))
	}()
	defer func() { _ = server.Close(); <-done }()
	if err := d.setWebhook(ctx); err != nil {
		return err
	}
	d.log.Info("waiting for calls of the platform", "address", l.Addr().String())
	d.updates.works()
	d.later(d.watchHook)
	d.takeCalls(ctx, i, calls)
	return context.Cause(ctx)
}

func serveOn(s *http.Server, l net.Listener, hook Webhook) error {
	if hook.Certificate != "" {
		return fmt.Errorf("webhook: %w", s.ServeTLS(l, hook.Certificate, hook.Key))
	}
	return fmt.Errorf("webhook: %w", s.Serve(l))
}

// setWebhook tells the platform where to call; a certificate of one's own goes
// with it.
func (d *Driver) setWebhook(ctx context.Context) error {
	hook := d.opt.Config.Webhook
	params := tgbotapi.Params{"url": hook.URL, "secret_token": d.secret(), "allowed_updates": wantedUpdates}
	r := request{method: "setWebhook", params: params, again: true}
	if hook.Certificate != "" {
		r.files = []tgbotapi.RequestFile{{Name: "certificate", Data: tgbotapi.FilePath(hook.Certificate)}}
	}
	delay := newBackoff(time.Second, time.Minute)
	for {
		_, err := d.do(ctx, r)
		if err == nil || ctx.Err() != nil || isCode(err, 400, 401, 404) {
			return err
		}
		d.log.Warn("webhook not set", "err", err)
		if err := sleep(ctx, delay.NextBackOff()); err != nil {
			return err
		}
	}
}

// hookLook is how often the platform is asked whether it can call us.
const hookLook = time.Minute

// hookInfo is what the platform tells about a webhook.
type hookInfo struct {
	URL     string `json:"url"`
	Pending int    `json:"pending_update_count"`
	Failed  int64  `json:"last_error_date"`
	Reason  string `json:"last_error_message"`
}

// watchHook keeps asking whether the platform can deliver updates to the webhook.
func (d *Driver) watchHook(ctx context.Context) {
	var settled int64 // the last failure when nothing waited to be delivered
	for sleep(ctx, hookLook) == nil {
		began := time.Now()
		info, err := d.hookInfo(ctx)
		switch {
		case err != nil:
		case info.URL != d.opt.Config.Webhook.URL:
			err = fmt.Errorf("the webhook was set to another address: %q", info.URL)
		case info.Pending > 0 && info.Failed > settled:
			err = fmt.Errorf("the platform cannot deliver updates: %s", info.Reason)
		}
		if err == nil && info.Pending == 0 {
			settled = info.Failed
		}
		if err != nil {
			d.log.Warn("webhook", "err", err)
			d.updates.fails(began, err)
		} else {
			d.updates.works()
		}
	}
}

func (d *Driver) hookInfo(ctx context.Context) (info hookInfo, err error) {
	raw, err := d.do(ctx, request{method: "getWebhookInfo", params: tgbotapi.Params{}, again: true})
	if err == nil {
		err = json.Unmarshal(raw, &info)
	}
	return info, err
}

func (d *Driver) dropWebhook(ctx context.Context) {
	if _, err := d.do(ctx, request{method: "deleteWebhook", params: tgbotapi.Params{}, again: true}); err != nil && ctx.Err() == nil {
		d.log.Warn("webhook not taken away", "err", err)
	}
}

// hookCall is one update that the platform brought; answer tells whether it is
// on disk.
type hookCall struct {
	id     int64
	raw    json.RawMessage
	answer chan error
}

// hookHandler answers with 200 only what is on disk; the platform brings the
// rest again.
func (d *Driver) hookHandler(calls chan<- hookCall) http.Handler {
	secret := []byte(d.secret())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said := []byte(r.Header.Get(secretHeader))
		if r.Method != http.MethodPost || subtle.ConstantTimeCompare(said, secret) != 1 {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxUpdate))
		if err != nil {
			http.Error(w, "too large", http.StatusRequestEntityTooLarge)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), hookWait)
		defer cancel()
		if err := bring(ctx, calls, raw); err != nil {
			http.Error(w, "later", http.StatusServiceUnavailable)
		}
	})
}

func bring(ctx context.Context, calls chan<- hookCall, raw json.RawMessage) error {
	_, id, _ := decode(raw)
	c := hookCall{id, raw, make(chan error, 1)}
	select {
	case calls <- c:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-c.answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// takeCalls hands in what the platform brings. Parts of an album wait for each
// other, and their callers with them.
func (d *Driver) takeCalls(ctx context.Context, i *intake, calls <-chan hookCall) {
	var waiting []hookCall
	for {
		var quiet <-chan time.Time
		if pause := i.pause(); pause > 0 {
			quiet = time.After(pause)
		}
		select {
		case <-ctx.Done():
			return
		case <-quiet:
		case c := <-calls:
			waiting = append(waiting, c)
		}
		waiting = d.takeWaiting(ctx, i, waiting)
	}
}

// takeWaiting hands in what can be, and answers its callers.
func (d *Driver) takeWaiting(ctx context.Context, i *intake, waiting []hookCall) []hookCall {
	slices.SortStableFunc(waiting, func(a, b hookCall) int { return cmp.Compare(a.id, b.id) })
	raws := make([]json.RawMessage, len(waiting))
	for n, c := range waiting {
		raws[n] = c.raw
	}
	began := time.Now()
	_, err := i.take(ctx, raws)
	if err != nil {
		d.updates.fails(began, err)
	} else if len(waiting) > 0 {
		d.updates.works()
	}
	var still []hookCall
	for _, c := range waiting {
		if err == nil && i.pending[c.id] {
			still = append(still, c)
			continue
		}
		c.answer <- err
	}
	return still
}
