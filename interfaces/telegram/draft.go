package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"synthbot/core"
)

var _ core.Drafter = (*Driver)(nil)

// A draft shows in one of two ways. In private chats the platform has drafts of
// its own, which vanish by themselves. Elsewhere, and where the server does not
// know them, a message stands in, which is edited and becomes the answer; it is
// noted, so that a crash leaves none behind: the next message of the place takes
// it, the end of a turn or of draftLeft takes it away. Once it is to become an
// answer, nothing but that answer changes it. Only a message of which the
// platform's answer was lost, or that a crash hit before it was noted, is beyond
// that; there is one at most for each draft.
const (
	draftKey   = "drafts"
	draftAfter = 700 * time.Millisecond // quick answers show at once
	draftCall  = 5 * time.Second
	draftRetry = 500 * time.Millisecond // where there was no room for a call
	draftLeft  = 5 * time.Minute        // what a former life left behind
	draftSigns = 15 * time.Second       // without news, the sign of typing goes on
	draftBytes = 8 * maxText            // hold the first message of a text, which is all that shows

	draftPrivate = 1500 * time.Millisecond
	draftGroup   = 5 * time.Second
	draftFree    = 300 * time.Millisecond // with no pace to keep
)

// draft is a message that grows while it is being written.
type draft struct {
	at  spot
	end chan struct{} // closed when it is not to change any more

	mu      sync.Mutex
	text    string        // the newest
	shown   string        // the one that stands, or was refused
	id      int64         // the message that stands in; 0: none
	own     int64         // the id of the platform's own draft; 0: that is not used
	last    time.Time     // when it was shown
	heir    bool          // of a former life, or of one that still ends: the note is what counts
	left    bool          // so, and not taken up yet
	failed  bool          // nothing more can be shown
	writing chan struct{} // closed when nobody writes it; nil: nobody does
}

// drafts are those of all places.
type drafts struct {
	mu    sync.Mutex
	all   map[spot]*draft
	count int64
	noOwn bool // the server knows no drafts of its own

	noting sync.Mutex
}

// Draft shows a text that is being written, as often as there is room for it.
func (d *Driver) Draft(p core.Path, text string) {
	s, err := spotOf(d.opt.Name, p)
	if err != nil || d.opt.Config.Stream == "off" {
		return
	}
	s.chat = d.places.now(s.chat)
	if text == "" {
		d.dropDraft(s, anyDraft)
		return
	}
	a := d.drafts.open(s, d.opt.Config.Stream != "edit")
	a.mu.Lock()
	defer a.mu.Unlock()
	a.text, a.left = text, false
	if a.writing != nil || a.failed {
		return
	}
	done := make(chan struct{})
	if d.later(func(ctx context.Context) { defer close(done); d.write(ctx, a) }) {
		a.writing = done
	}
}

// open finds or makes the draft of a place.
func (l *drafts) open(s spot, own bool) *draft {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.all[s]
	if a == nil {
		a = &draft{at: s, end: make(chan struct{})}
		if own && s.chat > 0 && !l.noOwn {
			if l.count == 0 {
				l.count = time.Now().UnixMilli() & 0x3fffffff
			}
			l.count++
			a.own = l.count
		}
		l.all[s] = a
	}
	return a
}

// write shows what is new until nothing is.
func (d *Driver) write(ctx context.Context, a *draft) {
	for {
		a.mu.Lock()
		pause := time.Until(a.last.Add(d.draftEvery(a.at)))
		if a.last.IsZero() {
			pause = draftAfter
		}
		a.mu.Unlock()
		alive := a.rest(ctx, pause)
		text, more := a.next(alive)
		if !more {
			return
		}
		if !d.pace.spare(a.at.chat) {
			a.rest(ctx, draftRetry)
			continue
		}
		d.show(ctx, a, text)
	}
}

