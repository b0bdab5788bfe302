package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/epochs"
	"synthbot/core/llm"
)

const maxSentData = 8 << 20 // bytes of personal data that are sent in a chat; an admin can export more

type personalData struct{ *Bot }

// PersonalData manages what the bot stores about users and places.
func (b *Bot) PersonalData() *personalData { return &personalData{b} }

func (d *personalData) show(ctx context.Context, c command.Call) (string, error) {
	var all bytes.Buffer
	if err := d.Export(ctx, &all, c.Person); err != nil {
		return "", err
	}
	text := countRows(all.Bytes())
	if all.Len() == 0 {
		return text, nil
	}
	text += "\n"
	_, sends := d.InForce().interfaceAt(c.Path).(core.FileSender)
	switch {
	case !sends:
		text += "I cannot send files here; `synthbot memory export " + c.Person.String() +
			"` prints all of it, one JSON object a line."
	case all.Len() > maxSentData:
		text += "That is too much to be sent here: ask an admin for it."
	default:
		text += "The file holds all of it, one JSON object a line."
		c.Attach(core.Upload{Name: "mydata.jsonl", MIME: "application/jsonl", Data: all.Bytes(), Kind: core.MediaFile})
	}
	return text + " /forgetme erases it.", nil
}

// Export writes what the bot stores about a place, a user or everybody, one JSON object a line. Data of a user
// includes what plugins store under other paths. The private thoughts of the model are left out, as in the
// export of the database.
func (d *personalData) Export(ctx context.Context, w io.Writer, path core.Path) error {
	if err := d.Data.DB.Export(ctx, w, path); err != nil || !path.IsPerson() {
		return err
	}
	e := json.NewEncoder(llm.ThoughtlessLines(w))
	for name, k := range pluginsWith[core.DataKeeper](d.InForce()) {
		kept, err := k.Kept(ctx, path)
		if err != nil {
			return fmt.Errorf("plugin %s: %w", name, err)
		}
		for _, value := range kept {
			if err := e.Encode(map[string]any{"plugin": name, "value": value}); err != nil {
				return err
			}
		}
	}
	return nil
}

func countRows(export []byte) string {
	kinds := make(map[string]int)
	for line := range bytes.Lines(export) {
		var row map[string]json.RawMessage
		if json.Unmarshal(line, &row) == nil {
			kinds[rowKind(row)]++
		}
	}
	if len(kinds) == 0 {
		return "I keep nothing about you."
	}
	var s strings.Builder
	s.WriteString("This is what I keep about you:\n\n")
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(&s, "- %s: %d\n", kind, kinds[kind])
	}
	return s.String()
}

func rowKind(row map[string]json.RawMessage) string {
	for _, k := range []struct{ key, name string }{
		{"entry", "messages"}, {"memory", "memories"}, {"item", "notes of plugins"}, {"plugin", "notes of plugins"},
		{"use", "days of use"}, {"state", "topics"}, {"record", "steps of answers"},
	} {
		if _, ok := row[k.key]; ok {
			return k.name
		}
	}
	return "other"
}

func (d *personalData) forgetAuthor(ctx context.Context, c command.Call) (string, error) {
	if strings.ToLower(c.Args["sure"]) != "yes" {
		return "This erases all that I keep about you: what you said to me in every place, memories, notes, and our " +
			"private talk. It cannot be undone. If you are sure, write: /forgetme yes", nil
	}
	if err := d.forget(ctx, c.Person); err != nil {
		return "", err
	}
	return "It is done: I know nothing about you any more.", nil
}

// forget erases a user or a place. Deleted bytes stay in the file until it is compacted.
func (d *personalData) forget(ctx context.Context, path core.Path) error {
	ctx = epochs.Without(ctx) // else its author could not be erased during their own turn
	errs := []error{d.erasePluginData(ctx, path), d.Data.DB.Forget(ctx, path)}
	// A running turn may have stored something in between. From now on, none can.
	errs = append(errs, d.erasePluginData(ctx, path))
	d.dropFromMemory(path)
	d.workers.sharing.forgotten(ctx, path)
	fewer, err := d.changes.Reread(ctx)
	if fewer {
		d.reloads.adminsChanged() // a forgotten user may have been an admin
	}
	return errors.Join(append(errs, err)...)
}

// dropFromMemory drops what this process holds in memory about a forgotten user or place.
func (d *personalData) dropFromMemory(path core.Path) {
	d.Turns.Forget()
	listener := d.InForce().listener
	if listener != nil {
		listener.Forget(d.Data.DB.Epoch())
	}
	d.monitor.traces.Forget(path)
	d.env.lines.Forget(path)
	d.alerts.forget(path)
}

// erasePluginData makes plugins erase what they store about a user under other paths.
func (d *personalData) erasePluginData(ctx context.Context, person core.Path) error {
	if !person.IsPerson() {
		return nil
	}
	var errs []error
	for _, k := range pluginsWith[core.DataKeeper](d.InForce()) {
		errs = append(errs, k.Erase(ctx, person))
	}
	return errors.Join(errs...)
}

// Forget erases a user or a place, and rewrites the database file without the deleted bytes.
func (d *personalData) Forget(ctx context.Context, path core.Path) error {
	if err := d.forget(ctx, path); err != nil {
		return err
	}
	_, _, err := d.Data.DB.Compact(ctx)
	return err
}
