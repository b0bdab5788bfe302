package discordtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Kinds of interaction, and of responses to them.
const (
	kindCommand    = 2
	kindPress      = 3
	kindCompletion = 4
	kindFilled     = 5

	AnswerMessage = 4
	AnswerLater   = 5 // a message that follows
	AnswerNothing = 6 // the press is acknowledged
	AnswerChange  = 7 // the message with the button changes
	AnswerChoices = 8
	AnswerField   = 9 // a window with text fields
)

// How long an interaction may wait for its first response, and for further ones. In real time, slow
// machines get longer.
const (
	answerTime     = 3 * time.Second
	realAnswerTime = time.Minute
	tokenTime      = 15 * time.Minute
)

// Interaction is an interaction with the responses so far.
type Interaction struct {
	ID, Person, Channel string
	At, Answered        time.Time // Answered is zero if there is no response
	Answer              int       // the kind of the first response
	Choices             []string  // of a completion
	Field               Field     // the window that it opened
	// Original is the id of the message that answers it, or of the one with the button.
	Original string
	// Whispers are the messages that only the user sees, in order.
	Whispers []Message

	kind   int
	token  string
	gone   bool // its answer was deleted
	hidden *Message
}

// Field is a window with fields to write in.
type Field struct {
	Custom string `json:"custom_id"`
	Title  string `json:"title"`
	Rows   []struct {
		Type   int `json:"type"`
		Fields []struct {
			Type   int    `json:"type"`
			Style  int    `json:"style"`
			Custom string `json:"custom_id"`
			Label  string `json:"label"`
			Max    int    `json:"max_length"`
		} `json:"components"`
	} `json:"components"`
}

func (f *Field) check() *failure {
	between := func(text string, most int) bool { return units(text) >= 1 && units(text) <= most }
	if !between(f.Custom, 100) || !between(f.Title, 45) || len(f.Rows) < 1 || len(f.Rows) > 5 {
		return malformed("data", "BASE_TYPE_BAD_LENGTH")
	}
	for _, row := range f.Rows {
		if row.Type != 1 || len(row.Fields) != 1 {
			return malformed("data.components", "COMPONENT_TYPE_INVALID")
		}
		one := row.Fields[0]
		if one.Type != 4 || one.Style < 1 || one.Style > 2 || !between(one.Custom, 100) || !between(one.Label, 45) ||
			one.Max < 1 || one.Max > 4000 {
			return malformed("data.components", "COMPONENT_TYPE_INVALID")
		}
	}
	return nil
}

// Interaction returns an interaction with the responses so far; the zero value if the id is unknown.
func (s *Server) Interaction(id string) Interaction {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.interactions[id]
	if i == nil {
		return Interaction{}
	}
	copied := *i
	if i.hidden != nil {
		copied.Whispers = append([]Message{*i.hidden}, i.Whispers...)
	}
	return copied
}

// interact sends an interaction to the bot, and returns its id. s.mu is held.
func (s *Server) interact(kind int, channel, person string, data map[string]any, more map[string]any) string {
	c, p := s.channels[channel], s.person(person)
	i := &Interaction{ID: s.id(), Person: person, Channel: channel, At: time.Now(), kind: kind}
	i.token = "token-of-" + i.ID
	s.interactions[i.ID] = i
	e := map[string]any{
		"id": i.ID, "application_id": AppID, "token": i.token, "type": kind, "version": 1, "channel_id": channel, "channel": c.json(),
		"locale": "it", "data": data, "app_permissions": strconv.FormatUint(s.power(c, BotID), 10), "entitlements": []any{},
		"authorizing_integration_owners": map[string]any{}, "context": 1,
	}
	if c.Guild != "" {
		m := s.member(c.Guild, person).json()
		m["user"], m["permissions"] = p.json(), strconv.FormatUint(s.power(c, person), 10)
		e["guild_id"], e["guild_locale"], e["member"], e["context"] = c.Guild, "en-US", m, 0
	} else {
		e["user"] = p.json()
	}
	for k, v := range more {
		e[k] = v
	}
	s.dispatch(c.Guild, channel, "INTERACTION_CREATE", e)
	return i.ID
}

// Press lets a user press the button with a custom id. It returns the interaction's id.
func (s *Server) Press(channel, message, person, custom string) (string, error) {
	s.mu.Lock()
	defer s.unlock()
	m := s.channels[channel].find(message)
	if m == nil || !slices.Contains(m.Buttons(), custom) {
		return "", fmt.Errorf("message %s has no button %q", message, custom)
	}
	data := map[string]any{"component_type": 2, "custom_id": custom}
	id := s.interact(kindPress, channel, person, data, map[string]any{"message": s.json(m)})
	s.interactions[id].Original = message
	return id, nil
}

