package commands

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"synthbot/daemon"
)

// TestCatalogueComesBack checks that a bot that imports the output of `actions --format ai-tools`, with all
// plugins enabled, offers the same actions.
func TestCatalogueComesBack(t *testing.T) {
	dir := t.TempDir()
	tell := func(config, format string) string {
		t.Helper()
		file := filepath.Join(dir, "config.toml")
		write(t, file, "[bot]\ndata_dir = \"data\"\n"+config)
		var out, errs bytes.Buffer
		if status := run(t.Context(), []string{"actions", "-c", file, "--format", format}, strings.NewReader(""), &out, &errs); status != 0 {
			t.Fatalf("actions: status %d, %s", status, errs.String())
		}
		return out.String()
	}
	var on, off strings.Builder
	for _, name := range daemon.PluginNames() {
		on.WriteString("[plugins." + name + "]\n")
		if name != daemon.BlueprintName {
			off.WriteString("[plugins." + name + "]\nenabled = false\n")
		}
	}
	own := func(text string) (list []map[string]any) {
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			t.Fatal(err)
		}
		for _, a := range list {
			delete(a, "owner")
		}
		return list
	}
	before := own(tell(on.String(), "json"))
	write(t, filepath.Join(dir, "ai-tools.json"), tell(on.String(), "ai-tools"))
	after := own(tell(off.String()+"[[plugins.blueprint.source]]\npath = \"ai-tools.json\"\ncommand = [\"/bin/true\"]\npermission = \"everyone\"\n", "json"))
	if len(before) < 20 || len(after) != len(before) {
		t.Fatalf("the imported catalogue has %d actions, want %d", len(after), len(before))
	}
	for i := range before {
		if !reflect.DeepEqual(before[i], after[i]) {
			t.Errorf("imported action:\n%v\nwant:\n%v", after[i], before[i])
		}
	}
}
