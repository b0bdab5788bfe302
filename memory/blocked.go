package memory

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"time"

	"synthbot/core"
)

const (
	stuckSuffix = ".stuck"       // of the file that counts the jobs that blocked the writer
	stuckLimit  = 3              // a job is refused after it blocked the writer so often
	stuckAge    = 24 * time.Hour // a refused job is tried again after so long
)

// blocked is how often a job blocked the writer, and when it last did. A file beside the
// database holds it by the job's name.
type blocked struct {
	Times int       `json:"times"`
	Last  time.Time `json:"last"`
}

func (w *writer) blockedFile() string { return w.db.file.name + stuckSuffix }

// addBlocked counts a job that blocked the writer.
func (w *writer) addBlocked(job string) error {
	if job == "" {
		return nil
	}
	all, err := w.blockedJobs()
	if err != nil {
		return err
	}
	all[job] = blocked{Times: all[job].Times + 1, Last: w.db.clock()}
	return os.WriteFile(w.blockedFile(), core.JSON(all), 0o600)
}

// refusedJobs returns the jobs that blocked the writer too often, and until when they are
// refused.
func (w *writer) refusedJobs() map[string]time.Time {
	until := make(map[string]time.Time)
	all, err := w.blockedJobs()
	if err != nil {
		w.db.log.Warn("the list of jobs that blocked the database cannot be read", "file", w.blockedFile(), "err", err)
	}
	for job, counted := range all {
		if counted.Times >= stuckLimit {
			until[job] = counted.Last.Add(stuckAge)
			w.db.log.Error("a job is refused: it blocked the database three times", "job", job, "until", until[job])
		}
	}
	return until
}

// blockedJobs returns the counts that are not too old.
func (w *writer) blockedJobs() (map[string]blocked, error) {
	all := make(map[string]blocked)
	data, err := os.ReadFile(w.blockedFile())
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	maps.DeleteFunc(all, func(_ string, counted blocked) bool { return w.db.clock().Sub(counted.Last) > stuckAge })
	return all, err
}
