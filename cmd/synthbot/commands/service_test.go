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

// installService installs a service below root, with the configuration in the working directory. Words in more:
// "tools" and "dry" are flags, "there" passes no configuration file, another word is the user.
func installService(t *testing.T, root string, more ...string) (status int, out, errs string) {
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

// serviceHome creates a folder with a bot that can be installed as a service.
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
	status, out, errs := installService(t, root, "dry", "tools")
	if status != 0 || len(files(t, root)) != 0 || !strings.Contains(out, "would write "+root+"/etc/systemd/system/synthbot.service.d/tools.conf (0644)") || strings.Contains(out, telegramtest.Token) {
		t.Errorf("dry run: status %d, %s%s%v", status, out, errs, files(t, root))
	}
	status, out, errs = installService(t, root)
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
			t.Errorf("the output lacks %q:\n%s", said, out)
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
			t.Errorf("%s still has lines of the shipped file", file)
		}
	}
	checkUnit(t, filepath.Join(root, "etc/systemd/system/synthbot.service"))
}

// TestServiceSecretsNames checks that a secret whose name systemd ignores does not become a credential, and
// that the output says so.
func TestServiceSecretsNames(t *testing.T) {
	serviceHome(t)
	write(t, "config.toml", strings.Replace(serviceable, "file:telegram_token", "file:töken", 1))
	write(t, "töken", telegramtest.Token)
	root := t.TempDir()
	_, out, _ := installService(t, root)
	if !strings.Contains(out, "file:töken cannot become a credential") {
		t.Errorf("the output lacks the note:\n%s", out)
	}
	unit, err := os.ReadFile(filepath.Join(root, "etc/systemd/system/synthbot.service"))
	if err != nil || strings.Contains(string(unit), "töken") || !strings.Contains(string(unit), "LoadCredential=web_key") {
		t.Errorf("the unit: %v\n%s", err, unit)
	}
}

// TestServiceInstallAgain checks that a second installation changes nothing and keeps existing files.
func TestServiceInstallAgain(t *testing.T) {
	serviceHome(t)
	root := t.TempDir()
	if status, out, errs := installService(t, root); status != 0 {
		t.Fatalf("%d, %s%s", status, out, errs)
	}
	write(t, "telegram_token", "another")
	if status, out, errs := installService(t, root); status != 0 || strings.Contains(out, "written") || !strings.Contains(out, "kept     "+root+"/etc/synthbot/config.toml") {
		t.Errorf("second installation: status %d, %s%s", status, out, errs)
	}
	if err := os.MkdirAll(filepath.Join(root, "usr/lib/systemd/system"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "usr/lib/systemd/system/synthbot.service"), "[Unit]\n")
	if status, out, errs := installService(t, root, "there", "tools", "bot"); status != 0 || !strings.Contains(out, "a package installed") || strings.Contains(out, "will start") || !strings.Contains(out, "same     "+root+"/etc/synthbot/config.toml") {
		t.Errorf("with tools, as another user: status %d, %s%s", status, out, errs)
	}
	if text, err := os.ReadFile(filepath.Join(root, "etc/synthbot/telegram_token")); err != nil || string(text) != telegramtest.Token {
		t.Errorf("the token file: got %q, %v, want it unchanged", text, err)
	}
	for _, file := range []string{"etc/systemd/system/synthbot.service.d/tools.conf", "etc/systemd/system/synthbot.service.bak"} {
		if !exists(filepath.Join(root, file)) {
			t.Errorf("%s is missing", file)
		}
	}
}

// checkUnit checks the security of an installed unit with systemd-analyze.
func checkUnit(t *testing.T, unit string) {
	t.Helper()
	help, err := exec.Command("systemd-analyze", "security", "--help").Output()
	if err != nil || !strings.Contains(string(help), "--offline") {
		t.Log("systemd-analyze is missing or older than version 250")
		return
	}
	if out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=15", unit).CombinedOutput(); err != nil {
		t.Errorf("the unit's exposure is above 1.5: %v: %s", err, out)
	}
}

