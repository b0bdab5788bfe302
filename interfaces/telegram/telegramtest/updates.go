package telegramtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Push sends an update to the bot: a JSON object, to which it adds the update_id. Any other text is sent unchanged.
func (s *Server) Push(raw string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pushRaw(func(id int) json.RawMessage {
		if rest, ok := bytes.CutPrefix([]byte(raw), []byte("{")); ok {
			return slices.Concat([]byte(`{"update_id":`+strconv.Itoa(id)+`,`), rest)
		}
		return json.RawMessage(raw)
	})
}

func (s *Server) push(u map[string]any) int {
	return s.pushRaw(func(id int) json.RawMessage {
		u["update_id"] = id
		raw, err := json.Marshal(u)
		if err != nil {
			panic(err)
		}
		return raw
	})
}

func (s *Server) pushRaw(build func(id int) json.RawMessage) int {
	s.lastID++
	s.updates = append(s.updates, update{s.lastID, build(s.lastID)})
	s.wake()
	return s.lastID
}

func (s *Server) wake() {
	close(s.arrived)
	s.arrived = make(chan struct{})
}

// Waiting returns how many updates the bot has not confirmed.
func (s *Server) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.updates)
}

// Skip makes update ids continue elsewhere, as they do after a week without updates.
func (s *Server) Skip(to int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastID = to
}

// getUpdates serves one long poll. It ends one that is already open.
func (s *Server) getUpdates(w http.ResponseWriter, r *http.Request, c Call) {
	fault := s.chooseFault(&c)
	s.record(c, 0)
	if fault.Kind != None {
		s.failRequest(w, r, fault)
		return
	}
	s.mu.Lock()
	if s.hook.url != "" {
		s.mu.Unlock()
		reply(w, failure{409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first", nil})
		return
	}
	if s.reader != nil {
		close(s.reader)
	}
	me := make(chan struct{})
	s.reader = me
	s.mu.Unlock()
	s.poll(w, r, c, me)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reader == me {
		s.reader = nil
	}
}

func (s *Server) poll(w http.ResponseWriter, r *http.Request, c Call, ended chan struct{}) {
	limit := int(atoi(c.Params["limit"]))
	if limit < 1 || limit > 100 {
		limit = 100
	}
	deadline := time.NewTimer(time.Duration(min(atoi(c.Params["timeout"]), 50)) * time.Second)
	defer deadline.Stop()
	for {
		batch, arrived := s.batch(int(atoi(c.Params["offset"])), limit, c.Params["allowed_updates"])
		if len(batch) > 0 {
			reply(w, batch)
			return
		}
		select {
		case <-arrived:
		case <-deadline.C:
			reply(w, []json.RawMessage{})
			return
		case <-ended:
			if s.isRevoked() {
				reply(w, failure{401, "Unauthorized", nil})
				return
			}
			reply(w, failure{409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running", nil})
			return
		case <-r.Context().Done():
			return
		case <-s.closing:
			panic(http.ErrAbortHandler)
		}
	}
}

// batch confirms the updates before offset and returns those after it.
func (s *Server) batch(offset, limit int, allowed string) ([]json.RawMessage, chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if offset > 0 {
		s.updates = slices.DeleteFunc(s.updates, func(u update) bool { return u.id < offset })
	}
	var kinds []string
	_ = json.Unmarshal([]byte(allowed), &kinds)
	batch := make([]json.RawMessage, 0, limit)
	for _, u := range s.updates {
		if len(batch) < limit && wanted(u.raw, kinds) {
			batch = append(batch, u.raw)
		}
	}
	return batch, s.arrived
}

// wanted reports whether the bot asked for that kind of update.
func wanted(raw json.RawMessage, kinds []string) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return true
	}
	optional := []string{"message_reaction", "message_reaction_count", "chat_member"}
	for field := range fields {
		if len(kinds) > 0 && field != "update_id" && !slices.Contains(kinds, field) || len(kinds) == 0 && slices.Contains(optional, field) {
			return false
		}
	}
	return true
}

// webhook is where the server sends updates.
type webhook struct {
	url, secret string
	certificate []byte
	failed      int64 // when a delivery last failed
}

// Unreachable makes getWebhookInfo report a failed delivery.
func (s *Server) Unreachable() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook.failed = time.Now().Unix()
}

// Hook returns the webhook's address and its certificate, if it has one.
func (s *Server) Hook() (url string, certificate []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hook.url, s.hook.certificate
}

// Deliver sends all waiting updates to the webhook at address, one after the other. An update stays until the response
// is 200.
func (s *Server) Deliver(client *http.Client, address string) error {
	for _, u := range s.waiting() {
		if err := s.deliver(client, address, u); err != nil {
			return err
		}
	}
	return nil
}

// DeliverAtOnce is like Deliver, but sends all updates at the same time.
func (s *Server) DeliverAtOnce(client *http.Client, address string) error {
	list := s.waiting()
	errs := make(chan error, len(list))
	for _, u := range list {
		go func() { errs <- s.deliver(client, address, u) }()
	}
	var all error
	for range list {
		all = errors.Join(all, <-errs)
	}
	return all
}

func (s *Server) waiting() []update {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.updates)
}

func (s *Server) deliver(client *http.Client, address string, u update) error {
	req, err := http.NewRequest(http.MethodPost, address, bytes.NewReader(u.raw))
	if err != nil {
		return err
	}
	s.mu.Lock()
	req.Header.Set("X-Telegram-Bot-Api-Secret-Token", s.hook.secret)
	s.mu.Unlock()
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("webhook: status %d", resp.StatusCode)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.updates = slices.DeleteFunc(s.updates, func(x update) bool { return x.id == u.id })
	return nil
}
