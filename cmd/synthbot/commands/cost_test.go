package commands

import (
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/interfaces/telegram/telegramtest"
	"synthbot/memory"
)

var others = flag.String("binaries", "", "files, separated by commas, that BenchmarkMessage measures by turns")

// BenchmarkMessage measures the cost of a message: the released binary runs in a process of its own, with a
// real disk, a Telegram server and a model that streams without delay. With one chat, each message follows the
// answer to the one before. With 50 chats, each of them does that. Rounds in which the host took the processor
// away count for costs, not for times.
func BenchmarkMessage(b *testing.B) {
	model := newStreamingModel(b)
	binaries := make(map[string]string) // by the prefix of their metrics
	if *others == "" {
		binaries[""] = buildRelease(b)
	} else {
		for _, file := range strings.Split(*others, ",") {
			binaries[filepath.Base(file)+"-"] = file
		}
	}
	for _, chats := range []int{1, 50} {
		b.Run(fmt.Sprintf("chats=%d", chats), func(b *testing.B) {
			subjects := make(map[string]*subject)
			for name, file := range binaries {
				s := newSubject(b, model.URL, file)
				s.start()
				s.round(chats, 100/chats)
				s.measured = measured{}
				subjects[name] = s
			}
			for b.Loop() {
				for _, s := range subjects {
					s.round(chats, 200/chats)
				}
			}
			for name, s := range subjects {
				s.report(name)
				s.end()
			}
		})
	}
	b.Run("start", func(b *testing.B) {
		starts := make(map[string]*start)
		for b.Loop() {
			for name, file := range binaries {
				if starts[name] == nil {
					starts[name] = &start{subject: newSubject(b, model.URL, file)}
				}
				starts[name].measure()
			}
		}
		for name, s := range starts {
			b.ReportMetric(ms(percentile(s.polls, 50)), name+"exec-to-poll-ms")
			b.ReportMetric(ms(percentile(s.firsts, 50)), name+"first-ms")
			b.ReportMetric(float64(percentile(s.firsts, 50))/float64(percentile(s.others, 50)), name+"first/median")
		}
	})
}

// start is a bot that is restarted repeatedly.
type start struct {
	*subject
	polls, firsts, others []time.Duration
}

func (s *start) measure() {
	s.Helper()
	s.polls = append(s.polls, s.start())
	s.firsts = append(s.firsts, s.talk(1000, 1)...)
	s.others = append(s.others, s.talk(1000, 50)...)
	s.end()
}

// newStreamingModel starts a model that streams its answer without delay, six characters in each event.
func newStreamingModel(b *testing.B) *httptest.Server {
	var events []string
	answer := `{"response":"Of course. The library is open until eight today, and the bus stops in front of it."}`
	for pieces := []rune(answer); len(pieces) > 0; pieces = pieces[min(6, len(pieces)):] {
		events = append(events, fmt.Sprintf(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,`+
			`"model":"m","choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}]}`+"\n\n", string(pieces[:min(6, len(pieces))])))
	}
	events = append(events, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n",
		`data: {"choices":[],"usage":{"prompt_tokens":2000,"completion_tokens":24,"total_tokens":2024}}`+"\n\n", "data: [DONE]\n\n")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			_, _ = io.WriteString(w, e)
			_ = http.NewResponseController(w).Flush()
		}
	}))
	b.Cleanup(s.Close)
	return s
}

// buildRelease builds the binary with the flags of a release, and copies it as an installation does: the pages of a
// file that the linker has just written are mapped one by one, so that it starts 1 ms later.
func buildRelease(tb testing.TB) string {
	tb.Helper()
	linked, installed := filepath.Join(tb.TempDir(), "linked"), filepath.Join(tb.TempDir(), "synthbot")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -funcalign=8", "-o", linked, "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	for _, command := range []*exec.Cmd{build, exec.Command("cp", linked, installed)} {
		if out, err := command.CombinedOutput(); err != nil {
			tb.Fatalf("%v: %s", err, out)
		}
	}
	return installed
}

