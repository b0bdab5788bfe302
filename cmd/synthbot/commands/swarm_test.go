package commands

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"synthbot/core/coretest"
	"synthbot/interfaces/telegram/telegramtest"
)

var (
	swarmMessages = flag.Int("swarm.messages", coretest.Sample(2000, 200), "messages of TestSwarm")
	swarmSpeed    = flag.Bool("swarm.speed", false, "let TestSwarmSpeed measure")
	swarmRounds   = flag.Int("swarm.rounds", coretest.Sample(12, 3), "workers that TestSwarm kills or freezes")
)

const (
	swarmWorkers  = 4
	swarmAccounts = 6
)

// swarm is several workers with one database, which share several accounts.
type swarm struct {
	*testing.T
	server    *coretest.Postgres
	platforms []*telegramtest.Server
	discord   *shardedPlatform // nil without Discord
	workers   []*swarmWorker
	said      []string // the account and user of each Telegram message
}

// swarmWorker is a worker that is restarted whenever it has ended.
type swarmWorker struct {
	*killTest
	process *exec.Cmd
	ended   chan struct{} // closed when the process has ended
	began   int           // the length of the log at the process's start
}

func newSwarm(t *testing.T, model string, workers, accounts int) *swarm {
	t.Helper()
	s := &swarm{T: t, server: coretest.StartPostgres(t)}
	t.Setenv("DATABASE_URL", s.server.URL)
	var interfaces strings.Builder
	for i := range accounts {
		p := telegramtest.New(t)
		for j := range killChats {
			p.AddPerson(telegramtest.Person{ID: int64(1000 + j), Name: fmt.Sprint("P", j)})
		}
		s.platforms = append(s.platforms, p)
		fmt.Fprintf(&interfaces, "[interfaces.account%d]\ntype = \"telegram\"\ntoken = %q\napi_url = %q\npace = \"off\"\n",
			i, telegramtest.Token, p.URL)
	}
	for i := range workers {
		k := newKillTest(t, model)
		raw, err := os.ReadFile(k.file)
		if err != nil {
			t.Fatal(err)
		}
		before, after, _ := strings.Cut(string(raw), "[interfaces.telegram]")
		_, after, _ = strings.Cut(after, "[access]")
		config := before + interfaces.String() + "[access]" + after
		write(t, k.file, strings.Replace(config, `worker = "first"`, fmt.Sprintf("worker = \"w%d\"", i), 1))
		s.workers = append(s.workers, &swarmWorker{killTest: k})
	}
	return s
}

// addDiscord gives all workers a Discord account, whose shards they share.
func (s *swarm) addDiscord() {
	s.discord = newShardedPlatform(s.T)
	for _, w := range s.workers {
		raw, err := os.ReadFile(w.file)
		if err != nil {
			s.Fatal(err)
		}
		write(s.T, w.file, string(raw)+s.discord.table())
	}
}

func (w *swarmWorker) start() {
	w.Helper()
	w.began = len(logOf(w.T, w))
	w.process = synthbotCommand(w, "run", "-c", w.file)
	w.process.Stdout, w.process.Stderr = w.log, w.log
	if err := w.process.Start(); err != nil {
		w.Fatal(err)
	}
	c, ended := w.process, make(chan struct{})
	w.ended = ended
	go func() {
		_ = c.Wait()
		close(ended)
	}()
	w.Cleanup(func() { _ = c.Process.Kill(); <-ended }) // the test may have ended it
}

// stop sends a signal to a worker and waits for its end.
func (w *swarmWorker) stop(s os.Signal) {
	_ = w.process.Process.Signal(s)
	<-w.ended
}

// kill ends a worker with SIGKILL and restarts it after a while.
func (w *swarmWorker) kill() {
	w.stop(os.Kill)
	time.Sleep(serverLease / 4)
	w.start()
}

