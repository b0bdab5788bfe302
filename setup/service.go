package setup

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"synthbot/config"
	"synthbot/core/secret"
	"synthbot/core/txt"
	"synthbot/daemon"
	"synthbot/systemd"
)

const serviceBinary = "/usr/local/bin/synthbot"

// Service implements `synthbot service install`. The exported fields are the flags.
type Service struct {
	User, Root    string
	Tools, DryRun bool
	Exe           string // the binary of the service; "": the running one

	output
	secrets  []string // names of credentials
	copied   []string // names of other files
	private  []string // other files in the service's folder that hold secrets
	programs []string // that the bot will start
	notes    []string
}

var serviceUser = txt.Pattern(`^[a-z_][a-z0-9_-]{0,30}$`)

// Install copies the configuration to the folder of a service, and writes the files for systemd. It starts nothing.
func (s *Service) Install(env *daemon.Env) error {
	if !serviceUser().MatchString(s.User) || s.User == "root" {
		return daemon.Usagef("--user: %q is not a name for the user of a service", s.User)
	}
	if s.Root == "" && !s.DryRun && os.Geteuid() != 0 {
		return daemon.Usagef("service install: writes to /etc; run it as root (sudo synthbot service install)")
	}
	if s.Exe == "" {
		exe, err := os.Executable()
		if err != nil {
			return err
		}
		s.Exe = exe
	}
	s.output = output{w: env.Out, dry: s.DryRun}
	from := cmp.Or(env.ConfigFile(), s.at(daemon.ServiceConfig))
	if env.File == "" && exists(s.at(daemon.ServiceConfig)) {
		from = s.at(daemon.ServiceConfig)
	}
	if _, err := daemon.RegularFile(from); err != nil {
		return err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		const text = "service install: %w; `synthbot init -c %s` makes a configuration"
		return daemon.Usagef(text, err, daemon.ServiceConfig)
	}
	c, err := env.Parse(from, string(data))
	if err != nil {
		return err
	}
	s.inspectConfig(c)
	if err := s.writeConfig(c, string(data)); err != nil {
		return err
	}
	if err := s.writeBinary(); err != nil {
		return err
	}
	if err := s.writeUnits(); err != nil {
		return err
	}
	err = s.checkInstalled(env)
	return errors.Join(s.printNext(), err)
}

func (s *Service) checkInstalled(env *daemon.Env) error {
	if s.DryRun {
		return nil
	}
	target := s.at(daemon.ServiceConfig)
	text, err := os.ReadFile(target)
	if err != nil {
		return err
	}
	_, err = env.Parse(target, string(text))
	if err == nil {
		return nil
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		s.note("%s", line)
	}
	return daemon.Usagef("service install: the bot cannot start with %s yet; see the lines above", target)
}

// at returns an absolute path below Root.
func (s *Service) at(path string) string { return filepath.Join(s.Root, path) }

func inEtc(name string) string { return filepath.Join(filepath.Dir(daemon.ServiceConfig), name) }

var credentialName = txt.Pattern(`^[A-Za-z0-9._-]{1,255}$`)

// inspectConfig collects the programs and secrets that the configuration names, and notes for the user.
func (s *Service) inspectConfig(c *daemon.Config) {
	c.Walk(func(found config.Setting) {
		switch value := found.Value.Interface().(type) {
		case secret.Secret:
			s.inspectSecret(value.Reveal())
		case map[string]secret.Secret:
			for _, one := range value {
				s.inspectSecret(one.Reveal())
			}
		case []string:
			if found.Kind == "program" && len(value) > 0 {
				s.programs = append(s.programs, value[0])
			}
		}
	})
	for _, f := range c.Files() {
		if f.Private && filepath.IsLocal(f.Path) {
			s.private = append(s.private, filepath.Clean(f.Path))
		}
	}
	s.secrets = slices.Compact(slices.Sorted(slices.Values(s.secrets)))
	unit := s.at("/usr/lib/systemd/system/synthbot.service")
	if exists(unit) {
		s.note("a package installed %s: the unit in /etc overrides it", unit)
	}
	if len(s.programs) > 0 && !s.Tools {
		s.note("the bot will start %s: the unit allows no program but synthbot itself; "+
			"--tools adds a drop-in that does", strings.Join(s.programs, ", "))
	}
}

