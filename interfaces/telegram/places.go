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

// general is the thread of a forum's General topic. Messages to it have no thread.
const general = 1

type chatKey struct {
	chat   int64
	thread int64 // 0: none
}

func place(name string, chat, thread int64) core.Path {
	elements := []string{name, id(chat)}
	if thread > general {
		elements = append(elements, id(thread))
	}
	p, _ := core.MakePath(elements...) // New has checked the name
	return p
}

var errNoPlace = errors.New("not a place of this interface")

// chatKeyOf reads a path of this interface. The path of a user means the private chat with them.
func chatKeyOf(name string, p core.Path) (s chatKey, err error) {
	own, rest, _ := strings.Cut(p.String(), "/")
	chat, thread, inThread := strings.Cut(rest, "/")
	if p.IsPerson() {
		chat, inThread = thread, false
	}
	s.chat, s.thread = number(chat), number(thread)
	if s.chat == 0 || inThread && s.thread < 1 || own != name {
		return chatKey{}, errNoPlace
	}
	if !inThread || s.thread == general {
		s.thread = 0
	}
	return s, nil
}

// number reads an id. It returns 0 for spellings that id does not write, such as "007".
func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || id(n) != s {
		return 0
	}
	return n
}

// How many chats, topics and users are remembered, and how many messages of topics.
const (
	maxPlaces  = 8192
	maxThreads = 8192
)

// places holds what updates said about chats: which are forums, which supergroup a group became, the topics of
// messages, and the names of groups, topics and users.
type places struct {
	mu      sync.Mutex
	forums  map[int64]bool
	aliases map[int64]int64    // from group to supergroup
	threads map[[2]int64]int64 // by chat and message
	titles  map[chatKey]label  // of groups and topics
	people  map[int64]label
	changed bool // since save

	account int64 // how many bot accounts the interface had before; set once
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
	notices := []*topicNotice{m.TopicCreated, m.TopicEdited}
	if m.ReplyTo != nil { // a message without another reply replies to the notice that created the topic
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

// noteSent records the topic of one of the bot's own messages.
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

// thread returns the topic of a message; 0 if it is in none, or if that is unknown.
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

func (p *places) noteMigration(from, to int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	makeRoom(p.aliases, maxPlaces)
	p.aliases[from] = to
}

// currentChat returns the supergroup that a group became, or the chat itself.
func (p *places) currentChat(chat int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return cmp.Or(p.aliases[chat], chat)
}

// makeRoom deletes arbitrary entries until a map has fewer than most.
func makeRoom[K comparable, V any](m map[K]V, most int) {
	for k := range m {
		if len(m) < most {
			return
		}
		delete(m, k)
	}
}

type label struct {
	Name string `json:"name,omitempty"`
	Tag  string `json:"tag,omitempty"` // "@ann"
}

// matches reports whether a name means this label. "@" begins a tag; "#" before a name is ignored.
func (l label) matches(name string) bool {
	if strings.HasPrefix(name, "@") {
		return strings.EqualFold(l.Tag, name)
	}
	return l.Name != "" && strings.EqualFold(l.Name, strings.TrimPrefix(name, "#"))
}

// named lists the places with a name: those of the chat if there are any, else all others, including private chats
// with users. A name that begins with "#" does not mean a user.
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

// Find returns the topic, group or private chat with a name, preferring those of the chat of from. It does not check
// permissions.
func (d *Driver) Find(from core.Path, name string) (core.Path, error) {
	name = strings.Join(strings.Fields(name), " ")
	s, err := chatKeyOf(d.opt.Name, from)
	if err != nil || strings.Trim(name, "#@") == "" {
		return core.Path{}, core.Errorf(core.Invalid, "%q names no user or place", name)
	}
	switch found := d.places.named(s.chat, name); len(found) {
	case 0:
		return core.Path{}, core.Errorf(core.Invalid, "no user or place named %q is known here", name)
	case 1:
		return place(d.opt.Name, found[0].chat, found[0].thread), nil
	}
	return core.Path{}, core.Errorf(core.Invalid, "several places are named %q: give interface_path", name)
}

// NameOf implements core.Namer. It returns the title of a group, with that of the topic, or a user's name.
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

// placesKey is the key of storedPlaces in the State. Names of users are not stored.
const (
	placesKey = "places"
	saveTime  = 2 * time.Second
)

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

// save stores what Telegram does not say again, merged with what other processes stored. After a crash, what was
// learned since is missing.
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

// merged returns what this process knows, and from others what it does not know.
func (p *places) merged(others *storedPlaces) (k storedPlaces) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := newPlaces()
	all.add(others)
	for chat := range p.titles { // this process knows whether it is a forum
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

// load adds what is stored. Before Listen receives updates, that is newer than what this process knows.
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

// add adds what was stored. p.mu is held.
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

// In private chats and basic groups, each account counts messages from 1. After the token is replaced by that of
// another bot, the same numbers mean other messages. So the upper bits of a message's id there hold how many bot
// accounts the interface had before.
const (
	accountsKey    = "accounts"
	accountShift   = 32                 // numbers have 31 bits
	supergroupBase = -1_000_000_000_000 // supergroups and channels have ids at or below it
)

func (p *places) messageID(chat, number int64) string {
	if chat > supergroupBase {
		number += p.account << accountShift
	}
	return id(number)
}

// messageNumber returns the number of a message on Telegram; 0 if id is invalid, or of another account's message.
func (p *places) messageNumber(chat int64, id string) int64 {
	message := number(id)
	switch {
	case chat <= supergroupBase:
		return message
	case message>>accountShift != p.account:
		return 0
	}
	return message & (1<<accountShift - 1)
}

// account returns the bot's id, with which its token begins; "" if it does not.
func (d *Driver) account() string {
	account, _, ok := strings.Cut(d.opt.Config.Token.Reveal(), ":")
	if !ok {
		return "" // the result is stored, so it must not be the secret
	}
	return account
}

// saveAccount stores the bot's id, once Telegram has accepted the token. If the earlier ones cannot be read, they are
// not overwritten: without them, ids of messages would be used twice.
func (d *Driver) saveAccount(ctx context.Context) {
	var all []string
	err := driver.Load(ctx, d.opt.State, accountsKey, &all)
	if err != nil || slices.Contains(all, d.account()) {
		return // New reported the error
	}
	all = append(all, d.account())
	if len(all) > 1 {
		d.log.Warn("the token is that of another bot account than before", "accounts", all)
	}
	if err := driver.Save(ctx, d.opt.State, accountsKey, all); err != nil {
		d.log.Warn("bot account not saved", "err", err)
	}
}