// chat types a chat command at the worker's terminal, and returns the answer.
func (w *swarmWorker) chat(command string) string {
	w.Helper()
	c := synthbotCommand(w, "chat", "-c", w.file)
	c.Stdin = strings.NewReader(command + "\n")
	out, err := c.CombinedOutput()
	if err != nil {
		w.Errorf("%s: got %s, %v", command, out, err)
	}
	return string(out)
}

// freeze suspends a worker for longer than its lease. After that, the worker ends by itself if another one has
// taken something over from it, and is restarted.
func (w *swarmWorker) freeze() {
	_ = w.process.Process.Signal(syscall.SIGSTOP)
	time.Sleep(serverLease * 3 / 2)
	_ = w.process.Process.Signal(syscall.SIGCONT)
	select {
	case <-w.ended:
		w.start()
	case <-time.After(serverLease):
	}
}

// say sends the next n messages to random accounts, a third of them on Discord.
func (s *swarm) say(n int) {
	if s.discord != nil {
		s.discord.say(n / 3)
		n -= n / 3
	}
	for range n {
		s.sayTo(rand.IntN(len(s.platforms)), 1000+rand.IntN(killChats))
	}
}

// sayTo sends the next message to a Telegram account.
func (s *swarm) sayTo(account, person int) {
	s.platforms[account].Say(int64(person), int64(person), telegramtest.Saying{Text: fmt.Sprintf("m%d", len(s.said))})
	s.said = append(s.said, fmt.Sprintf("account%d/%d", account, person))
}

// unanswered lists the messages that no reply names.
func (s *swarm) unanswered() (left []string) {
	named := make(map[string]bool)
	for _, p := range s.platforms {
		for text := range replies(p) {
			for _, word := range strings.Fields(text) {
				named[word] = true
			}
		}
	}
	if s.discord != nil {
		left = s.discord.unanswered()
	}
	for i, place := range s.said {
		name := fmt.Sprintf("m%d", i)
		if !named[name] {
			left = append(left, name+" in "+place)
		}
	}
	return left
}

func (s *swarm) answered() {
	s.Helper()
	var left []string
	defer func() {
		if len(left) > 0 {
			s.Logf("not answered: %q", left)
			s.explain(left)
		}
	}()
	s.workers[0].waitForZero("messages are not answered", 50*time.Millisecond, func() int {
		left = s.unanswered()
		return len(left)
	})
}

// explain logs what the workers report about the places of unanswered messages, and their errors.
func (s *swarm) explain(left []string) {
	places := make(map[string]bool)
	for _, name := range left {
		if words := strings.Fields(name); len(words) > 1 {
			places[words[len(words)-1]] = true
		}
	}
	for channel := range places {
		if s.discord == nil || strings.HasPrefix(channel, "account") {
			continue
		}
		s.Logf("in %s: %q", channel, s.discord.Texts(channel))
		for _, c := range s.discord.Calls("") {
			if strings.Contains(c.Path, channel) && c.Method != "GET" && !strings.HasSuffix(c.Path, "/typing") {
				s.Logf("%v %s %s %d %.200s", c.At, c.Method, c.Path, c.Status, c.Body)
			}
		}
	}
	for i, w := range s.workers {
		for line := range strings.Lines(logOf(s.T, w)) {
			about := strings.Contains(line, `"ERROR"`) || strings.Contains(line, `"WARN"`) || strings.Contains(line, `"cmd"`)
			for channel := range places {
				about = about || strings.Contains(line, channel)
			}
			if about && !strings.Contains(line, "contribution left out") {
				s.Logf("w%d: %.500s", i, line)
			}
		}
	}
}

// repeats returns how many replies were sent again. More than three equal replies are an error.
func (s *swarm) repeats() (n int) {
	for _, p := range s.platforms {
		texts := make(map[sentText]int)
		for _, c := range p.Calls("sendMessage") {
			if c.Status != http.StatusOK {
				continue
			}
			key := sentText{c.Chat, c.Params["text"]}
			if texts[key]++; texts[key] > 1 {
				n++
				s.Logf("%.80q was sent again at %v", key.text, c.At)
			}
			if texts[key] > 3 {
				s.Errorf("%.80q was sent %d times, want at most 3", key.text, texts[key])
			}
		}
	}
	return n
}

