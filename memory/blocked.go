package memory

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"time"
)

const (
	stuckSuffix = ".stuck"       // of the file that counts the jobs that blocked the writer
	stuckLimit  = 3              // a job is refused after it blocked the writer so often
	stuckAge    = 24 * time.Hour // a refused job is tried again after so long
)

// blockedJobs counts the jobs that blocked the writer, in a file beside the database.
type blockedJobs struct {
	file  string
	clock func() time.Time
	log   *slog.Logger
}

// blocked is how often a job blocked the writer, and when it last did.
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
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return os.WriteFile(b.file, data, 0o600)
}

// drop removes the file when somebody is forgotten: it names people and places.
func (b *blockedJobs) drop() error {
	err := os.Remove(b.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// refused returns the jobs that blocked the writer too often, and until when they are
// refused.
func (b *blockedJobs) refused() map[string]time.Time {
	until := make(map[string]time.Time)
	all, err := b.read()
	if err != nil {
		b.log.Warn("the list of jobs that blocked the database cannot be read", "file", b.file, "err", err)
	}
	for job, counted := range all {
		if counted.Times >= stuckLimit {
			until[job] = counted.Last.Add(stuckAge)
			b.log.Error("a job is refused: it blocked the database three times", "job", job, "until", until[job])
		}
	}
	return until
}

// read returns the counts that are not too old.
func (b *blockedJobs) read() (map[string]blocked, error) {
	all := make(map[string]blocked)
	data, err := os.ReadFile(b.file)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	maps.DeleteFunc(all, func(_ string, counted blocked) bool { return b.clock().Sub(counted.Last) > stuckAge })
	return all, err
}
