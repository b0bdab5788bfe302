package speech

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"synthbot/core/secret"
	"testing"
	"time"
)

// TestTry: each server and program is asked once, and faults have a reason.
func TestTry(t *testing.T) {
	if got := lengthOf(silentSecond()); got != time.Second {
		t.Errorf("unexpected length %s of the silence", got)
	}
	refuse := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case refuse:
			http.Error(w, "no such key", http.StatusUnauthorized)
		case strings.HasSuffix(r.URL.Path, "/speech"):
			_, _ = w.Write([]byte("OggS and so on"))
		default:
			_, _ = w.Write([]byte(`{"text":""}`))
		}
	}))
	defer server.Close()
	c := &Config{In: In{Provider: byServer, BaseURL: server.URL, Timeout: time.Minute, APIKey: secret.New("swordfish")},
		Out: Out{Provider: byServer, BaseURL: server.URL, Timeout: time.Minute, When: "always", MaxText: 100}}
	check := func(name, want string) {
		t.Helper()
		var got []string
		for _, f := range c.Try(t.Context()) {
			got = append(got, f.What+" "+f.Found)
			if (f.Fix != "") != strings.Contains(f.Found, "not") || strings.Contains(f.Fix, "swordfish") || refuse && !strings.Contains(f.Fix, "401") {
				t.Errorf("%s: unexpected finding %+v", name, f)
			}
		}
		if all := strings.Join(got, ", "); all != want {
			t.Errorf("%s: got %s, want %s", name, all, want)
		}
	}
	check("servers", "in works, out works")
	refuse = true
	check("servers that refuse", "in does not work, out does not work")
	refuse = false
	c.In.Provider, c.In.Program = byProgram, []string{"true", "{file}"}
	c.Out.Provider, c.Out.Program = byProgram, []string{"echo", "no sound"}
	check("programs", "in works, out does not work")
	*c = Config{}
	check("nobody", "")
}