// TestSwarm lets processes share a database, several Telegram accounts and the shards of a Discord account,
// while workers are killed or frozen and the database crashes twice. Every message is answered, on Discord
// exactly once. On Telegram, which has no idempotency keys, a reply may be repeated if its worker ended while
// it was being sent.
func TestSwarm(t *testing.T) {
	if testing.Short() {
		t.Skip("kills programs for a while")
	}
	s := newSwarm(t, newEchoModel(t), swarmWorkers, swarmAccounts)
	s.addDiscord()
	for _, w := range s.workers {
		w.start()
	}
	until(t, func() bool { return s.discord.LiveShards() == swarmShards }) // earlier messages would not be answered
	s.say(len(s.platforms))
	for _, channel := range s.discord.channels { // the bot learns of a direct channel by its first message
		s.discord.sayIn(channel)
	}
	s.answered()
	each := *swarmMessages / *swarmRounds
	for round := range *swarmRounds {
		s.say(each / 2)
		w := s.workers[rand.IntN(len(s.workers))]
		time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
		switch {
		case round == *swarmRounds/3 || round == *swarmRounds*2/3:
			s.server.Crash()
			s.say(each / 4)
			s.server.Start()
		case round%2 == 0:
			w.kill()
		default:
			w.freeze()
		}
		s.say(each - each/2)
		for _, w := range s.workers { // a database crash may have ended workers
			select {
			case <-w.ended:
				w.start()
			default:
			}
		}
	}
	s.answered()
	repeats := s.repeats()
	s.discord.checkAnswers(t)
	t.Logf("%d messages and %d on Discord, %d disruptions: %d repeated replies",
		len(s.said), len(s.discord.said), *swarmRounds, repeats)
	if repeats > *swarmRounds*swarmAccounts*2 {
		t.Errorf("%d repeated replies, want at most %d", repeats, *swarmRounds*swarmAccounts*2)
	}
}

// TestSwarmSpeed measures how many messages a second 1, 2 and 4 workers answer, with a model that takes 100 ms.
// Each worker has two model slots.
func TestSwarmSpeed(t *testing.T) {
	if !*swarmSpeed {
		t.Skip("measures: -swarm.speed")
	}
	const accounts, rounds = 8, 10
	model, speed := newSlowEchoModel(t, 100*time.Millisecond), make(map[int]float64)
	for _, workers := range []int{1, 2, 4} {
		s := newSwarm(t, model, workers, accounts)
		for _, w := range s.workers {
			raw, err := os.ReadFile(w.file)
			if err != nil {
				t.Fatal(err)
			}
			write(t, w.file, strings.Replace(string(raw), "stream = false", "stream = false\nparallel = 2", 1))
			w.start()
		}
		until(t, func() bool {
			return !slices.ContainsFunc(s.workers, func(w *swarmWorker) bool {
				log := logOf(t, w)
				return strings.Count(log, "serving")-strings.Count(log, "handing over to another") != accounts/workers
			})
		})
		s.everybody()
		began := time.Now()
		for range rounds {
			s.everybody()
		}
		speed[workers] = float64(rounds*accounts*killChats) / time.Since(began).Seconds()
		t.Logf("%d workers: %.1f messages a second, %.2f times that of one", workers, speed[workers], speed[workers]/speed[1])
		for _, w := range s.workers {
			w.stop(os.Kill)
		}
	}
}

// everybody sends a message from each user to each account, and waits for all answers.
func (s *swarm) everybody() {
	s.Helper()
	sent := func() (n int) {
		for _, p := range s.platforms {
			n += len(p.Calls("sendMessage"))
		}
		return n
	}
	before := sent()
	for person := range killChats {
		for account := range s.platforms {
			s.sayTo(account, 1000+person)
		}
	}
	until(s.T, func() bool { return sent() == before+killChats*len(s.platforms) })
}

