package telegram

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/driver"
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
	elements := []string{name, id(chat)}
	if thread > general {
		elements = append(elements, id(thread))
	}
	p, _ := core.MakePath(elements...) // numbers, behind a name that New has checked
	return p
}

var errNoPlace = errors.New("no place of this interface")

// chatKeyOf reads a path of this interface. A user means the private chat with them.
func chatKeyOf(name string, p core.Path) (s chatKey, err error) {
	own, rest, _ := strings.Cut(p.String(), "/")
	chat, thread, inThread := strings.Cut(rest, "/")
	if p.IsPerson() {
		chat, inThread = thread, false
	}
	if inThread {
		if s.thread, err = number(thread); err != nil || s.thread < 1 {
			return chatKey{}, errNoPlace
		}
	}
	if s.thread == general {
		s.thread = 0
	}
	if s.chat, err = number(chat); err != nil || own != name {
		return chatKey{}, errNoPlace
	}
	return s, nil
}

// number reads an id in its one spelling.
func number(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n == 0 || id(n) != s {
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

// noteMessage notes what a message tells of its chat, and of names.
func (p *places) noteMessage(m *message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed = true
	makeRoom(p.forums, maxPlaces)
	if m.Chat.IsForum {
		p.forums[m.Chat.ID] = true
	} else {
		delete(p.forums, m.Chat.ID)
	}
	if m.IsTopic && m.Thread > general {
		makeRoom(p.threads, maxThreads)
		p.threads[[2]int64{m.Chat.ID, m.ID}] = m.Thread
	}
	makeRoom(p.titles, maxPlaces)
	makeRoom(p.people, maxPlaces)
	if m.Chat.Title != "" {
		p.titles[chatKey{chat: m.Chat.ID}] = label{cut(m.Chat.Title, core.MaxName), tag(m.Chat.Username)}
	}
	p.noteTopic(m)
	if m.From != nil && !m.From.IsBot && m.From.ID > 0 {
		a := person(m.From)
		p.people[m.From.ID] = label{a.Name, a.Tag}
	}
}

// noteTopic notes the name of a message's topic. p.mu is held.
func (p *places) noteTopic(m *message) {
	notices := []*topicNotice{m.TopicCreated, m.TopicEdited}
	if m.ReplyTo != nil { // what replies to no other message replies to the notice that began the topic
		notices = append(notices, m.ReplyTo.TopicCreated)
	}
	for _, notice := range notices {
		if notice != nil && notice.Name != "" && m.Thread > general {
			p.titles[chatKey{m.Chat.ID, m.Thread}] = label{Name: cut(notice.Name, core.MaxName)}
		}
	}
}

// noteSent notes the topic of a message of the bot's own.
func (p *places) noteSent(s chatKey, id int64) {
	if s.thread == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	makeRoom(p.threads, maxThreads)
	p.threads[[2]int64{s.chat, id}] = s.thread
	p.changed = true
}

// thread is the topic of a message, as far as it is known.
func (p *places) thread(chat, message int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.threads[[2]int64{chat, message}]
}

func (p *places) isForum(chat int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.forums[chat]
}

// noteMigration notes that a group went on as a supergroup.
func (p *places) noteMigration(from, to int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	makeRoom(p.aliases, maxPlaces)
	p.aliases[from] = to
}

// currentChat is the chat that an old number means today.
func (p *places) currentChat(chat int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return cmp.Or(p.aliases[chat], chat)
}

// makeRoom makes room in a full map by dropping anything.
func makeRoom[K comparable, V any](m map[K]V, most int) {
	for k := range m {
		if len(m) < most {
			return
		}
		delete(m, k)
	}
}

// label is the name of a place or a user.
type label struct {
	Name string `json:"name,omitempty"`
	Tag  string `json:"tag,omitempty"` // "@ann"
}

// matches reports whether the label is meant; "#" and "@" before a name say that
// it is one of a place, or a tag.
func (l label) matches(name string) bool {
	if strings.HasPrefix(name, "@") {
		return strings.EqualFold(l.Tag, name)
	}
	return l.Name != "" && strings.EqualFold(l.Name, strings.TrimPrefix(name, "#"))
}

// named lists the places of that name: those of the chat, if there are some,
// else all others, people in their private chats among them.
func (p *places) named(chat int64, name string) (list []chatKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var others []chatKey
	for s, l := range p.titles {
		switch {
		case !l.matches(name):
		case s.chat == chat:
			list = append(list, s)
		default:
			others = append(others, s)
		}
	}
	switch {
	case len(list) > 0:
		return list
	case p.forums[chat] && (label{Name: "General"}).matches(name):
		return []chatKey{{chat: chat}}
	}
	for person, l := range p.people {
		if !strings.HasPrefix(name, "#") && l.matches(name) {
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
	switch found := d.places.named(s.chat, name); len(found) {
	case 0:
		return core.Path{}, core.Errorf(core.Invalid, "%q is nobody and no place known here", name)
	case 1:
		return place(d.opt.Name, found[0].chat, found[0].thread), nil
	}
	return core.Path{}, core.Errorf(core.Invalid, "%q may be several: give interface_path", name)
}

// NameOf implements core.Namer: the title of a group, with that of the topic, or a user's name.
func (d *Driver) NameOf(at core.Path) string {
	s, err := chatKeyOf(d.opt.Name, at)
	if err != nil {
		return ""
	}
	p := d.places
	p.mu.Lock()
	defer p.mu.Unlock()
	name := cmp.Or(p.titles[chatKey{chat: s.chat}].Name, p.people[s.chat].Name)
	topic := p.titles[s].Name
	if s.thread != 0 && topic != "" {
		return strings.TrimPrefix(name+" › "+topic, " › ")
	}
	return name
}

// placesKey is the State's key of what is known about places. Names of users are not
// stored.
const (
	placesKey = "places"
	saveTime  = 2 * time.Second
)

// storedPlaces is how places are kept.
type storedPlaces struct {
	Forums  []int64    `json:"forums,omitempty"`
	Threads [][3]int64 `json:"threads,omitempty"` // chat, message, thread
	Titles  []title    `json:"titles,omitempty"`
}

type title struct {
	Chat   int64 `json:"chat"`
	Thread int64 `json:"thread,omitempty"`
	label
}

// save keeps for the next process what the platform does not repeat, besides what others kept. A crash loses what was
// learned since.
func (p *places) save(ctx context.Context, s driver.State) error {
	p.mu.Lock()
	changed := p.changed
	p.changed = false
	p.mu.Unlock()
	if !changed {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, saveTime)
	defer cancel()
	_, err := driver.Update(ctx, s, placesKey, func(k *storedPlaces) bool {
		*k = p.merged(k)
		return true
	})
	return err
}

// merged returns what is known, and of others what is not.
func (p *places) merged(others *storedPlaces) (k storedPlaces) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := newPlaces()
	all.add(others)
	for chat := range p.titles { // whether it is a forum is known here
		delete(all.forums, chat.chat)
	}
	maps.Copy(all.forums, p.forums)
	maps.Copy(all.threads, p.threads)
	maps.Copy(all.titles, p.titles)
	makeRoom(all.forums, maxPlaces)
	makeRoom(all.threads, maxThreads)
	makeRoom(all.titles, maxPlaces)
	k.Forums = slices.Collect(maps.Keys(all.forums))
	for at, thread := range all.threads {
		k.Threads = append(k.Threads, [3]int64{at[0], at[1], thread})
	}
	for s, l := range all.titles {
		k.Titles = append(k.Titles, title{s.chat, s.thread, l})
	}
	return k
}

// load reads what is kept, which is newer than what this process knows while it does not listen.
func (p *places) load(ctx context.Context, s driver.State) error {
	var k storedPlaces
	if err := driver.Load(ctx, s, placesKey, &k); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(&k)
	return nil
}

// add adds what was kept. p.mu is held.
func (p *places) add(k *storedPlaces) {
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

// In private chats and groups of the old kind each account has numbers of its own
// for messages, which begin at 1. With the token of another bot they come again: so
// the ids of messages there begin with how many other bots this interface was
// before, and none is taken for one that is known.
const (
	accountsKey    = "accounts"
	accountShift   = 32 // numbers have 31 bits
	supergroupBase = -1_000_000_000_000
)

// messageID is the id of a message.
func (p *places) messageID(chat, number int64) string {
	if chat > supergroupBase {
		number += p.account << accountShift
	}
	return id(number)
}

// messageNumber is what the platform calls a message; 0: it is another account's, or none.
func (p *places) messageNumber(chat int64, id string) int64 {
	message, err := number(id)
	switch {
	case err != nil:
		return 0
	case chat <= supergroupBase:
		return message
	case message>>accountShift != p.account:
		return 0
	}
	return message & (1<<accountShift - 1)
}

// account is the bot's number, which its token begins with; "" where it does not.
func (d *Driver) account() string {
	account, _, ok := strings.Cut(d.opt.Config.Token.Reveal(), ":")
	if !ok {
		return "" // what is kept must not be the secret
	}
	return account
}

// saveAccount stores which bot this is, once the platform knows it. Former ones that cannot
// be read are not overwritten: without them, ids would be used again.
func (d *Driver) saveAccount(ctx context.Context) {
	var all []string
	err := driver.Load(ctx, d.opt.State, accountsKey, &all)
	if err != nil || slices.Contains(all, d.account()) {
		return // New reported the error
	}
	all = append(all, d.account())
	if len(all) > 1 {
		d.log.Warn("this is another bot than before, in the same places", "accounts", all)
	}
	if err := driver.Save(ctx, d.opt.State, accountsKey, all); err != nil {
		d.log.Warn("bot not stored", "err", err)
	}
}
