package setup

import (
	"os"
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
