package synthbot_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// logKeys lists the keys of log attributes, with what each contains. One key has
// one meaning in all packages.
var logKeys = map[string]string{
	"accounts":   "all accounts of a platform that served these places",
	"action":     "the name of an action",
	"actions":    "how many actions there are",
	"address":    "a network address",
	"all":        "whether all were meant, not one",
	"attempt":    "which attempt it is, from 1",
	"backup":     "the file of a backup",
	"beat":       "the name of a beat",
	"breaking":   "whether a change breaks what exists",
	"bytes":      "a size",
	"caller":     "what called a plugin",
	"channel":    "the id of a channel of Discord",
	"chat":       "the id of a chat of Telegram",
	"command":    "the name of a chat command",
	"confidence": "how sure the model is, from 0 to 1",
	"count":      "how many of what the message names",
	"day":        "a date",
	"engine":     "the name of an engine",
	"engines":    "the names of all engines",
	"entry":      "the number of an entry in the log of its place",
	"err":        "an error",
	"everywhere": "whether it holds for all places",
	"facts":      "how many facts",
	"failures":   "how many failures before were not logged",
	"faults":     "what is wrong with a plan, an answer or notes",
	"file":       "a file",
	"from":       "the version before",
	"guild":      "the id of a guild of Discord",
	"healthy":    "whether it works",
	"id":         "the id of what the message names",
	"ids":        "the ids of messages",
	"intent":     "the intent of a plan",
	"interface":  "the name of an interface",
	"interfaces": "how many interfaces there are",
	"items":      "how many items at most",
	"job":        "the name of a job of the database",
	"key":        "the key of an item",
	"keys":       "keys of the configuration",
	"kind":       "which kind of what the message names",
	"lasted":     "how long it lasted",
	"level":      "a level of the log",
	"limit":      "the largest size",
	"messages":   "how many messages",
	"method":     "a method of a platform's API",
	"mime":       "a media type",
	"model":      "the name of a model",
	"name":       "the name of what the message names",
	"panic":      "the value of a panic",
	"path":       "a place",
	"plugin":     "the name of a plugin",
	"reason":     "a reason that is not an error",
	"retry_in":   "how long until the next attempt",
	"room":       "the room that logs",
	"sent":       "how many messages were sent",
	"server":     "the name of an MCP server",
	"session":    "a session of the admin page",
	"shard":      "the number of a shard",
	"since":      "a time in the past",
	"stack":      "the stack of a panic",
	"state":      "a state of the service manager",
	"status":     "an HTTP status",
	"steps":      "the steps of a plan, or how many",
	"text":       "text of a model, a program or a file",
	"to":         "the version after",
	"tool":       "the name of a tool of a server or blueprint",
	"tools":      "how many tools at most",
	"turn":       "the number of a turn in its place",
	"until":      "a time in the future",
	"user":       "a user",
	"version":    "the version of the program",
	"worker":     "the name of a background task",
}

// logMethods maps the methods of a log to the position of their first key.
var logMethods = map[string]int{
	"With": 0, "Debug": 1, "Info": 1, "Warn": 1, "Error": 1,
	"DebugContext": 2, "InfoContext": 2, "WarnContext": 2, "ErrorContext": 2, "Log": 3,
}

// logReceiver matches the expressions that are logs: s.log, o.Log, slog, logs.Room(…).
var logReceiver = regexp.MustCompile(`(?i)(\blog|logger)$|^slog$|^logs\.`)

func TestPlainLogKeys(t *testing.T) {
	faults, _ := allLogKeys(t)
	for _, fault := range faults {
		t.Error(fault)
	}
}

func TestLogKeysAreUsed(t *testing.T) {
	_, used := allLogKeys(t)
	for key := range logKeys {
		if !used[key] {
			t.Errorf("no log line has the key %q: remove it from the list", key)
		}
	}
}

// allLogKeys returns the keys of all log lines, and their faults.
func allLogKeys(t *testing.T) (faults []string, used map[string]bool) {
	t.Helper()
	used = make(map[string]bool)
	for _, file := range files(t) {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		faults = append(faults, keyFaults(t, file, string(text), used)...)
	}
	return faults, used
}

// keyFaults returns the keys of a file's log lines that logKeys does not list. It adds all
// keys to used.
func keyFaults(t *testing.T, file, text string, used map[string]bool) (faults []string) {
	t.Helper()
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		for _, arg := range keysOf(call) {
			key := ""
			literal, ok := arg.(*ast.BasicLit)
			if ok {
				key, err = strconv.Unquote(literal.Value)
			}
			used[key] = true
			if !ok || err != nil || logKeys[key] == "" {
				faults = append(faults, fmt.Sprintf("%s: the log key %s is not in logKeys", set.Position(arg.Pos()), types.ExprString(arg)))
			}
		}
		return true
	})
	return faults
}

// keysOf returns the keys among the arguments of a call; none if it is not a log call.
func keysOf(call *ast.CallExpr) (keys []ast.Expr) {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	on := types.ExprString(f.X)
	if on == "slog" && slices.Contains([]string{"Any", "Bool", "Duration", "Int", "Int64", "String", "Time"}, f.Sel.Name) {
		return call.Args[:1]
	}
	first, ok := logMethods[f.Sel.Name]
	if !ok || !logReceiver.MatchString(on) || call.Ellipsis.IsValid() {
		return nil
	}
	for i := first; i < len(call.Args); i += 2 {
		keys = append(keys, call.Args[i])
	}
	return keys
}

func TestLogKeysNotices(t *testing.T) {
	for line, want := range map[string]int{
		`s.log.Info("x", "path", p, "err", err)`:                    0,
		`http.Error(w, "x", 500)`:                                   0,
		`s.log.Info("x", "where", p, "error", err)`:                 2,
		`s.host.Log.Warn("x", key, p)`:                              1,
		`slog.ErrorContext(ctx, "x", "why", p)`:                     1,
		`o.Log.With("place", p)`:                                    1,
		`logs.Room(log, "x").With("place", p)`:                      1,
		`h.WithAttrs([]slog.Attr{slog.String("place", "x")})`:       1,
		`t.setup.Load().Log.Error("x", "path", p, "in", time.Hour)`: 1,
	} {
		text := "package p\nfunc f() { " + line + " }\n"
		if got := keyFaults(t, "p.go", text, make(map[string]bool)); len(got) != want {
			t.Errorf("%s: got %q, want %d faults", line, got, want)
		}
	}
}
