package commands

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// manualCommand prints the manual page, which the Debian package contains. The command is hidden;
// `synthbot manual | man -l -` shows the page without the package.
func manualCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use: "manual", Short: "Print the manual page", Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := io.WriteString(p.Out, manual(c.Root()))
			return err
		},
	}
}

// manualEnd holds the sections that the definitions of the commands do not contain.
const manualEnd = `.SH EXIT STATUS
.TP
.B 0
Done.
.TP
.B 1
Something failed while running.
.TP
.B 2
Wrong usage or configuration; trying again does not help.
.SH FILES
.TP
.I /etc/synthbot/config.toml
The configuration, if neither \-\-config nor SYNTHBOT_CONFIG names another and
.I ./config.toml
does not exist. It contains each setting with a description and its default.
.TP
.I /var/lib/synthbot
The database of a bot that runs as a service.
.SH SEE ALSO
.BR systemctl (1),
.BR journalctl (1)
`

// manual returns the page in the format of man(7), from the definitions that --help uses. It has
// no date, so that builds are reproducible.
func manual(root *cobra.Command) string {
	var b strings.Builder
	title := strings.ToUpper(root.Name())
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"%s %s\" \"User Commands\"\n", title, root.Name(), roff(version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(root.Name()), roff(strings.ToLower(root.Short[:1])+root.Short[1:]))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n.I command\n[\\fIarguments\\fR] [\\fIoptions\\fR]\n", roff(root.Name()))
	b.WriteString(".SH COMMANDS\n")
	for _, c := range root.Commands() {
		manualOf(&b, c)
	}
	b.WriteString(manualEnd)
	return b.String()
}

func manualOf(b *strings.Builder, c *cobra.Command) {
	if !c.IsAvailableCommand() || c.Name() == "help" {
		return
	}
	if c.Runnable() {
		text := strings.TrimSpace(cmp.Or(c.Long, c.Short))
		if !strings.HasSuffix(text, ".") {
			text += "." // Short has none
		}
		c.InitDefaultHelpFlag()
		fmt.Fprintf(b, ".SS %s\n%s\n", roff(c.UseLine()), strings.ReplaceAll(roff(text), "\n\n", "\n.PP\n"))
		fmt.Fprintf(b, ".PP\n.nf\n%s.fi\n", roff(c.LocalFlags().FlagUsagesWrapped(76)))
	}
	for _, below := range c.Commands() {
		manualOf(b, below)
	}
}

// roff escapes what could be read as a request, and hyphens, so that options can be copied.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
