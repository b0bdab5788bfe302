package telegram

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/secret"
	"synthbot/interfaces/telegram/botapi"
	"synthbot/interfaces/telegram/telegramtest"
)

// freeAddress returns a free address of the loopback interface.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// TestWebhook: updates that arrive by webhook are acknowledged when they are stored, or if
// they can never be. Calls without the secret are refused. The webhook survives a stop.
func TestWebhook(t *testing.T) {
	address := freeAddress(t)
	w := newWorld(t, func(o *Options) {
		o.Config.Webhook = botapi.Webhook{URL: "https://bot.example.org/hook", Listen: address}
	})
	var broken atomic.Bool
	in := &coretest.Inbox{Fail: func([]core.Event) error {
		if broken.Load() {
			return errors.New("the disk is full")
		}
		return nil
	}}
	d, stop := w.listen(t, in)
	w.Await(t, func() bool { url, _ := w.Hook(); return url != "" })
	client := &http.Client{}
	defer client.CloseIdleConnections()
	w.Say(jay, jay, telegramtest.Saying{Text: "one"})
	w.Push(`{"message":{"message_id":"poison"}}`)
	w.Say(jay, jay, telegramtest.Saying{Text: "two"})
	if err := w.Deliver(client, "http://"+address+"/hook"); err != nil || w.Waiting() != 0 {
		t.Errorf("%v; %d updates unconfirmed, want 0", err, w.Waiting())
	}
	broken.Store(true)
	w.Say(jay, jay, telegramtest.Saying{Text: "three"})
	if err := w.Deliver(client, "http://"+address+"/hook"); err == nil {
		t.Error("an update that was not stored was acknowledged")
	}
	broken.Store(false)
	if err := w.Deliver(client, "http://"+address+"/hook"); err != nil {
		t.Error(err)
	}
	if got := messageTexts(in.Events()); !slices.Equal(got, []string{"one", "two", "three"}) {
		t.Errorf("got %q, want one, two and three", got)
	}
	for _, secret := range []string{"", "wrong", telegramtest.Token, secretOf(d)[1:]} {
		checkHookStatus(t, client, "http://"+address, secret, `{"update_id":1}`, http.StatusForbidden)
	}
	checkHookStatus(t, client, "http://"+address, secretOf(d), strings.Repeat(" ", 4<<20+1), http.StatusRequestEntityTooLarge)
	for _, junk := range []string{"", "null", "[[[", `{"update_id":"x"}`} { // otherwise the platform would repeat it for ever
		checkHookStatus(t, client, "http://"+address, secretOf(d), junk, http.StatusOK)
	}
	stop()
	if url, _ := w.Hook(); url == "" {
		t.Error("the webhook was deleted on stop, so that the platform keeps no updates for it")
	}
}

// checkHookStatus calls the webhook with a secret and checks the status of the response.
func checkHookStatus(t *testing.T, client *http.Client, address, secret, body string, want int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Telegram-Bot-Api-Secret-Token", secret)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != want {
		t.Errorf("secret %q, %.20q: got status %d, want %d", secret, body, resp.StatusCode, want)
	}
}

// TestWebhookAlbum: the calls with the parts of an album end when the album is complete.
func TestWebhookAlbum(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	w := newWorld(t, func(o *Options) {
		o.Config.Webhook = botapi.Webhook{URL: "https://bot.example.org/hook", Listen: address}
	})
	in := &coretest.Inbox{}
	w.listen(t, in)
	w.Await(t, func() bool { url, _ := w.Hook(); return url != "" })
	client := &http.Client{}
	defer client.CloseIdleConnections()
	for _, file := range []string{"a", "b", "c"} {
		w.Say(jay, jay, telegramtest.Saying{Extra: map[string]any{"media_group_id": "7", "photo": []any{map[string]any{"file_id": file, "width": 1, "height": 1}}}})
	}
	if err := w.DeliverAtOnce(client, "http://"+address); err != nil {
		t.Fatal(err)
	}
	in.Wait(t, 1)
	if events := in.Events(); len(events) != 1 || len(events[0].Message.Attachments) != 3 {
		t.Errorf("got %+v, want one event with three photos", events)
	}
}

