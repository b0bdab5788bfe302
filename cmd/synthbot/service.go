package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"synthbot/daemon"
	"synthbot/setup"
	"synthbot/systemd"
)

// serviceBinary is where a service has the program.
const serviceBinary = "/usr/local/bin/synthbot"

func serviceCommand(p *program) *cobra.Command {
	c := group(&cobra.Command{Use: "service", Short: "Let systemd run the daemon"})
	i := &installer{out: p.Out}
	install := &cobra.Command{
		Use: "install", Short: "Write the unit, the user and the modes of files, and say what to type next",
		Args: cobra.NoArgs,
		Long: "Writes a hardened unit, a file for systemd-sysusers with the user, one for systemd-tmpfiles\n" +
			"with the modes of the configuration and the secrets, and hands secrets over as credentials.\n" +
			"A configuration from elsewhere is copied to /etc/synthbot, with its personas and secrets; what\n" +
			"is there already is not written over. Nothing is started.",
		RunE: func(*cobra.Command, []string) error { return i.install(p) },
	}
	fs := install.Flags()
	fs.StringVar(&i.user, "user", "synthbot", "the `name` of the user that the daemon runs as")
	fs.StringVar(&i.root, "root", "", "a `folder` to write below, in place of this machine's root")
	fs.BoolVar(&i.tools, "tools", false, "let the bot start programs, such as tool servers, by a drop-in")
	fs.BoolVar(&i.dry, "dry-run", false, "write nothing; show what would be written")
	c.AddCommand(p.fileFlag(install))
	file := install.Flags().Lookup("config")
	file.Usage = "configuration `file` (default " + daemon.ServiceConfig + ", $SYNTHBOT_CONFIG, ./config.toml)"
	return c
}

// installer writes the files of a service.
type installer struct {
	user, root string
	tools, dry bool
	exe        string // the binary to run
	out        io.Writer

	secrets  []string // credentials, by name
	programs []string // that the bot starts
	notes    []string
}

