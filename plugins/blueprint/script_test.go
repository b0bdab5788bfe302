package blueprint

import (
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"synthbot/plugins/plugintest"
	"synthbot/plugins/standard"
)

// TestScripts runs conversations with the bank, each with a new one.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/scripts/*.txt")
	if err != nil || len(files) < 6 {
		t.Fatalf("got %d scripts, %v", len(files), err)
	}
	for _, file := range files {
		bank := newBank("Bearer s3cret")
		srv := httptest.NewServer(bank)
		t.Cleanup(srv.Close)
		plugintest.Run(t, file, plugintest.Of(New), plugintest.Of(standard.New), plugintest.Live(),
			plugintest.Var("bank", srv.URL), plugintest.Var("key", "Bearer s3cret"),
			plugintest.Verb("balance", func(s *plugintest.Script, arg string) {
				account, want, _ := strings.Cut(arg, " ")
				if got := fmt.Sprint(bank.balance(account)); got != want {
					s.Fatalf("balances: got %s", got)
				}
			}),
			plugintest.Verb("page", func(s *plugintest.Script, arg string) {
				if !slices.Contains(bank.opened(), arg) {
					s.Fatalf("opened accounts: got %v", bank.opened())
				}
			}),
		)
	}
}
