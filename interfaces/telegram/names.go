package telegram

import (
	"context"
	"strings"
	"time"

	"synthbot/core/driver"

	"synthbot/core"
)

// label is the name of a place or a user.
type label struct {
	Name string `json:"name,omitempty"`
	Tag  string `json:"tag,omitempty"` // "@ann"
}

// called reports whether the label is meant; "#" and "@" before a name say that
// it is one of a place, or a tag.
func (l label) called(name string) bool {
	if strings.HasPrefix(name, "@") {
		return strings.EqualFold(l.Tag, name)
	}
	return l.Name != "" && strings.EqualFold(l.Name, strings.TrimPrefix(name, "#"))
}

// named notes what a message tells of names; p.mu is held.
func (p *places) named(m *message) {
	room(p.titles, maxPlaces)
	room(p.people, maxPlaces)
	if m.Chat.Title != "" {
		p.titles[chatKey{chat: m.Chat.ID}] = label{cut(m.Chat.Title, core.MaxName), tag(m.Chat.Username)}
	}
	notices := []*topicNotice{m.TopicCreated, m.TopicEdited}
	if m.ReplyTo != nil { // what replies to no other message replies to the notice that began the topic
		notices = append(notices, m.ReplyTo.TopicCreated)
	}
	for _, notice := range notices {
		if notice != nil && notice.Name != "" && m.Thread > general {
			p.titles[chatKey{m.Chat.ID, m.Thread}] = label{Name: cut(notice.Name, core.MaxName)}
		}
	}
	if m.From != nil && !m.From.IsBot && m.From.ID > 0 {
		a := person(m.From)
		p.people[m.From.ID] = label{a.Name, a.Tag}
	}
}

// called lists the places of that name: those of the chat, if there are some,
// else all others, people in their private chats among them.
func (p *places) called(chat int64, name string) (list []chatKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var others []chatKey
	for s, l := range p.titles {
		switch {
		case !l.called(name):
		case s.chat == chat:
			list = append(list, s)
		default:
			others = append(others, s)
		}
	}
	if p.forums[chat] && (label{Name: "General"}).called(name) && len(list) == 0 {
		list = append(list, chatKey{chat: chat})
	}
	if len(list) > 0 {
		return list
	}
	for person, l := range p.people {
		if !strings.HasPrefix(name, "#") && l.called(name) {
			others = append(others, chatKey{chat: person})
		}
	}
	return others
}

// Find returns the place with a name, as seen from another place: a topic, a group, or
// the private chat of a user. It does not check permissions.
func (d *Driver) Find(from core.Path, name string) (core.Path, error) {
	name = strings.Join(strings.Fields(name), " ")
	s, err := chatKeyOf(d.opt.Name, from)
	if err != nil || strings.Trim(name, "#@") == "" {
		return core.Path{}, core.Errorf(core.Invalid, "%q is nobody and no place", name)
	}
	switch found := d.places.called(s.chat, name); len(found) {
	case 0:
		return core.Path{}, core.Errorf(core.Invalid, "%q is nobody and no place known here", name)
	case 1:
		return place(d.opt.Name, found[0].chat, found[0].thread), nil
	}
	return core.Path{}, core.Errorf(core.Invalid, "%q may be several: give interface_path", name)
}

// placesKey is the State's key of what is known about places. Names of users are not
// stored.
const (
	placesKey = "places"
	saveTime  = 2 * time.Second
)

// knownPlaces is how places are kept.
type knownPlaces struct {
	Forums  []int64    `json:"forums,omitempty"`
	Threads [][3]int64 `json:"threads,omitempty"` // chat, message, thread
	Titles  []title    `json:"titles,omitempty"`
}

type title struct {
	Chat   int64 `json:"chat"`
	Thread int64 `json:"thread,omitempty"`
	label
}

// savePlaces keeps for the next process what the platform does not repeat. A crash loses
// what was learned since.
func (d *Driver) savePlaces(ctx context.Context) {
	p := d.places
	var k knownPlaces
	p.mu.Lock()
	for chat := range p.forums {
		k.Forums = append(k.Forums, chat)
	}
	for at, thread := range p.threads {
		k.Threads = append(k.Threads, [3]int64{at[0], at[1], thread})
	}
	for s, l := range p.titles {
		k.Titles = append(k.Titles, title{s.chat, s.thread, l})
	}
	changed := p.changed
	p.changed = false
	p.mu.Unlock()
	if !changed {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, saveTime)
	defer cancel()
	if err := driver.Save(ctx, d.opt.State, placesKey, k); err != nil {
		d.log.Warn("places not kept", "err", err)
	}
}

func (d *Driver) loadPlaces(ctx context.Context) {
	p := d.places
	var k knownPlaces
	if err := driver.Load(ctx, d.opt.State, placesKey, &k); err != nil {
		d.log.Warn("places not read", "err", err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, chat := range k.Forums {
		p.forums[chat] = true
	}
	for _, t := range k.Threads {
		p.threads[[2]int64{t[0], t[1]}] = t[2]
	}
	for _, t := range k.Titles {
		p.titles[chatKey{t.Chat, t.Thread}] = t.label
	}
}