// install makes the configuration a service's, and writes all that systemd needs.
func (i *installer) install(p *program) error {
	if !regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,30}$`).MatchString(i.user) || i.user == "root" {
		return daemon.Usagef("--user: %q is no name for a service's user", i.user)
	}
	if i.root == "" && !i.dry && os.Geteuid() != 0 {
		return daemon.Usagef("service install: it writes to /etc: run it as root (sudo synthbot service install)")
	}
	if i.exe == "" {
		exe, err := os.Executable()
		if err != nil {
			return err
		}
		i.exe = exe
	}
	from := i.source(p)
	data, err := os.ReadFile(from)
	if err != nil {
		const text = "service install: %w; `synthbot init -c %s` makes a configuration"
		return daemon.Usagef(text, err, daemon.ServiceConfig)
	}
	c, err := p.Parse(from, string(data))
	if err != nil {
		return err
	}
	i.survey(c)
	configure := func() error { return i.configure(c, string(data)) }
	for _, step := range []func() error{configure, i.binary, i.units, i.next} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// source is the configuration that is to be the service's.
func (i *installer) source(p *program) string {
	if p.File == "" && existing(i.at(daemon.ServiceConfig)) != "" {
		return i.at(daemon.ServiceConfig)
	}
	return cmp.Or(p.ConfigFile(), i.at(daemon.ServiceConfig))
}

// at is a path of the machine below root.
func (i *installer) at(path string) string {
	if i.root == "" {
		return path
	}
	return filepath.Join(i.root, path)
}

// survey looks at what the configuration wants of the machine.
func (i *installer) survey(c *daemon.Config) {
	daemon.WalkConfig(c, func(key, text string) {
		if key == "command" {
			i.programs = append(i.programs, text)
			return
		}
		file, ok := strings.CutPrefix(text, "file:")
		switch {
		case strings.HasPrefix(text, "env:"):
			name := strings.ToLower(strings.TrimPrefix(text, "env:"))
			i.note("the service has no %s: put the secret into /etc/synthbot/%s, and write file:%s", text, name, name)
		case ok && filepath.Base(file) == file:
			if !slices.Contains(i.secrets, file) {
				i.secrets = append(i.secrets, file)
			}
		case ok:
			i.note("file:%s is not handed over as a credential: the user %s must be able to read it, "+
				"and it may not be below /home", file, i.user)
		}
	})
	slices.Sort(i.secrets)
	unit := i.at("/usr/lib/systemd/system/synthbot.service")
	if existing(unit) != "" {
		i.note("a package brought %s: the unit in /etc goes before it", unit)
	}
	if len(i.programs) > 0 && !i.tools {
		i.note("the bot is to start %s: the unit lets nothing be run but synthbot itself; "+
			"--tools adds a drop-in for it", strings.Join(i.programs, ", "))
	}
}

func (i *installer) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(i.notes, text) {
		i.notes = append(i.notes, text)
	}
}

// configure brings the configuration and what lies beside it to where the service
// finds it, and lets the database live in its state directory.
func (i *installer) configure(c *daemon.Config, text string) error {
	there := i.at(daemon.ServiceConfig)
	was := c.Bot.DataDir
	if was != daemon.ServiceState {
		f, err := setup.Open(text)
		if err == nil {
			err = f.Set([]string{"bot"}, "data_dir", setup.Text(daemon.ServiceState))
		}
		if err != nil {
			return daemon.Usagef("%s: %w", c.File, err)
		}
		text = f.String()
		if was != "" {
			i.note("the database was in %s: `synthbot backup -c %s copy.db`, then `synthbot restore -c %s copy.db` "+
				"before the first start, takes it along", c.Beside(was), c.File, daemon.ServiceConfig)
		}
	}
	errs := []error{}
	if c.File != there {
		for _, file := range i.beside(c) {
			errs = append(errs, i.bring(c.Beside(file), filepath.Join(filepath.Dir(there), file), 0o644))
		}
		for _, name := range i.secrets {
			errs = append(errs, i.bring(c.Beside(name), filepath.Join(filepath.Dir(there), name), 0o600))
		}
		if existing(there) != "" {
			return errors.Join(append(errs, i.say("kept", there, 0))...)
		}
	}
	return errors.Join(append(errs, i.put(there, text, 0o640))...)
}

// beside are the files that the configuration names and that lie below it.
func (i *installer) beside(c *daemon.Config) (files []string) {
	for _, file := range c.Personas.Files {
		if filepath.IsLocal(file) && !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	return files
}

// bring copies a file to where none is.
func (i *installer) bring(from, to string, mode fs.FileMode) error {
	if existing(to) != "" {
		return i.say("kept", to, 0)
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if i.dry {
		return i.say("would write", to, mode)
	}
	return i.write(to, data, mode)
}

// binary brings the program to where it may be run.
func (i *installer) binary() error {
	if slices.Contains([]string{"/usr/bin", "/usr/local/bin", "/opt/synthbot"}, filepath.Dir(i.exe)) {
		return nil
	}
	data, err := os.ReadFile(i.exe)
	if err != nil {
		return err
	}
	i.exe = serviceBinary
	if there, err := os.ReadFile(i.at(serviceBinary)); err == nil && bytes.Equal(there, data) {
		return i.say("same", i.at(serviceBinary), 0)
	}
	if i.dry {
		return i.say("would write", i.at(serviceBinary), 0o755)
	}
	return i.write(i.at(serviceBinary), data, 0o755)
}

// units writes what systemd reads.
func (i *installer) units() error {
	user := fmt.Sprintf("u %s - \"synthbot chat bot\" %s\n", i.user, daemon.ServiceState)
	errs := []error{
		i.put(i.at("/etc/sysusers.d/synthbot.conf"), user, 0o644),
		i.put(i.at("/etc/tmpfiles.d/synthbot.conf"), i.modes(), 0o644),
		i.put(i.at("/etc/systemd/system/synthbot.service"), i.unit(), 0o644),
	}
	if i.tools {
		errs = append(errs, i.put(i.at("/etc/systemd/system/synthbot.service.d/tools.conf"), systemd.Tools(), 0o644))
	}
	return errors.Join(errs...)
}

// modes says who may read what: the user the configuration, and root alone the
// secrets.
func (i *installer) modes() string {
	dir := filepath.Dir(daemon.ServiceConfig)
	lines := []string{
		"# Who may read the configuration of synthbot. Secrets are handed over at each start.",
		"z " + dir + " 0750 root " + i.user + " -",
		"z " + daemon.ServiceConfig + " 0640 root " + i.user + " -",
	}
	for _, name := range i.secrets {
		lines = append(lines, "z "+filepath.Join(dir, name)+" 0600 root root -")
	}
	return strings.Join(lines, "\n") + "\n"
}

// unit fits the shipped unit to this machine.
func (i *installer) unit() string {
	var lines []string
	for line := range strings.SplitSeq(systemd.Unit(), "\n") {
		switch {
		case strings.HasPrefix(line, "ExecStart="):
			line = "ExecStart=" + i.exe + " run -c " + daemon.ServiceConfig
		case strings.HasPrefix(line, "ExecPaths="):
			line = "ExecPaths=" + i.exe
		case line == "DynamicUser=yes":
			line = "DynamicUser=no"
		case strings.HasPrefix(line, "User="):
			line = "User=" + i.user
		case strings.HasPrefix(line, "ConfigurationDirectory="):
			line += "\nConfigurationDirectoryMode=0750"
		case strings.HasPrefix(line, "SetCredential="), strings.HasPrefix(line, "LoadCredential="):
			continue
		case strings.HasPrefix(line, "# Encrypted at rest"):
			lines = append(lines, i.credentials()...)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func (i *installer) credentials() (lines []string) {
	for _, name := range i.secrets {
		lines = append(lines, "LoadCredential="+name+":"+filepath.Join(filepath.Dir(daemon.ServiceConfig), name))
	}
	return lines
}

// put writes a text, keeping a former one.
func (i *installer) put(path, text string, mode fs.FileMode) error {
	before, err := os.ReadFile(path)
	switch {
	case err == nil && string(before) == text:
		return i.say("same", path, 0)
	case i.dry:
		return errors.Join(i.say("would write", path, mode), i.show(path, text))
	case err == nil:
		if info, err := os.Stat(path); err == nil && path == i.at(daemon.ServiceConfig) {
			mode = info.Mode().Perm()&0o640 | 0o600
		}
		if err := i.write(path+".bak", before, 0o600); err != nil {
			return err
		}
	}
	return i.write(path, []byte(text), mode)
}

// show prints a text that is not written, but for the configuration, which may
// hold a secret.
func (i *installer) show(path, text string) error {
	if path == i.at(daemon.ServiceConfig) {
		return nil
	}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if line != "" && !strings.HasPrefix(line, "#") {
			fmt.Fprintf(i.out, "    %s\n", line)
		}
	}
	return nil
}

func (i *installer) write(path string, data []byte, mode fs.FileMode) error {
	if err := writeWhole(path, data, mode); err != nil {
		return err
	}
	return i.say("written", path, mode)
}

func (i *installer) say(what, path string, mode fs.FileMode) (err error) {
	if mode == 0 {
		_, err = fmt.Fprintf(i.out, "%-8s %s\n", what, path)
	} else {
		_, err = fmt.Fprintf(i.out, "%-8s %s (%04o)\n", what, path, mode)
	}
	return err
}

// next says what is to be typed now.
func (i *installer) next() error {
	for _, n := range i.notes {
		fmt.Fprintf(i.out, "!        %s\n", oneLine(n))
	}
	_, err := fmt.Fprintf(i.out, `
Next:
  systemd-sysusers /etc/sysusers.d/synthbot.conf
  systemd-tmpfiles --create /etc/tmpfiles.d/synthbot.conf
  synthbot check --online -c %s
  systemctl daemon-reload
  systemctl enable --now synthbot
  journalctl -fu synthbot
`, daemon.ServiceConfig)
	return err
}