func (d *Driver) draftEvery(s spot) time.Duration {
	switch {
	case d.opt.Config.Pace == "off":
		return draftFree
	case s.chat > 0:
		return draftPrivate
	}
	return draftGroup
}

// next returns what is to be shown; after false nobody writes the draft.
func (a *draft) next(alive bool) (string, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !alive || a.failed || a.text == a.shown {
		a.writing = nil
		return "", false
	}
	return a.text, true
}

// rest waits; false: the draft is over.
func (a *draft) rest(ctx context.Context, pause time.Duration) bool {
	t := time.NewTimer(max(pause, 0))
	defer t.Stop()
	select {
	case <-t.C:
	case <-a.end:
	case <-ctx.Done():
	}
	select {
	case <-a.end:
		return false
	default:
		return ctx.Err() == nil
	}
}

// show makes one call. What goes out is not cut short by the end of Listen,
// which waits for it: it may be a message that must be noted.
func (d *Driver) show(ctx context.Context, a *draft, text string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), draftCall)
	defer cancel()
	list := parts(text[:min(len(text), draftBytes)], maxText)
	if len(list) == 0 || !speaks(list[0].source) {
		a.showed(text, nil, 0)
		return
	}
	if d.stands(ctx, a) == 0 {
		a.begin()
	}
	r, own := d.draftRequest(a, list[0])
	raw, err := d.once(ctx, &r)
	var m struct {
		ID int64 `json:"message_id"`
	}
	if err == nil && !own {
		err = json.Unmarshal(raw, &m)
	}
	if own && isCode(err, 400, 404) {
		d.drafts.disown(a, isCode(err, 404))
		return
	}
	if r.method == "sendMessage" && m.ID != 0 {
		d.places.sent(a.at, m.ID)
		d.noteDraft(ctx, a.at, draftNote{ID: m.ID})
	}
	a.showed(text, err, m.ID)
	d.draftFailed(ctx, a, err)
}

// draftRequest is the call that brings a draft up to date; own tells that it is
// one of the platform's own.
func (d *Driver) draftRequest(a *draft, p part) (r request, own bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	params := target{spot: a.at}.params()
	params["text"], params["parse_mode"] = p.html, tgbotapi.ModeHTML
	switch {
	case a.own != 0:
		params["draft_id"] = id(a.own)
		return request{method: "sendMessageDraft", params: params}, true
	case a.id != 0:
		delete(params, "message_thread_id")
		params["message_id"] = id(a.id)
		r.method = "editMessageText"
	default:
		r.method = "sendMessage"
	}
	if !d.opt.Config.Previews {
		params["link_preview_options"] = noPreview
	}
	r.params = params
	return r, false
}

// disown goes on with a message where the platform's own drafts do not work:
// here, or, on an older server, anywhere.
func (l *drafts) disown(a *draft, anywhere bool) {
	l.mu.Lock()
	l.noOwn = l.noOwn || anywhere
	l.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.own = 0
}

// showed notes what became of a call. A message that stands in and cannot be
// sent is not tried again: it may be there.
func (a *draft) showed(text string, err error, message int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.shown, a.last = text, time.Now()
	if a.id == 0 && a.own == 0 {
		a.id = message
	}
	switch {
	case isCode(err, 429):
		a.shown = ""
	case a.own == 0 && a.id == 0 && err != nil, isCode(err, 400, 403) && !codeSays(err, "not modified"):
		a.failed = true
	}
}

func (d *Driver) draftFailed(ctx context.Context, a *draft, err error) {
	if err == nil || codeSays(err, "not modified") {
		return
	}
	if isCode(err, 429) {
		d.pace.block(a.at.chat, afterOf(err))
		d.saveWaits(ctx)
	}
	d.log.Debug("draft not shown", "chat", a.at.chat, "err", err)
}

// remove ends the draft of a place, if it is one of those; nil: it was not.
func (l *drafts) remove(s spot, which func(*draft) bool) *draft {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.all[s]
	if a == nil || !which(a) {
		return nil
	}
	delete(l.all, s)
	close(a.end)
	return a
}