// Select lets a user choose a value of a select menu. It returns the interaction's id.
func (s *Server) Select(channel, message, person, value string) (string, error) {
	s.mu.Lock()
	defer s.unlock()
	m := s.channels[channel].find(message)
	if m == nil {
		return "", fmt.Errorf("there is no message %s", message)
	}
	for _, row := range decode[[]row](m.Components) {
		for _, b := range row.Components {
			if !slices.ContainsFunc(b.Options, func(o choice) bool { return o.Value == value }) {
				continue
			}
			data := map[string]any{"component_type": kindSelect, "custom_id": b.Custom, "values": []string{value}}
			id := s.interact(kindPress, channel, person, data, map[string]any{"message": s.json(m)})
			s.interactions[id].Original = message
			return id, nil
		}
	}
	return "", fmt.Errorf("message %s has no choice %q", message, value)
}

// Fill lets the user who pressed a button fill in the field that it opened. It returns the id of the new interaction.
func (s *Server) Fill(press, text string) (string, error) {
	s.mu.Lock()
	defer s.unlock()
	i := s.interactions[press]
	if i == nil || i.Answer != AnswerField {
		return "", fmt.Errorf("%s opened no field", press)
	}
	m := s.channels[i.Channel].find(i.Original)
	written := map[string]any{"type": 4, "custom_id": i.Field.Rows[0].Fields[0].Custom, "value": text}
	data := map[string]any{"custom_id": i.Field.Custom, "components": []any{map[string]any{"type": 1, "components": []any{written}}}}
	id := s.interact(kindFilled, i.Channel, i.Person, data, map[string]any{"message": s.json(m)})
	s.interactions[id].Original = i.Original
	return id, nil
}

// Command lets a user call a command that the bot registered. It returns the interaction's id.
func (s *Server) Command(channel, person, name string, options map[string]string) (string, error) {
	s.mu.Lock()
	defer s.unlock()
	cmd, err := s.offered(channel, person, name, chatCommand)
	if err != nil {
		return "", err
	}
	given := []any{}
	for _, o := range cmd.Options {
		value, ok := options[o.Name]
		if !ok && o.Required {
			return "", fmt.Errorf("/%s: %s is required", name, o.Name)
		}
		if ok {
			given = append(given, map[string]any{"type": o.Type, "name": o.Name, "value": value})
		}
	}
	return s.interact(kindCommand, channel, person, map[string]any{"id": "1", "name": name, "type": chatCommand, "options": given}, nil), nil
}

// Menu lets a user call a command of a message's context menu. It returns the interaction's id.
func (s *Server) Menu(channel, person, name, message string) (string, error) {
	s.mu.Lock()
	defer s.unlock()
	m := s.channels[channel].find(message)
	if m == nil {
		return "", fmt.Errorf("there is no message %s", message)
	}
	if _, err := s.offered(channel, person, name, messageCommand); err != nil {
		return "", err
	}
	data := map[string]any{
		"id": "1", "name": name, "type": messageCommand, "target_id": message,
		"resolved": map[string]any{"messages": map[string]any{message: s.json(m)}},
	}
	return s.interact(kindCommand, channel, person, data, nil), nil
}

// Complete lets a user type the beginning of an option. It returns the interaction's id.
func (s *Server) Complete(channel, person, name, option, text string) (string, error) {
	s.mu.Lock()
	defer s.unlock()
	cmd, err := s.offered(channel, person, name, chatCommand)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(cmd.Options, func(o appOption) bool { return o.Name == option && o.Complete }) {
		return "", fmt.Errorf("/%s: %s is not completed by the bot", name, option)
	}
	return s.interact(kindCompletion, channel, person, map[string]any{"id": "1", "name": name, "type": chatCommand,
		"options": []any{map[string]any{"type": 3, "name": option, "value": text, "focused": true}}}, nil), nil
}

// postCallback handles the first response to an interaction.
func (s *Server) postCallback(call *Call, ids []string) (any, *failure) {
	i := s.interactions[ids[0]]
	body := decode[struct {
		Type int             `json:"type"`
		Data json.RawMessage `json:"data"`
	}](call.Body)
	allowed := map[int][]int{
		kindCommand: {AnswerMessage, AnswerLater}, kindCompletion: {AnswerChoices},
		kindPress:  {AnswerMessage, AnswerLater, AnswerNothing, AnswerChange, AnswerField},
		kindFilled: {AnswerMessage, AnswerLater, AnswerNothing, AnswerChange},
	}
	switch {
	case i == nil || i.token != ids[1] || call.At.Sub(i.At) > s.answerTime:
		s.breach("an interaction is answered too late")
		return nil, &failure{status: 404, code: 10062, text: "Unknown interaction"}
	case !i.Answered.IsZero():
		return nil, &failure{status: 400, code: 40060, text: "Interaction has already been acknowledged."}
	case !slices.Contains(allowed[i.kind], body.Type):
		return nil, malformed("type", "INTERACTION_TYPE_INVALID")
	}
	inner := *call
	inner.Body = body.Data
	f := s.acknowledge(&inner, i, body.Type)
	if f != nil {
		return nil, f
	}
	i.Answered, i.Answer = call.At, body.Type
	return nil, nil
}

