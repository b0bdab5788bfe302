package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/plugins/plugintest"
)

// inside returns a connection to a server in this process.
func inside(good *mcp.Server) (*connection, error) {
	ours, its := mcp.NewInMemoryTransports()
	session, err := good.Connect(context.Background(), its, nil)
	if err != nil {
		return nil, err
	}
	l := newConnection()
	l.transport = ours
	l.work.Go(func() {
		<-l.ctx.Done()
		_ = session.Close() // the client may have closed it
	})
	return l, nil
}

// guard is a plugin with an action for admins and one for everyone.
func guard() *coretest.Plugin {
	schema := json.RawMessage(`{"type":"object"}`)
	return coretest.NewPlugin("guard",
		core.Action{Name: "wipe", Brief: "Delete everything", Schema: schema, Permission: core.PermissionAdmins},
		core.Action{Name: "ban", Brief: "Ban somebody", Schema: schema, Permission: core.PermissionModerators},
		core.Action{Name: "pay", Brief: "Pay somebody", Schema: schema, Permission: core.PermissionEveryone, Confirm: true},
	)
}

// TestScripts runs conversations that use a server in this process.
func TestScripts(t *testing.T) {
	var plugin *Plugin
	deeds := guard()
	plugintest.Run(t, "testdata/*.txt",
		plugintest.Named("mcp", func(h core.Host, c Config) (*Plugin, error) {
			p, err := New(h, c)
			if err != nil {
				return nil, err
			}
			for _, s := range p.servers {
				s.dial = func() (*connection, error) { return inside(goodServer(s.conf.Command[0])) }
			}
			plugin = p
			return p, nil
		}),
		plugintest.With(deeds),
		plugintest.Verb("crash", func(s *plugintest.Script, _ string) {
			for _, server := range plugin.servers {
				if l := server.conn.Load(); l != nil {
					l.end(errors.New("it crashed"))
				}
			}
		}),
		plugintest.Verb("done", func(s *plugintest.Script, want string) {
			got := ""
			for _, c := range deeds.Calls() {
				got += string(c.Payload)
			}
			if got != want {
				s.Fatalf("executed actions: got %q", got)
			}
		}),
	)
}
