package calendar

import "time"

// At is the moment at which a wall clock in loc shows that time. Where a change
// of clocks leaves it out, it is as much later as the clocks jump (02:30 becomes
// 03:30); where it comes twice, the first one counts. Values beyond their range
// count on, as with time.Date.
func At(year int, month time.Month, day, hour, minute, second int, loc *time.Location) time.Time {
	wall := time.Date(year, month, day, hour, minute, second, 0, time.UTC)
	near := time.Date(year, month, day, hour, minute, second, 0, loc)
	before := shift(wall, near.Add(-24*time.Hour))
	if sameWall(before, wall) {
		return before
	}
	after := shift(wall, near.Add(24*time.Hour))
	if sameWall(after, wall) {
		return after
	}
	return before
}

// Wall is the wall clock's time as if there were no zones: what t shows, in UTC.
func Wall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

// Resolve is At for what Wall returned.
func Resolve(wall time.Time, loc *time.Location) time.Time {
	return At(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), loc)
}

// shift reads the wall clock by the offset that holds at a moment.
func shift(wall, moment time.Time) time.Time {
	_, offset := moment.Zone()
	return wall.Add(-time.Duration(offset) * time.Second).In(moment.Location())
}

func sameWall(t, wall time.Time) bool { return Wall(t).Equal(wall) }