// inspectSecret adds a secret's file to the credentials, or a note if that is not possible.
func (s *Service) inspectSecret(text string) {
	file, isFile := strings.CutPrefix(text, "file:")
	variable, isVariable := strings.CutPrefix(text, "env:")
	switch {
	case isVariable:
		name := strings.ToLower(variable)
		s.note("the service has no %s: put the secret into /etc/synthbot/%s, and write file:%s", text, name, name)
	case isFile && filepath.Base(file) == file && !credentialName().MatchString(file):
		s.note("file:%s cannot become a credential: systemd takes names of letters from a to z, digits, and . _ - "+
			"alone; rename the file", file)
	case isFile && filepath.Base(file) == file:
		s.secrets = append(s.secrets, file)
	case isFile:
		s.note("file:%s does not become a credential: the user %s must be able to read it, "+
			"and it may not be below /home", file, s.User)
	}
}

func (s *Service) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(s.notes, text) {
		s.notes = append(s.notes, text)
	}
}

// writeConfig copies the configuration and its files to the service's folder, and sets data_dir to its state folder.
func (s *Service) writeConfig(c *daemon.Config, text string) error {
	target, dataDir := s.at(daemon.ServiceConfig), c.Bot.DataDir
	if dataDir != daemon.ServiceState {
		f, _ := Open(text)
		f.set(daemon.ServiceState, "data_dir", "bot")
		if f.err != nil {
			return daemon.Usagef("%s: %w", c.File, f.err)
		}
		text = f.String()
		if dataDir != "" {
			s.note("the database was in %s: before the first start, `synthbot backup -c %s copy.db` and then "+
				"`synthbot restore -c %s copy.db` move it", c.Beside(dataDir), c.File, daemon.ServiceConfig)
		}
	}
	if c.File == target {
		return s.writeText(target, text, 0o640)
	}
	var errs []error
	for _, file := range c.Files() {
		errs = append(errs, s.copyNamed(c, file))
	}
	for _, name := range s.secrets {
		errs = append(errs, s.copyFile(c.Beside(name), s.at(inEtc(name)), 0o600))
	}
	if exists(target) {
		return errors.Join(append(errs, s.print("kept", target, 0))...)
	}
	return errors.Join(append(errs, s.writeText(target, text, 0o640))...)
}

// copyNamed copies a file that the configuration names, once, or adds a note why not.
func (s *Service) copyNamed(c *daemon.Config, f daemon.NamedFile) error {
	name := filepath.Clean(f.Path)
	if !filepath.IsLocal(name) {
		s.note("%s is not copied: the user %s must be able to read it under its absolute path, "+
			"and it may not be below /home (%s)", f.Path, s.User, f.Key)
		return nil
	}
	info, err := os.Stat(c.Beside(name))
	switch {
	case err != nil:
		return err
	case info.IsDir():
		const text = "the folder %s is not copied: copy it to %s, or write its absolute path (%s)"
		s.note(text, f.Path, inEtc(name), f.Key)
		return nil
	case slices.Contains(s.copied, name):
		return nil
	}
	s.copied = append(s.copied, name)
	mode := fs.FileMode(0o644)
	if f.Private {
		mode = 0o640
	}
	return s.copyFile(c.Beside(name), s.at(inEtc(name)), mode)
}

