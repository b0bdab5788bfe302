package memory

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"time"
)

const (
	stuckSuffix = ".stuck"       // of the file that counts what blocked the writer
	stuckLimit  = 3              // a job is refused after it blocked the writer so often
	stuckAge    = 24 * time.Hour // a refused job is tried again after so long
)

// blockedJobs counts the jobs that blocked the writer, in a file beside the database:
// that cannot be written then.
type blockedJobs struct {
	file  string
	clock func() time.Time
	log   *slog.Logger
}

// blocked says how often a job blocked the writer, and when it did last.
type blocked struct {
	Times int       `json:"times"`
	Last  time.Time `json:"last"`
}

// add counts a job that blocked the writer.
func (b *blockedJobs) add(job string) error {
	if job == "" {
		return nil
	}
	all, err := b.read()
	if err != nil {
		return err
	}
	all[job] = blocked{Times: all[job].Times + 1, Last: b.clock()}
	return b.write(all)
}

// drop removes the file, which names people and places, because somebody is forgotten.
// What still blocks the writer is counted anew.
func (b *blockedJobs) drop() error {
	err := os.Remove(b.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// refused returns the jobs that blocked the writer too often, with the time until which
// they are refused, and removes from the file what is old.
func (b *blockedJobs) refused() map[string]time.Time {
	until := make(map[string]time.Time)
	all, err := b.read()
	old := false
	for job, counted := range all {
		if b.clock().Sub(counted.Last) > stuckAge {
			delete(all, job)
			old = true
		} else if counted.Times >= stuckLimit {
			until[job] = counted.Last.Add(stuckAge)
			b.log.Error("a job is set aside: it blocked the database three times", "job", job, "until", until[job])
		}
	}
	if old {
		err = b.write(all)
	}
	if err != nil {
		b.log.Warn("what blocked the database is not known", "file", b.file, "err", err)
	}
	return until
}

func (b *blockedJobs) read() (map[string]blocked, error) {
	all := make(map[string]blocked)
	data, err := os.ReadFile(b.file)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	return all, err
}

func (b *blockedJobs) write(all map[string]blocked) error {
	if len(all) == 0 {
		return b.drop()
	}
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return os.WriteFile(b.file, data, 0o600)
}
