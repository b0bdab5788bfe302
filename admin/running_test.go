package admin

import (
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/watch"
)

func TestRunning(t *testing.T) {
	var r Running
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	stage := func(place string, after time.Duration, to watch.Stage) {
		turn := core.TurnID{Path: core.MustPath(place), Seq: 1}
		r.ObserveStage(watch.TurnStage{Turn: turn, Stage: to, Began: began.Add(after)})
	}
	now := func() (text string) {
		for _, s := range r.Now() {
			text += s.Turn.Path.String() + " " + string(s.Stage) + ";"
		}
		return text
	}
	if now() != "" {
		t.Error("a turn runs before the first one has begun")
	}
	stage("room/2", time.Second, watch.StageWaiting)
	stage("room/1", time.Minute, watch.StageWaiting)
	stage("room/2", time.Second, watch.StageThinking)
	if got := now(); got != "room/2 thinking;room/1 waiting;" {
		t.Errorf("running: got %s", got)
	}
	stage("room/2", time.Second, watch.StageOver)
	if got := now(); got != "room/1 waiting;" {
		t.Errorf("running: got %s", got)
	}
	stage("room/1", time.Minute, watch.StageOver)
	if now() != "" {
		t.Errorf("running after the end: got %s", now())
	}
}