// copyFile copies a file. It does not overwrite an existing one.
func (s *Service) copyFile(from, to string, mode fs.FileMode) error {
	if exists(to) {
		return s.print("kept", to, 0)
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return s.write(to, data, mode)
}

func (s *Service) writeBinary() error {
	if slices.Contains([]string{"/usr/bin", "/usr/local/bin", "/opt/synthbot"}, filepath.Dir(s.Exe)) {
		return nil
	}
	data, err := os.ReadFile(s.Exe)
	if err != nil {
		return err
	}
	s.Exe = serviceBinary
	target := s.at(serviceBinary)
	installed, err := os.ReadFile(target)
	if err == nil && bytes.Equal(installed, data) {
		return s.print("same", target, 0)
	}
	return s.write(target, data, 0o755)
}

func (s *Service) writeUnits() error {
	user := fmt.Sprintf("u %s - \"synthbot chat bot\" %s\n", s.User, daemon.ServiceState)
	errs := []error{
		s.writeText(s.at("/etc/sysusers.d/synthbot.conf"), user, 0o644),
		s.writeText(s.at("/etc/tmpfiles.d/synthbot.conf"), s.modes(), 0o644),
		s.writeText(s.at("/etc/systemd/system/synthbot.service"), s.unit(), 0o644),
	}
	if s.Tools {
		dropIn := s.at("/etc/systemd/system/synthbot.service.d/tools.conf")
		errs = append(errs, s.writeText(dropIn, systemd.Tools(), 0o644))
	}
	return errors.Join(errs...)
}

// modes returns a systemd-tmpfiles file: the user may read the configuration, and only root the secrets.
func (s *Service) modes() string {
	lines := []string{
		"# Who may read the configuration of synthbot. Secrets are passed to it at each start.",
		"z " + filepath.Dir(daemon.ServiceConfig) + " 0750 root " + s.User + " -",
		"z " + daemon.ServiceConfig + " 0640 root " + s.User + " -",
	}
	for _, name := range s.secrets {
		lines = append(lines, "z "+inEtc(name)+" 0600 root root -")
	}
	for _, name := range s.private {
		lines = append(lines, "z "+inEtc(name)+" 0640 root "+s.User+" -")
	}
	return strings.Join(lines, "\n") + "\n"
}

func (s *Service) unit() string {
	var lines []string
	for line := range strings.SplitSeq(systemd.Unit(), "\n") {
		key, _, _ := strings.Cut(line, "=")
		switch {
		case key == "ExecStart":
			line = "ExecStart=" + s.Exe + " run -c " + daemon.ServiceConfig
		case key == "ExecPaths":
			line = "ExecPaths=" + s.Exe
		case line == "DynamicUser=yes":
			line = "DynamicUser=no"
		case key == "User":
			line = "User=" + s.User
		case key == "ConfigurationDirectory":
			line += "\nConfigurationDirectoryMode=0750"
		case key == "SetCredential", key == "LoadCredential":
			continue
		case strings.HasPrefix(line, "# Encrypted at rest"):
			for _, name := range s.secrets {
				lines = append(lines, "LoadCredential="+name+":"+inEtc(name))
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// writeText writes a file, and backs up a former one with another text.
func (s *Service) writeText(path, text string, mode fs.FileMode) error {
	before, err := os.ReadFile(path)
	if err == nil && string(before) == text {
		return s.print("same", path, 0)
	}
	if err == nil && !s.DryRun {
		info, err := os.Stat(path)
		if err == nil && path == s.at(daemon.ServiceConfig) {
			mode = info.Mode().Perm()&0o640 | 0o600
		}
		if err := s.backUp(path, []byte(text)); err != nil {
			return err
		}
	}
	if err := s.write(path, []byte(text), mode); err != nil || !s.DryRun || path == s.at(daemon.ServiceConfig) {
		return err // the configuration may contain a secret
	}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if line != "" && !strings.HasPrefix(line, "#") {
			fmt.Fprintf(s.w, "    %s\n", line)
		}
	}
	return nil
}

func (s *Service) printNext() error {
	for _, note := range s.notes {
		fmt.Fprintf(s.w, "!        %s\n", txt.Line(note))
	}
	_, err := fmt.Fprintf(s.w, `
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