// measured is the result of rounds. A round is quiet if the host took no processor time away.
type measured struct {
	messages, quiet int
	took            time.Duration   // in quiet rounds
	latencies       []time.Duration // in quiet rounds
	disk            []time.Duration // commits to another database on the same disk
	spent           costs
	fakes           time.Duration // processor time of this process
}

// subject is a bot process whose costs are measured from outside.
type subject struct {
	*testing.B
	measured
	binary, dir, metrics string
	process              *exec.Cmd
	platform             *telegramtest.Server
	answers              map[int64]chan time.Time // by chat
	commit               func() time.Duration
}

func newSubject(b *testing.B, model, binary string) *subject {
	b.Helper()
	s := &subject{B: b, binary: binary, dir: b.TempDir(), metrics: freeAddress(b), platform: telegramtest.New(b)}
	s.answers = make(map[int64]chan time.Time)
	for chat := int64(1000); chat < 1050; chat++ {
		s.platform.AddPerson(telegramtest.Person{ID: chat, Name: fmt.Sprint("P", chat)})
		s.answers[chat] = make(chan time.Time, 1)
	}
	s.platform.Delay(func(c telegramtest.Call) time.Duration {
		if c.Method == "sendMessage" {
			s.answers[c.Chat] <- c.At
		}
		return 0
	})
	s.commit = newCommitter(b, 1)
	config := strings.Replace(onTelegram(model, s.platform.URL, ""), "stream = false", "", 1)
	write(b, filepath.Join(s.dir, "config.toml"), config+fmt.Sprintf(`
[plugins.memory]
extract = false
[metrics]
listen = %q
`, s.metrics))
	return s
}

// start runs the program until it polls, and returns how long that took.
func (s *subject) start() time.Duration {
	s.Helper()
	polls := len(s.platform.Calls("getUpdates"))
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		s.Fatal(err)
	}
	defer log.Close()
	s.process = exec.Command(s.binary, "run", "-c", filepath.Join(s.dir, "config.toml"))
	s.process.Stderr = log
	began := time.Now()
	if err := s.process.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		_ = s.process.Process.Kill() // only needed if the benchmark failed
		_ = s.process.Wait()
	})
	s.platform.Await(s, func() bool { return len(s.platform.Calls("getUpdates")) > polls })
	return s.platform.Calls("getUpdates")[polls].At.Sub(began)
}

func (s *subject) end() {
	s.Helper()
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil {
		s.Fatal(err)
	}
	if err := s.process.Wait(); err != nil {
		s.Error(err)
	}
}

// talk sends messages to a chat, each after the answer to the one before. It returns how long the answers took.
func (s *subject) talk(chat int64, messages int) (took []time.Duration) {
	for range messages {
		began := time.Now()
		s.platform.Say(chat, chat, telegramtest.Saying{Text: "How long is the library open today, and which bus goes there?"})
		took = append(took, (<-s.answers[chat]).Sub(began))
	}
	return took
}

// round talks in so many chats at the same time.
func (s *subject) round(chats, messages int) {
	s.Helper()
	stolen, before, own := coretest.Stolen(), s.costs(), processorTime(s)
	var mu sync.Mutex
	var all []time.Duration
	var group sync.WaitGroup
	began := time.Now()
	for chat := range chats {
		group.Go(func() {
			took := s.talk(int64(1000+chat), messages)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took...)
		})
	}
	group.Wait()
	took := time.Since(began)
	s.fakes += processorTime(s) - own
	after := s.costs()
	s.spent.processor += after.processor - before.processor
	s.spent.allocated += after.allocated - before.allocated
	s.spent.commits += after.commits - before.commits
	s.messages += len(all)
	s.platform.Forget()
	if coretest.Stolen() == stolen {
		s.quiet += len(all)
		s.took += took
		s.latencies = append(s.latencies, all...)
		for range 20 {
			s.disk = append(s.disk, s.commit())
		}
	}
}