func anyDraft(*draft) bool { return true }

// settle waits for the call that is under way.
func (a *draft) settle() {
	a.mu.Lock()
	writing := a.writing
	a.mu.Unlock()
	if writing != nil {
		<-writing
	}
}

// shows reports whether a draft in the place shows that somebody is at work.
func (l *drafts) shows(s spot) bool {
	l.mu.Lock()
	a := l.all[s]
	l.mu.Unlock()
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.last.IsZero() && time.Since(a.last) < draftSigns
}

// finish makes the message of a request, the part with this key, out of the draft that
// stands in its place. done is false if there is none, if it belongs to the turn beside,
// or if it cannot become that message: then it is gone, and the message is to be sent.
func (d *Driver) finish(ctx context.Context, to target, r request, p part, key string) (id string, done bool, err error) {
	if core.IsBeside(ctx) {
		return "", false, nil
	}
	s := spot{d.places.now(to.spot.chat), to.spot.thread}
	if n := d.noted(ctx, s); n.Key != "" && n.Key == key { // in an attempt before
		return d.become(ctx, to, n, r, p)
	}
	a := d.drafts.remove(s, anyDraft)
	if a == nil {
		return "", false, nil
	}
	a.settle()
	stands := d.stands(ctx, a)
	if stands == 0 {
		return "", false, nil
	}
	if r.params["reply_parameters"] != "" || r.method != "sendMessage" {
		d.eraseDraft(ctx, s, stands)
		return "", false, nil
	}
	n := draftNote{stands, key}
	if !d.noteDraft(ctx, s, n) { // then it might be taken for a draft later
		d.eraseDraft(ctx, s, stands)
		return "", false, nil
	}
	return d.become(ctx, to, n, r, p)
}

// become makes a draft the answer that it is noted to become. From then on nobody takes
// it away, and while it is not known whether that worked, another try of the same part
// does the same again.
func (d *Driver) become(ctx context.Context, to target, n draftNote, r request, p part) (id string, done bool, err error) {
	s := spot{d.places.now(to.spot.chat), to.spot.thread}
	params := tgbotapi.Params{}
	params.AddNonEmpty("reply_markup", r.params["reply_markup"])
	err = d.editTo(ctx, to, n.ID, params, p)
	var api *apiError
	switch {
	case err == nil:
		d.forgetDraft(ctx, s, n.ID)
		return d.places.messageID(s.chat, n.ID), true, nil
	case errors.As(err, &api) && api.code < 500 && api.code != 429 && api.code != 401:
		d.eraseDraft(ctx, s, n.ID)
		return "", false, nil
	case unsure(err):
		err = fmt.Errorf("%w: %w", core.ErrUnknownOutcome, err)
	}
	return "", true, explain(err)
}

// dropDraft takes a draft away, beside what else is done. The next one begins
// anew at once.
func (d *Driver) dropDraft(s spot, which func(*draft) bool) {
	a := d.drafts.remove(s, which)
	if a == nil {
		return
	}
	d.later(func(ctx context.Context) {
		a.settle()
		if message := d.stands(ctx, a); message != 0 {
			d.eraseDraft(ctx, s, message)
		}
	})
}

// eraseDraft deletes a message that stood in for one.
func (d *Driver) eraseDraft(ctx context.Context, s spot, message int64) {
	r := request{method: "deleteMessage", params: tgbotapi.Params{"message_id": id(message)}, chat: s.chat, again: true}
	_, err := d.do(ctx, r)
	var api *apiError
	if err != nil && (!errors.As(err, &api) || api.code >= 500 || api.code == 401 || api.code == 429) {
		d.log.Warn("a draft is not gone", "chat", s.chat, "err", err)
		return // the next life tries again
	}
	d.forgetDraft(ctx, s, message)
}
