package telegram

import (
	"errors"
	"strconv"
	"sync"

	"synthbot/core"
)

// general is the thread of a forum's first topic, which is addressed as the
// chat itself.
const general = 1

// chatKey is where a message goes to.
type chatKey struct {
	chat   int64
	thread int64 // 0: none
}

// place is the path of a chat or topic.
func place(name string, chat, thread int64) core.Path {
	elements := []string{name, strconv.FormatInt(chat, 10)}
	if thread > general {
		elements = append(elements, strconv.FormatInt(thread, 10))
	}
	p, _ := core.MakePath(elements...) // numbers, behind a name that New has checked
	return p
}

var errNoPlace = errors.New("no place of this interface")

// chatKeyOf reads a path of this interface. A user means the private chat with them.
func chatKeyOf(name string, p core.Path) (chatKey, error) {
	e := p.Elements()
	if len(e) < 2 || len(e) > 3 || e[0] != name {
		return chatKey{}, errNoPlace
	}
	if p.IsPerson() {
		e = []string{name, e[2]}
	}
	chat, err := number(e[1])
	if err != nil {
		return chatKey{}, err
	}
	s := chatKey{chat: chat}
	if len(e) == 3 {
		if s.thread, err = number(e[2]); err != nil || s.thread < 1 {
			return chatKey{}, errNoPlace
		}
	}
	if s.thread == general {
		s.thread = 0
	}
	return s, nil
}

// number reads an id in its one spelling.
func number(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n == 0 || strconv.FormatInt(n, 10) != s {
		return 0, errNoPlace
	}
	return n, nil
}

// Bounds of what is remembered about places.
const (
	maxPlaces  = 8192
	maxThreads = 8192
)

// places knows what updates said about chats: which are forums, which supergroup a group
// became, and the topics of messages.
type places struct {
	mu      sync.Mutex
	forums  map[int64]bool
	aliases map[int64]int64
	threads map[[2]int64]int64
	titles  map[chatKey]label // of groups and topics
	people  map[int64]label
	changed bool

	account int64 // how many other bots the interface was; set once
}

func newPlaces() *places {
	return &places{
		forums: map[int64]bool{}, aliases: map[int64]int64{}, threads: map[[2]int64]int64{},
		titles: map[chatKey]label{}, people: map[int64]label{},
	}
}

func (p *places) noteMessage(m *message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	room(p.forums, maxPlaces)
	if m.Chat.IsForum {
		p.forums[m.Chat.ID] = true
	} else {
		delete(p.forums, m.Chat.ID)
	}
	if m.IsTopic && m.Thread > general {
		room(p.threads, maxThreads)
		p.threads[[2]int64{m.Chat.ID, m.ID}] = m.Thread
	}
	p.changed = true
	p.named(m)
}

func (p *places) sent(s chatKey, id int64) {
	if s.thread == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	room(p.threads, maxThreads)
	p.threads[[2]int64{s.chat, id}] = s.thread
	p.changed = true
}

// thread is the topic of a message, as far as it is known.
func (p *places) thread(chat, message int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.threads[[2]int64{chat, message}]
}

func (p *places) forum(chat int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.forums[chat]
}

// moved notes that a group went on as a supergroup.
func (p *places) moved(from, to int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	room(p.aliases, maxPlaces)
	p.aliases[from] = to
}

// now is the chat that an old number means today.
func (p *places) now(chat int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if to, ok := p.aliases[chat]; ok {
		return to
	}
	return chat
}

// room makes room in a full map by dropping anything.
func room[K comparable, V any](m map[K]V, most int) {
	for k := range m {
		if len(m) < most {
			return
		}
		delete(m, k)
	}
}