func (s *subject) report(name string) {
	s.Helper()
	if s.quiet == 0 {
		s.Log("no quiet round")
		return
	}
	each := 1 / float64(s.messages)
	s.ReportMetric(s.spent.processor*1000*each, name+"cpu-ms/msg")
	s.ReportMetric(s.spent.allocated/1000*each, name+"KB/msg")
	s.ReportMetric(s.spent.commits*each, name+"commits/msg")
	s.ReportMetric(ms(s.fakes)*each, name+"fakes-cpu-ms/msg")
	s.ReportMetric(float64(s.quiet)/s.took.Seconds(), name+"msg/s")
	for _, percent := range []int{50, 95} {
		s.ReportMetric(ms(percentile(s.latencies, percent)), fmt.Sprintf("%sp%d-ms", name, percent))
		s.ReportMetric(ms(percentile(s.disk, percent)), fmt.Sprintf("%scommit-p%d-ms", name, percent))
	}
	s.ReportMetric(s.peak(), name+"peak-MiB")
}

// costs are what the bot has used since its start.
type costs struct {
	processor float64 // seconds
	allocated float64 // bytes
	commits   float64
}

func (s *subject) costs() costs {
	s.Helper()
	a, err := http.Get("http://" + s.metrics + "/metrics")
	if err != nil {
		s.Fatal(err)
	}
	defer a.Body.Close()
	page, err := io.ReadAll(a.Body)
	if err != nil {
		s.Fatal(err)
	}
	value := func(name string) float64 {
		m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindSubmatch(page)
		if m == nil {
			s.Fatalf("no %s in %s", name, page)
		}
		v, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			s.Fatal(err)
		}
		return v
	}
	return costs{value("process_cpu_seconds_total"), value("go_memstats_alloc_bytes_total"), s.transactions()}
}

// transactions returns the number of the last commit, from the two meta pages of the database.
func (s *subject) transactions() (last float64) {
	s.Helper()
	db, err := os.Open(filepath.Join(s.dir, "data", "synthbot.db"))
	if err != nil {
		s.Fatal(err)
	}
	defer db.Close()
	const header, pageSize, id = 16, 8, 48 // offsets of the meta data in its page, and of two of its fields
	meta := make([]byte, header+id+8)
	for _, page := range []int64{0, int64(os.Getpagesize())} {
		if _, err := db.ReadAt(meta, page); err != nil {
			s.Fatal(err)
		}
		if size := binary.NativeEndian.Uint32(meta[header+pageSize:]); int(size) != os.Getpagesize() {
			s.Fatalf("page size %d, want the system's", size)
		}
		last = max(last, float64(binary.NativeEndian.Uint64(meta[header+id:])))
	}
	return last
}

// peak returns the largest memory that the bot has used, in MiB.
func (s *subject) peak() float64 {
	s.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
	if err != nil {
		s.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		s.Fatalf("no VmHWM in %s", status)
	}
	kib, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		s.Fatal(err)
	}
	return kib / 1024
}

// processorTime returns the processor time that this process has used.
func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// percentile sorts all and returns the percentile, or 0 for an empty list.
func percentile(all []time.Duration, percent int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)*percent/100]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// newCommitter opens a database. It returns a function that makes n commits of a small entry and returns how
// long they took.
func newCommitter(b *testing.B, n int) func() time.Duration {
	db, err := memory.Open(b.TempDir(), memory.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	place, id := core.MustPath("bench/1"), 0
	return func() time.Duration {
		began := time.Now()
		for range n {
			id++
			e := core.Entry{Event: core.Event{Kind: core.KindMessage, Message: core.Message{Path: place, ID: fmt.Sprint(id), Text: "hello", Time: began}}}
			if err := db.Commit(b.Context(), &core.Batch{Append: []core.Entry{e}}); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(began)
	}
}
