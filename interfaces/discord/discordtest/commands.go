package discordtest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const (
	chatCommand    = 1
	messageCommand = 3
)

type appCommand struct {
	Name       string            `json:"name"`
	Brief      string            `json:"description"`
	Briefs     map[string]string `json:"description_localizations"`
	Type       int               `json:"type"`
	Options    []appOption       `json:"options"`
	Permission *string           `json:"default_member_permissions"`
	Contexts   []int             `json:"contexts"`
}

type appOption struct {
	Type     int                            `json:"type"`
	Name     string                         `json:"name"`
	Brief    string                         `json:"description"`
	Required bool                           `json:"required"`
	Choices  []struct{ Name, Value string } `json:"choices"`
	Complete bool                           `json:"autocomplete"`
}

var (
	commandName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[-_'\p{Ll}\p{Lm}\p{Lo}\p{N}\p{Devanagari}\p{Thai}]{1,32}$`)
	})
	language = regexp.MustCompile(`^(id|da|de|en-GB|en-US|es-ES|es-419|fr|hr|it|lt|hu|nl|no|pl|pt-BR|ro|fi|sv-SE|vi|tr|cs|el|bg|ru|uk|hi|th|zh-CN|ja|zh-TW|ko)$`)
)

// Commands returns the names of the commands that the bot registered for a guild or, with "",
// globally. Those of the context menu of messages begin with "> ".
func (s *Server) Commands(guild string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, c := range s.commands[guild] {
		if c.Type == messageCommand {
			c.Name = "> " + c.Name
		}
		names = append(names, c.Name)
	}
	return names
}

// putCommands replaces the commands of a guild, or the global ones.
func (s *Server) putCommands(call *Call, ids []string) (any, *failure) {
	var list []appCommand
	guild := ""
	if len(ids) > 1 {
		guild = ids[1]
	}
	switch {
	case ids[0] != AppID:
		return nil, &failure{status: 404, code: 10002, text: "Unknown Application"}
	case guild != "" && s.guild(guild) == nil:
		return nil, &failure{status: 403, code: 50001, text: "Missing Access"}
	case json.Unmarshal(call.Body, &list) != nil:
		return nil, malformed("commands", "LIST_TYPE_CONVERT")
	}
	counts, seen := map[int]int{}, map[string]bool{}
	for i := range list {
		c := &list[i]
		if c.Type == 0 {
			c.Type = chatCommand
		}
		counts[c.Type]++
		key := strconv.Itoa(c.Type) + c.Name
		reason := c.fault(guild)
		if reason != "" || seen[key] {
			return nil, malformed(strconv.Itoa(i)+"."+c.Name, "APPLICATION_COMMANDS "+reason)
		}
		seen[key] = true
	}
	if counts[chatCommand] > 100 || counts[messageCommand] > 15 {
		return nil, &failure{status: 400, code: 30032, text: "Maximum number of application commands reached"}
	}
	s.commands[guild] = list
	return json.RawMessage(call.Body), nil
}

// named reports whether a command or an option has a valid name and description.
func named(name, brief string) bool {
	return commandName().MatchString(name) && units(brief) >= 1 && units(brief) <= 100
}

// fault returns what is wrong with a command; "" if nothing is.
func (c *appCommand) fault(guild string) string {
	switch {
	case c.Type == messageCommand:
		if c.Brief != "" || len(c.Options) > 0 || units(c.Name) < 1 || units(c.Name) > 32 {
			return "a menu has a name and nothing else"
		}
	case c.Type != chatCommand || !named(c.Name, c.Brief) || len(c.Options) > 25:
		return "type, name or description"
	}
	for tag, brief := range c.Briefs {
		if !language.MatchString(tag) || units(brief) < 1 || units(brief) > 100 {
			return "a language " + tag
		}
	}
	p := c.Permission
	if p != nil {
		if _, err := strconv.ParseUint(*p, 10, 64); err != nil {
			return "default_member_permissions"
		}
	}
	if guild != "" && c.Contexts != nil {
		return "contexts are for global commands"
	}
	for _, x := range c.Contexts {
		if x < 0 || x > 2 {
			return "contexts"
		}
	}
	return c.options()
}

func (c *appCommand) options() string {
	seen, optional := map[string]bool{}, false
	for _, o := range c.Options {
		bad := o.Type < 1 || o.Type > 11 || !named(o.Name, o.Brief) || len(o.Choices) > 25
		for _, x := range o.Choices {
			bad = bad || units(x.Name) < 1 || units(x.Name) > 100 || units(x.Value) < 1 || units(x.Value) > 100
		}
		if bad || seen[o.Name] || o.Complete && len(o.Choices) > 0 || o.Required && optional {
			return "option " + o.Name
		}
		seen[o.Name], optional = true, optional || !o.Required
	}
	return ""
}

// offered returns a command, if a user sees it in a channel.
func (s *Server) offered(channel, person, name string, kind int) (*appCommand, error) {
	c := s.channels[channel]
	context := 1
	switch {
	case c.Guild != "":
		context = 0
	case c.Type == Group:
		context = 2
	}
	for _, scope := range slices.Compact([]string{c.Guild, ""}) {
		for i := range s.commands[scope] {
			cmd := &s.commands[scope][i]
			if cmd.Name != name || cmd.Type != kind || scope == "" && cmd.Contexts != nil && !slices.Contains(cmd.Contexts, context) {
				continue
			}
			if !s.sees(c, person, cmd.Permission) {
				return nil, fmt.Errorf("%s does not see %q", person, name)
			}
			return cmd, nil
		}
	}
	return nil, fmt.Errorf("there is no command %q in %s; there are %s", name, channel, strings.Join(s.names(), ", "))
}

func (s *Server) sees(c *Channel, person string, permission *string) bool {
	if permission == nil || c.Guild == "" {
		return true
	}
	want, _ := strconv.ParseUint(*permission, 10, 64)
	power := s.power(c, person)
	if want == 0 {
		return power&MayAdminister != 0
	}
	return power&want == want
}

func (s *Server) names() (names []string) {
	for scope, list := range s.commands {
		for _, c := range list {
			names = append(names, scope+"/"+c.Name)
		}
	}
	return names
}
