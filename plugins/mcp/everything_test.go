package mcp

import (
	"crypto/sha256"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"synthbot/core/program"
	"synthbot/core/secret"
)

// everything returns the command of the reference server, as scripts/mcp-everything.sh installs it.
func everything(t *testing.T, args ...string) []string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("without Node, the reference MCP server cannot run")
	}
	lock, err := os.ReadFile("testdata/npm/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		cache = filepath.Join(os.Getenv("HOME"), ".cache")
	}
	folder := filepath.Join(cache, "synthbot", fmt.Sprintf("mcp-everything-%x", sha256.Sum256(lock))[:len("mcp-everything-")+16])
	if _, err := os.Stat(filepath.Join(folder, "installed")); err != nil {
		t.Skip("scripts/mcp-everything.sh installs the reference MCP server, which is missing")
	}
	return append([]string{node, filepath.Join(folder, "node_modules/@modelcontextprotocol/server-everything/dist/index.js")}, args...)
}

// TestEverything checks the supported parts of the protocol with the reference server, which offers all of it.
func TestEverything(t *testing.T) {
	t.Parallel()
	b := start(t, nil, Server{
		Name: "every", Command: everything(t, "stdio"), Env: map[string]secret.Secret{"EVERY_KEY": secret.New("s3cr3t-token")},
		Timeout: time.Minute, Start: 2 * time.Minute, Media: true,
	})
	b.there("every_echo")
	b.there("every_resource_read")
	b.there("every_prompt_get")
	for _, tc := range []struct{ action, payload, want string }{
		{"every_echo", `{"message":"hello"}`, `"text":"Echo: hello"`},
		{"every_get-sum", `{"a":2,"b":3}`, `The sum of 2 and 3 is 5.`},
		{"every_get-structured-content", `{"location":"Chicago"}`, `"result":{"conditions":"Light rain / drizzle","humidity":82,"temperature":36}}`},
		{"every_get-tiny-image", `{}`, `[image/png, sent into the chat]`},
		{"every_get-annotated-message", `{"messageType":"error"}`, `Error: Operation failed`},
		{"every_get-resource-links", `{"count":2}`, `[resource demo://resource/dynamic/`},
		{"every_get-resource-reference", `{"resourceType":"Text","resourceId":1}`, `Resource 1: This is a plaintext resource`},
		{"every_get-env", `{}`, `EVERY_KEY`},
		{"every_trigger-long-running-operation", `{"duration":1,"steps":2}`, `Long running operation completed.`},
		{"every_resource_read", `{}`, `demo://resource/dynamic/text/{resourceId}`},
		{"every_resource_read", `{"uri":"demo://resource/dynamic/text/7"}`, `Resource 7: This is a plaintext resource`},
		{"every_resource_read", `{"uri":"demo://resource/dynamic/blob/7"}`, `bytes, not shown]`},
		{"every_prompt_get", `{}`, `args-prompt: Arguments Prompt, A prompt with two arguments, one required and one optional; arguments: city (required), state`},
		{"every_prompt_get", `{"name":"args-prompt","arguments":{"city":"Rome"}}`, `What's weather in Rome?`},
	} {
		out := b.must(tc.action, tc.payload)
		if !strings.Contains(out, tc.want) || !strings.HasPrefix(out, `{"foreign":"This is what `) || strings.Contains(out, "s3cr3t") {
			t.Errorf("%s %s: %s", tc.action, tc.payload, out)
		}
	}
	if _, err := b.call("every_prompt_get", `{"name":"args-prompt"}`); err == nil || !strings.Contains(err.Error(), "says") {
		t.Errorf("missing argument: got %v", err)
	}
	if n := len(b.stand.Carried()); n != 1 {
		t.Errorf("got %d pictures", n)
	}
	for _, a := range b.Actions() {
		t.Logf("%-45s %-10s confirm=%-5v %s", a.Name, a.Permission, a.Confirm, a.Brief)
	}
	if a := b.action("every_toggle-simulated-logging"); !a.Confirm || !a.Outside {
		t.Error("want a confirmation for actions that are not marked as read-only")
	}
}

// TestEverythingHTTP does the same over streamable HTTP. The server starts after the plugin and ends before it.
func TestEverythingHTTP(t *testing.T) {
	t.Parallel()
	argv := everything(t, "streamableHttp")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	b := start(t, func(p *times) { p.probeEvery, p.probeTimeout = 100*time.Millisecond, 2*time.Second }, Server{Name: "every", URL: "http://127.0.0.1:" + port + "/mcp", Start: 5 * time.Second})
	b.says("mcp server is gone", 1)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(program.Environment(nil), "PORT="+port)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := sync.OnceFunc(func() {
		_ = cmd.Process.Kill() // this test started it
		_ = cmd.Wait()         // the error is that it was killed
	})
	t.Cleanup(ended)
	b.there("every_echo")
	if out := b.must("every_echo", `{"message":"hello"}`); !strings.Contains(out, "Echo: hello") {
		t.Error(out)
	}
	ended()
	b.gone()
}
