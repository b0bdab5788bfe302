package setup

import (
	"os"
	"strings"
	"testing"

	"synthbot/daemon"
)

func TestNextCommands(t *testing.T) {
	t.Chdir(t.TempDir())
	env := &daemon.Env{Getenv: func(string) string { return "" }}
	service := "  sudo systemctl enable --now synthbot\n"
	if !exists("/etc/systemd/system/synthbot.service") && !exists("/usr/lib/systemd/system/synthbot.service") {
		service = "  sudo synthbot service install\n" + service
	}
	for _, tc := range []struct {
		file      string
		there     bool
		platforms bool
		want      string
	}{
		{"config.toml", true, true, "  synthbot run\n"},
		{"config.toml", true, false, "  synthbot chat\n"},
		{"other.toml", true, true, "  synthbot run -c other.toml\n"},
		{"other.toml", true, false, "  synthbot chat -c other.toml\n"},
		{"it's a ö.toml", true, false, "  synthbot chat -c 'it'\\''s a ö.toml'\n"},
		{daemon.ServiceConfig, false, true, service},
	} {
		if tc.there {
			if err := os.WriteFile(tc.file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := nextCommands(env, tc.file, tc.platforms); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.file, got, tc.want)
		}
	}
}

// TestMachineZone checks that a time zone is found in each form of $TZ that names one.
func TestMachineZone(t *testing.T) {
	for zone, want := range map[string]string{
		"Europe/Rome": "Europe/Rome", ":Europe/Rome": "Europe/Rome", ":/usr/share/zoneinfo/Asia/Tokyo": "Asia/Tokyo", "CET-1CEST": "", "Local": "",
	} {
		if got := machineZone(zone); got != want {
			t.Errorf("TZ=%s: got %q, want %q", zone, got, want)
		}
	}
}

// TestSecretsOnStandardInput checks that each flag with the value - reads one line, also a last one without a line
// break, and that no secret is cut.
func TestSecretsOnStandardInput(t *testing.T) {
	fromInput := Secret{Word: "-"}
	i := &Init{}
	i.Key, i.Discord.Token = fromInput, fromInput
	if err := i.readSecrets(strings.NewReader("one\r\ntwo"), false); err != nil {
		t.Fatal(err)
	}
	if key, token := i.Key.Typed.Reveal(), i.Discord.Token.Typed.Reveal(); key != "one" || token != "two" {
		t.Errorf("got %q and %q, want one and two", key, token)
	}
	for name, in := range map[string]string{"nothing": "", "an empty line": "\nx", "a long line": strings.Repeat("x", 1<<17)} {
		i := &Init{}
		i.Key = fromInput
		if err := i.readSecrets(strings.NewReader(in), false); err == nil {
			t.Errorf("%s was read as %q, want an error", name, i.Key.Typed.Reveal())
		}
	}
}