func TestServiceInstallRefuses(t *testing.T) {
	emptyMachine(t)
	if status, _, errs := installService(t, t.TempDir()); status != statusUsage || !strings.Contains(errs, "synthbot init -c /etc/synthbot/config.toml") {
		t.Errorf("without a configuration: %d, %s", status, errs)
	}
	write(t, "config.toml", "[bot]\nnmae = 1\n")
	if status, _, errs := installService(t, t.TempDir()); status != statusUsage || !strings.Contains(errs, "config.toml:2: bot.nmae") {
		t.Errorf("with an invalid configuration: status %d, %s", status, errs)
	}
	write(t, "config.toml", "")
	for _, user := range []string{"root", "a b", "-x"} {
		if status, _, errs := installService(t, t.TempDir(), user); status != statusUsage || !strings.Contains(errs, "--user") {
			t.Errorf("user %q: status %d, %s", user, status, errs)
		}
	}
	root := t.TempDir()
	write(t, "config.toml", "[interfaces.telegram]\ntoken = \"file:nothing\"\n")
	if status, _, errs := installService(t, root); status != statusFailed || !strings.Contains(errs, "nothing: no such file") || exists(filepath.Join(root, "etc/systemd")) {
		t.Errorf("with a missing secret: status %d, %s", status, errs)
	}
}

// TestServiceFiles checks that every file that the configuration names is copied, that folders and other files are
// noted, and that faults of the installed configuration are reported.
func TestServiceFiles(t *testing.T) {
	serviceHome(t)
	write(t, "config.toml", serviceable+`[speech.in]
provider = "program"
program = ["whisper-cli", "{file}"]
[[plugins.lorebook.book]]
path = "lore/harbour.json"
[[plugins.lorebook.book]]
path = "lore/harbour.json"
places = ["telegram/1"]
[[plugins.blueprint.source]]
path = "tea.json"
[[plugins.knowledge.source]]
name = "handbook"
path = "docs"
[interfaces.telegram.webhook]
certificate = "cert.pem"
key = "key.pem"
`)
	for _, dir := range []string{"lore", "docs"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, "lore/harbour.json", `{"entries":[{"keys":["harbour"],"content":"It is old."}]}`)
	write(t, "tea.json", `{"name":"tea","version":"1.0.0","description":"Tea.","endpoint":"https://tea.example.org","capabilities":{"tools":[`+
		`{"name":"brew","description":"Brew tea.","inputSchema":{"type":"object","properties":{"cups":{"type":"integer"}}}}]}}`)
	write(t, "cert.pem", "public")
	write(t, "key.pem", "private")
	root := t.TempDir()
	status, out, errs := installService(t, root)
	etc := filepath.Join(root, "etc/synthbot")
	if status != statusUsage || !strings.Contains(errs, "the bot cannot start with "+etc+"/config.toml yet") || !strings.Contains(out, "plugins.knowledge.source[0].path: "+etc+"/docs cannot be read") {
		t.Errorf("with a folder left to copy: status %d, %s%s", status, out, errs)
	}
	for _, said := range []string{"!        the folder docs is not copied: copy it to /etc/synthbot/docs, or ", "the bot will start whisper-cli, npx: "} {
		if !strings.Contains(out, said) {
			t.Errorf("the output lacks %q:\n%s", said, out)
		}
	}
	got := files(t, etc)
	for _, want := range []string{"rw-r--r-- lore/harbour.json", "rw-r--r-- tea.json", "rw-r--r-- cert.pem", "rw-r----- key.pem"} {
		if !slices.Contains(got, want) {
			t.Errorf("there is no %s in %q", want, got)
		}
	}
	modes, err := os.ReadFile(filepath.Join(root, "etc/tmpfiles.d/synthbot.conf"))
	if err != nil || !strings.Contains(string(modes), "z /etc/synthbot/key.pem 0640 root synthbot -\n") {
		t.Errorf("the service cannot read its key: %s, %v", modes, err)
	}
	if _, help, _ := runLine(t, "", "service", "install", "--help"); !strings.Contains(help, "the exit status is 2") {
		t.Errorf("the help does not name the status:\n%s", help)
	}
	if err := os.Mkdir(filepath.Join(etc, "docs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if status, out, errs := installService(t, root, "there"); status != 0 {
		t.Errorf("after the folder was copied: status %d, %s%s", status, out, errs)
	}
	if again, err := os.ReadFile(filepath.Join(root, "etc/tmpfiles.d/synthbot.conf")); err != nil || string(again) != string(modes) {
		t.Errorf("the modes changed: %s, %v", again, err)
	}
}