// acknowledge carries out the first response.
func (s *Server) acknowledge(call *Call, i *Interaction, kind int) *failure {
	c := s.channels[i.Channel]
	switch kind {
	case AnswerChoices:
		return i.complete(call.Body)
	case AnswerField:
		i.Field = decode[Field](call.Body)
		return i.Field.check()
	case AnswerMessage:
		form, f := s.form(call, c)
		if f != nil {
			return f
		}
		s.answerWith(c, i, &form.Message)
	case AnswerLater:
		m := &Message{Thinking: true, Interaction: i.ID, kind: 20, Hidden: decode[written](call.Body).Flags&(1<<6) != 0}
		s.answerWith(c, i, m)
	case AnswerChange:
		_, f := s.change(call, c, c.find(i.Original))
		if f != nil {
			return f
		}
	}
	return nil
}

// answerWith adds the answer to the channel, unless it is hidden. s.mu is held.
func (s *Server) answerWith(c *Channel, i *Interaction, m *Message) {
	m.Interaction, m.kind = i.ID, 20
	if m.Hidden {
		m.ID, m.Channel, m.Author, m.At = s.id(), c.ID, BotID, time.Now().UTC()
		i.hidden, i.Original = m, m.ID
		return
	}
	i.Original = s.put(c, m).ID
	s.dispatch(c.Guild, c.ID, "MESSAGE_CREATE", s.event(c, m))
}

func (i *Interaction) complete(data json.RawMessage) *failure {
	body := decode[struct {
		Choices []struct{ Name, Value string } `json:"choices"`
	}](data)
	if body.Choices == nil || len(body.Choices) > 25 {
		return malformed("choices", "BASE_TYPE_MAX_LENGTH")
	}
	i.Choices = []string{}
	for _, c := range body.Choices {
		if units(c.Name) < 1 || units(c.Name) > 100 || units(c.Value) < 1 || units(c.Value) > 100 {
			return malformed("choices", "BASE_TYPE_BAD_LENGTH")
		}
		i.Choices = append(i.Choices, c.Value)
	}
	return nil
}

// followed returns the interaction with a token, if that is still valid.
func (s *Server) followed(call *Call, ids []string) (*Interaction, *failure) {
	for _, i := range s.interactions {
		if ids[0] != AppID || i.token != ids[1] {
			continue
		}
		if call.At.Sub(i.At) > tokenTime {
			return nil, &failure{status: 401, code: 50027, text: "Invalid Webhook Token"}
		}
		if i.Answered.IsZero() {
			return nil, &failure{status: 404, code: 10015, text: "Unknown Webhook"}
		}
		return i, nil
	}
	return nil, &failure{status: 404, code: 10015, text: "Unknown Webhook"}
}

// original returns the message that answers an interaction.
func (s *Server) original(call *Call, ids []string) (*Interaction, *Message, *failure) {
	i, f := s.followed(call, ids)
	if f != nil {
		return nil, nil, f
	}
	m := i.hidden
	if m == nil {
		m = s.channels[i.Channel].find(i.Original)
	}
	if m == nil || i.gone {
		return nil, nil, &failure{status: 404, code: 10008, text: "Unknown Message"}
	}
	return i, m, nil
}

func (s *Server) getOriginal(call *Call, ids []string) (any, *failure) {
	_, m, f := s.original(call, ids)
	if f != nil {
		return nil, f
	}
	return s.json(m), nil
}

// patchOriginal changes the answer, or replaces the sign that the bot is thinking with it.
func (s *Server) patchOriginal(call *Call, ids []string) (any, *failure) {
	i, m, f := s.original(call, ids)
	if f != nil {
		return nil, f
	}
	c := s.channels[i.Channel]
	if !m.Hidden {
		return s.change(call, c, m)
	}
	form, f := s.changes(call, c, m)
	if f != nil {
		return nil, f
	}
	*m = form.Message
	m.Thinking = false
	return s.json(m), nil
}

func (s *Server) deleteOriginal(call *Call, ids []string) (any, *failure) {
	i, m, f := s.original(call, ids)
	if f != nil {
		return nil, f
	}
	i.gone = true
	if i.hidden == nil {
		s.remove(s.channels[i.Channel], m)
	}
	i.hidden = nil
	return nil, nil
}

// postFollowUp adds a further answer.
func (s *Server) postFollowUp(call *Call, ids []string) (any, *failure) {
	i, f := s.followed(call, ids)
	if f != nil {
		return nil, f
	}
	c := s.channels[i.Channel]
	form, f := s.form(call, c)
	if f != nil {
		return nil, f
	}
	m := &form.Message
	m.Interaction = i.ID
	if m.Hidden {
		m.ID, m.Channel, m.Author, m.At = s.id(), c.ID, BotID, time.Now().UTC()
		i.Whispers = append(i.Whispers, *m)
		return s.json(m), nil
	}
	s.put(c, m)
	s.dispatch(c.Guild, c.ID, "MESSAGE_CREATE", s.event(c, m))
	return s.json(m), nil
}