// TestSharedBudget checks that workers together keep to the bot's budget, although they ask the model at the
// same time.
func TestSharedBudget(t *testing.T) {
	const limit, answer = 30_000, 1000 // an answer uses less than the estimate for its prompt
	var used atomic.Int64
	s := newSwarm(t, newBillingEchoModel(t, answer, &used), 3, 3)
	for _, w := range s.workers {
		raw, err := os.ReadFile(w.file)
		if err != nil {
			t.Fatal(err)
		}
		write(t, w.file, strings.Replace(string(raw), "bot_tokens = 0", fmt.Sprint("bot_tokens = ", limit), 1))
		w.start()
	}
	s.say(3)
	s.answered()
	for range 10 { // far more than the budget allows
		s.say(20)
		time.Sleep(100 * time.Millisecond)
	}
	until(t, func() bool {
		spent := 0
		for _, p := range s.platforms {
			for text := range replies(p) {
				if strings.Contains(text, "I have used up what I may spend today") {
					spent++
				}
			}
		}
		return spent == len(s.platforms)
	})
	if n := used.Load(); n > limit || n < limit/2 {
		t.Errorf("%d tokens were used, want %d to %d", n, limit/2, limit)
	}
}

// TestHandover checks that a second worker takes its share of the accounts, and that a stopped worker hands its
// accounts over at once.
func TestHandover(t *testing.T) {
	const reloaded = `"msg":"reloaded"`
	s := newSwarm(t, newEchoModel(t), 2, 2)
	s.workers[0].start()
	s.say(4)
	s.answered()
	s.workers[1].start()
	until(t, func() bool { return strings.Contains(logOf(t, s.workers[0]), "handing over to another process") })
	s.say(4)
	s.answered()
	status := s.workers[0].chat("/status")
	for _, want := range []string{"another worker serves it", "worker w0 (this one), lease for ", "worker w1, lease for "} {
		if !strings.Contains(status, want) {
			t.Errorf("no %q in %s", want, status)
		}
	}
	const differs = "w1 (with another configuration)"
	if strings.Contains(status, differs) {
		t.Error(status)
	}
	s.workers[0].chat("/set language fr")
	changed := time.Now()
	until(t, func() bool { return strings.Contains(s.workers[1].chat("/set language"), "fr") })
	if took := time.Since(changed); took > 4*time.Second {
		t.Errorf("the other worker learned of a setting after %v, want at most 4s", took)
	}
	s.workers[0].chat("/reload")
	for _, w := range s.workers {
		until(t, func() bool { return strings.Contains(logOf(t, w), reloaded) })
	}
	raw, err := os.ReadFile(s.workers[1].file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, s.workers[1].file, strings.Replace(string(raw), "stream = false", "stream = true", 1)) // the worker reloads by itself
	until(t, func() bool { return strings.Contains(s.workers[0].chat("/status"), differs) })
	began := time.Now()
	s.workers[0].stop(syscall.SIGTERM)
	if status := s.workers[0].process.ProcessState; !status.Success() {
		t.Error(status)
	}
	stopped := time.Now()
	s.say(10)
	s.answered()
	t.Logf("stopped after %v, all answered %v later", stopped.Sub(began), time.Since(stopped))
	for i, w := range s.workers {
		if n := strings.Count(logOf(t, w), reloaded); n != 2 {
			t.Errorf("worker %d has reloaded %d times, want twice", i, n)
		}
	}
	if n := strings.Count(logOf(t, s.workers[1]), "serving"); n != 2 {
		t.Errorf("the second worker serves %d accounts, want 2", n)
	}
	if n := s.repeats(); n > 0 {
		t.Errorf("%d repeated replies, want none", n)
		for _, w := range s.workers {
			t.Log(logOf(t, w))
		}
		for _, p := range s.platforms {
			for _, c := range p.Calls("") {
				t.Logf("%v %s %d %d %v", c.At, c.Method, c.Chat, c.Status, c.Params)
			}
		}
	}
}

func logOf(t *testing.T, w *swarmWorker) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Clean(w.log.Name()))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