// TestWebhookCertificate: with a certificate of its own, the driver serves HTTPS and sends the
// platform the certificate, without the key.
func TestWebhookCertificate(t *testing.T) {
	address := freeAddress(t)
	certificate, key := selfSigned(t)
	w := newWorld(t, func(o *Options) {
		o.Config.Webhook = botapi.Webhook{URL: "https://127.0.0.1/hook", Listen: address, Certificate: certificate, Key: key, Secret: secret.New("s3cret")}
	})
	in := &coretest.Inbox{}
	w.listen(t, in)
	w.Await(t, func() bool { url, _ := w.Hook(); return url != "" })
	_, sent := w.Hook()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(sent) || strings.Contains(string(sent), "PRIVATE") {
		t.Fatalf("the platform got %q, want only the certificate", sent)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer client.CloseIdleConnections()
	w.Say(jay, jay, telegramtest.Saying{Text: "safe"})
	if err := w.Deliver(client, "https://"+address+"/hook"); err != nil {
		t.Error(err)
	}
	in.Wait(t, 1)
}

// selfSigned writes a self-signed certificate and its key to files.
func selfSigned(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "127.0.0.1"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certificate, key = filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	for file, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certificate, key
}

// TestWebhookTakenAway: a driver that polls deletes a webhook that was left behind and logs that.
func TestWebhookTakenAway(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		d, err := New(w.options())
		if err != nil {
			t.Fatal(err)
		}
		if err := d.api.Try(t.Context(), &botapi.Request{Method: "setWebhook", Params: botapi.Params{"url": "https://old.example.org"}}); err != nil {
			t.Fatal(err)
		}
		d.api.Close()
		w.Say(jay, jay, telegramtest.Saying{Text: "x"})
		in := &coretest.Inbox{}
		_, stop := w.run(t, in)
		in.Wait(t, 1)
		if !strings.Contains(w.log.String(), "a webhook was set for this bot") {
			t.Error("the log does not mention the webhook")
		}
		_ = stop()
	})
}

// TestNewRefuses: New refuses each of these configurations, without the token in the error.
func TestNewRefuses(t *testing.T) {
	for name, alter := range map[string]func(*Options){
		"no token":    func(o *Options) { o.Config.Token = secret.Secret{} },
		"odd token":   func(o *Options) { o.Config.Token = secret.New("a/../b") },
		"bad address": func(o *Options) { o.Config.APIURL = "ftp://x" },
		"name":        func(o *Options) { o.Name = "a/b c" },
		"webhook":     func(o *Options) { o.Config.Webhook.URL = "http://x" },
		"half a pair": func(o *Options) { o.Config.Webhook = botapi.Webhook{URL: "https://x.y", Key: "k"} },
		"no pair": func(o *Options) {
			o.Config.Webhook = botapi.Webhook{URL: "https://x.y", Certificate: "nowhere.pem", Key: "nowhere.pem"}
		},
		"no port":    func(o *Options) { o.Config.Webhook = botapi.Webhook{URL: "https://x.y", Listen: "here"} },
		"large port": func(o *Options) { o.Config.Webhook = botapi.Webhook{URL: "https://x.y", Listen: ":65536"} },
		"odd secret": func(o *Options) { o.Config.Webhook = botapi.Webhook{URL: "https://x.y", Secret: secret.New("a b")} },
	} {
		o := baseOptions("https://api.telegram.org")
		alter(&o)
		if d, err := New(o); err == nil || d != nil || strings.Contains(err.Error(), "a/../b") {
			t.Errorf("%s: got %v, want an error without the token", name, err)
		}
	}
}

// TestRedacted: no error of a call contains the token.
func TestRedacted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	d := w.driver(t)
	for kind := telegramtest.Limited; kind <= telegramtest.Refused; kind++ {
		w.FailNext("getMe", telegramtest.Fault{Kind: kind, Text: "Bad Request: /bot" + telegramtest.Token + "/getMe"})
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		err := d.api.Try(ctx, &botapi.Request{Method: "getMe"})
		cancel()
		if err == nil && kind < telegramtest.ResetAfter {
			t.Errorf("fault %d: got no error", kind)
		}
		for ; err != nil; err = errors.Unwrap(err) {
			if strings.Contains(err.Error(), telegramtest.Token[12:]) {
				t.Errorf("fault %d: a %T contains the token", kind, err)
			}
		}
	}
	closed, err := New(baseOptions("http://127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.api.Try(t.Context(), &botapi.Request{Method: "getMe"}); err == nil || strings.Contains(err.Error(), telegramtest.Token[12:]) {
		t.Errorf("refused connection: got %v, want an error without the token", err)
	}
}

// secretOf returns the secret that the platform sends with each call of a driver's webhook.
func secretOf(d *Driver) string {
	mac := hmac.New(sha256.New, []byte(d.opt.Config.Token.Reveal()))
	mac.Write([]byte("webhook"))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
