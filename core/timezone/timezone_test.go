package timezone

import "testing"

func TestLoad(t *testing.T) {
	for name, want := range map[string]string{"Europe/Rome": "Europe/Rome", "europe/rome": "Europe/Rome", "AMERICA/NEW_YORK": "America/New_York",
		"new york": "America/New_York", "BERLIN": "Europe/Berlin", "Istanbul": "Europe/Istanbul",
		"San Juan": "America/Argentina/San_Juan", "Port-au-Prince": "America/Port-au-Prince", "Port of Spain": "America/Port_of_Spain", "/Rome": "", "west": "", "Atlantis": "", "UTC": "UTC", "Local": "", "": "", "../etc/passwd": "", "Mars/Base": ""} {
		loc, ok := Load(name)
		if ok != (want != "") || ok && loc.String() != want {
			t.Errorf("%q: unexpected zone %v", name, loc)
		}
	}
}
