package discord

import (
	"strings"
	"time"
)

// say puts a person's message into a channel and tells the gateway.
func (s *server) say(channel, who, text string, more ...func(map[string]any)) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channel]
	m := map[string]any{
		"id": s.id(), "channel_id": channel, "content": text, "type": 0, "timestamp": time.Now().UTC().Format(time.RFC3339Nano),
		"author": person(who), "mentions": []any{}, "attachments": []any{}, "embeds": []any{},
	}
	if strings.Contains(text, "<@"+botID+">") {
		m["mentions"] = []any{map[string]any{"id": botID, "username": "aria", "bot": true}}
	}
	for _, f := range more {
		f(m)
	}
	c.messages = append(c.messages, m)
	e := s.event(c, m)
	if c.Guild != "" {
		e["member"] = map[string]any{"nick": "", "roles": rolesOf(who)}
	}
	s.dispatch(c.Guild, "MESSAGE_CREATE", e)
	return m["id"].(string)
}

func person(id string) map[string]any {
	names := map[string]string{annID: "ann", bobID: "bob"}
	name := names[id]
	if name == "" {
		name = "user" + id
	}
	return map[string]any{"id": id, "username": name, "global_name": strings.ToUpper(name[:1]) + name[1:]}
}

func rolesOf(id string) []string {
	if id == bobID {
		return []string{modRole}
	}
	return []string{}
}
