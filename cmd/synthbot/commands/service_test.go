package commands

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"synthbot/daemon"
	"synthbot/interfaces/telegram/telegramtest"
	"synthbot/setup"
)

// installed installs a service below a folder, from the file in the test's own.
func installed(t *testing.T, root string, more ...string) (status int, out, errs string) {
	t.Helper()
	var o, e strings.Builder
	p := &program{Env: &daemon.Env{File: "config.toml", In: strings.NewReader(""), Out: &o, Err: &e, Getenv: os.Getenv}, parsed: true}
	i := &setup.Service{User: "synthbot", Root: root, Exe: filepath.Join(t.TempDir(), "synthbot")}
	write(t, i.Exe, "the program")
	for _, word := range more {
		switch word {
		case "tools":
			i.Tools = true
		case "dry":
			i.DryRun = true
		case "there":
			p.File = ""
		default:
			i.User = word
		}
	}
	status = p.report(i.Install(p.Env))
	return status, o.String(), e.String()
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// files lists the files below a folder with their modes.
func files(t *testing.T, root string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		inside, _ := filepath.Rel(root, path)
		list = append(list, info.Mode().Perm().String()[1:]+" "+inside)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

const serviceable = `[bot]
data_dir = "data" # here
[persona]
path = "persona/mira.toml"
[[engine]]
provider = "openai"
model = "m"
api_key = "env:OPENAI_KEY"
[interfaces.telegram]
token = "file:telegram_token"
[[plugins.mcp.server]]
name = "files"
command = ["npx", "-y", "server"]
env = {KEY = "file:keys/files"}
[[plugins.mcp.server]]
name = "web"
url = "https://tools.example.org"
headers = {X-Key = "file:web_key"}
`

// serviceHome is a folder with a bot that is to become a service.
func serviceHome(t *testing.T) {
	t.Helper()
	emptyMachine(t)
	if err := os.MkdirAll("persona", 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, "config.toml", serviceable)
	write(t, "persona/mira.toml", "name = \"Mira\"\n")
	write(t, "telegram_token", telegramtest.Token)
	write(t, "web_key", "k")
}

func TestServiceInstall(t *testing.T) {
	serviceHome(t)
	root := t.TempDir()
	status, out, errs := installed(t, root, "dry", "tools")
	if status != 0 || len(files(t, root)) != 0 || !strings.Contains(out, "would write "+root+"/etc/systemd/system/synthbot.service.d/tools.conf (0644)") || strings.Contains(out, telegramtest.Token) {
		t.Errorf("dry: %d, %s%s%v", status, out, errs, files(t, root))
	}
	status, out, errs = installed(t, root)
	want := []string{
		"rw-r----- etc/synthbot/config.toml", "rw-r--r-- etc/synthbot/persona/mira.toml", "rw------- etc/synthbot/telegram_token", "rw------- etc/synthbot/web_key",
		"rw-r--r-- etc/systemd/system/synthbot.service", "rw-r--r-- etc/sysusers.d/synthbot.conf", "rw-r--r-- etc/tmpfiles.d/synthbot.conf", "rwxr-xr-x usr/local/bin/synthbot",
	}
	if got := files(t, root); status != 0 || errs != "" || !slices.Equal(got, want) {
		t.Errorf("install: %d, %s, %q", status, errs, got)
	}
	for _, said := range []string{
		"!        the service has no env:OPENAI_KEY: put the secret into /etc/synthbot/openai_key, and write file:openai_key",
		"!        the bot will start npx: ", "!        file:keys/files does not become a credential", "!        the database was in data: ", "systemctl enable --now synthbot",
	} {
		if !strings.Contains(out, said) {
			t.Errorf("it does not say %q:\n%s", said, out)
		}
	}
	for file, lines := range map[string][]string{
		"etc/systemd/system/synthbot.service": {
			"ExecStart=/usr/local/bin/synthbot run -c /etc/synthbot/config.toml", "ExecPaths=/usr/local/bin/synthbot", "DynamicUser=no", "User=synthbot", "ConfigurationDirectoryMode=0750",
			"LoadCredential=telegram_token:/etc/synthbot/telegram_token", "LoadCredential=web_key:/etc/synthbot/web_key", "RestartPreventExitStatus=2",
			"After=network-online.target time-sync.target nss-lookup.target", "StateDirectory=synthbot",
		},
		"etc/sysusers.d/synthbot.conf": {`u synthbot - "synthbot chat bot" /var/lib/synthbot`},
		"etc/tmpfiles.d/synthbot.conf": {"z /etc/synthbot 0750 root synthbot -", "z /etc/synthbot/config.toml 0640 root synthbot -", "z /etc/synthbot/telegram_token 0600 root root -"},
		"etc/synthbot/config.toml":     {`data_dir = "/var/lib/synthbot" # here`, `token = "file:telegram_token"`},
	} {
		text, err := os.ReadFile(filepath.Join(root, file))
		for _, line := range lines {
			if err != nil || !slices.Contains(strings.Split(string(text), "\n"), line) {
				t.Errorf("%s has no line %q (%v)", file, line, err)
			}
		}
		if strings.Contains(string(text), "discord_token") || strings.Contains(string(text), "DynamicUser=yes") {
			t.Errorf("%s is as it was shipped", file)
		}
	}
	holdUnit(t, filepath.Join(root, "etc/systemd/system/synthbot.service"))
}

// TestServiceSecretsNames: a secret whose name systemd would ignore does not become a credential, and that is said.
func TestServiceSecretsNames(t *testing.T) {
	serviceHome(t)
	write(t, "config.toml", strings.Replace(serviceable, "file:telegram_token", "file:töken", 1))
	write(t, "töken", telegramtest.Token)
	root := t.TempDir()
	_, out, _ := installed(t, root)
	if !strings.Contains(out, "file:töken cannot become a credential") {
		t.Errorf("it does not say so:\n%s", out)
	}
	unit, err := os.ReadFile(filepath.Join(root, "etc/systemd/system/synthbot.service"))
	if err != nil || strings.Contains(string(unit), "töken") || !strings.Contains(string(unit), "LoadCredential=web_key") {
		t.Errorf("the unit is %v\n%s", err, unit)
	}
}

// TestServiceInstallAgain: once more changes nothing, and what is there is not
// written over.
func TestServiceInstallAgain(t *testing.T) {
	serviceHome(t)
	root := t.TempDir()
	if status, out, errs := installed(t, root); status != 0 {
		t.Fatalf("%d, %s%s", status, out, errs)
	}
	write(t, "telegram_token", "another")
	if status, out, errs := installed(t, root); status != 0 || strings.Contains(out, "written") || !strings.Contains(out, "kept     "+root+"/etc/synthbot/config.toml") {
		t.Errorf("again: %d, %s%s", status, out, errs)
	}
	if err := os.MkdirAll(filepath.Join(root, "usr/lib/systemd/system"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "usr/lib/systemd/system/synthbot.service"), "[Unit]\n")
	if status, out, errs := installed(t, root, "there", "tools", "bot"); status != 0 || !strings.Contains(out, "a package installed") || strings.Contains(out, "will start") || !strings.Contains(out, "same     "+root+"/etc/synthbot/config.toml") {
		t.Errorf("with tools, as somebody else: %d, %s%s", status, out, errs)
	}
	if text, err := os.ReadFile(filepath.Join(root, "etc/synthbot/telegram_token")); err != nil || string(text) != telegramtest.Token {
		t.Errorf("the token became %q, %v", text, err)
	}
	for _, file := range []string{"etc/systemd/system/synthbot.service.d/tools.conf", "etc/systemd/system/synthbot.service.bak"} {
		if !exists(filepath.Join(root, file)) {
			t.Errorf("there is no %s", file)
		}
	}
}

// holdUnit holds an installed unit to what systemd says of it.
func holdUnit(t *testing.T, unit string) {
	t.Helper()
	help, err := exec.Command("systemd-analyze", "security", "--help").Output()
	if err != nil || !strings.Contains(string(help), "--offline") {
		t.Log("there is no systemd-analyze of version 250 or later")
		return
	}
	if out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=15", unit).CombinedOutput(); err != nil {
		t.Errorf("its exposure is above 1.5: %v: %s", err, out)
	}
}

func TestServiceInstallRefuses(t *testing.T) {
	emptyMachine(t)
	if status, _, errs := installed(t, t.TempDir()); status != statusUsage || !strings.Contains(errs, "synthbot init -c /etc/synthbot/config.toml") {
		t.Errorf("without a configuration: %d, %s", status, errs)
	}
	write(t, "config.toml", "[bot]\nnmae = 1\n")
	if status, _, errs := installed(t, t.TempDir()); status != statusUsage || !strings.Contains(errs, "config.toml:2: bot.nmae") {
		t.Errorf("with a wrong one: %d, %s", status, errs)
	}
	write(t, "config.toml", "")
	for _, user := range []string{"root", "a b", "-x"} {
		if status, _, errs := installed(t, t.TempDir(), user); status != statusUsage || !strings.Contains(errs, "--user") {
			t.Errorf("as %q: %d, %s", user, status, errs)
		}
	}
	root := t.TempDir()
	write(t, "config.toml", "[interfaces.telegram]\ntoken = \"file:nothing\"\n")
	if status, _, errs := installed(t, root); status != statusFailed || !strings.Contains(errs, "nothing: no such file") || exists(filepath.Join(root, "etc/systemd")) {
		t.Errorf("without its secret: %d, %s", status, errs)
	}
}
