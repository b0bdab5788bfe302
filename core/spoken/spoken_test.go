package spoken

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// plainClock is a simple Clock; the real one has its own tests.
func plainClock(y int, m time.Month, d, h, mi, s int, zone *time.Location) time.Time {
	return time.Date(y, m, d, h, mi, s, 0, zone)
}

var now = time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC) // a Friday

// TestRead: the same texts are understood in each language.
func TestRead(t *testing.T) {
	for want, texts := range map[string][]string{
		"2026-11-20 15:10:00": {"in 10 minutes", "10 minutes from now", "in 10 min", "in 10m", "10min", "In ten minutes, please", "tra 10 minuti", "fra dieci minuti",
			"in 10 Minuten", "in zehn minuten", "dans 10 minutes", "d'ici dix minutes", "en 10 minutos", "dentro de diez minutos", "em 10 minutos", "daqui a dez minutos"},
		"2026-11-20 15:30:00": {"in half an hour", "in 30 minutes", "tra mezz'ora", "tra mezzora", "fra mezz’ora", "in einer halben Stunde", "dans une demi-heure", "en media hora", "dentro de media hora", "daqui a meia hora"},
		"2026-11-20 16:30:00": {"in an hour and a half", "in 1.5 hours", "in 1 hour and 30 minutes", "in 1h30", "tra un'ora e mezza", "tra 1 ora e 30 minuti", "in anderthalb Stunden", "in 1,5 Stunden", "dans une heure et demie", "dans 1h30", "en una hora y media", "daqui a uma hora e meia"},
		"2026-11-20 15:15:00": {"in a quarter of an hour", "tra un quarto d'ora", "in einer Viertelstunde", "dans un quart d'heure", "en un cuarto de hora", "em um quarto de hora"},
		"2026-11-21 09:00:00": {"tomorrow at 9", "tomorrow at 9am", "at 9 tomorrow", "tomorrow morning", "tomorrow", "at 9", "9am", "21 November at 9", "November 21st, 9:00", "2026-11-21T09:00", "2026-11-21 09:00:00", "2026-11-21",
			"domani alle 9", "domani mattina", "domattina alle 9", "alle 9 di domani", "domani alle ore 9.00", "il 21 novembre alle 9", "il 21 alle nove",
			"morgen um 9", "morgen um 9 Uhr", "morgen früh", "morgen frueh", "um neun Uhr", "am 21. November um 9 Uhr", "am 21.11. um 9 Uhr", "am Samstag um 9",
			"demain à 9h", "demain à 9 heures", "demain matin", "le 21 novembre à 9h00", "samedi à 9 heures",
			"mañana a las 9", "mañana por la mañana", "mañana a las nueve de la mañana", "el 21 de noviembre a las 9", "el sábado a las 9",
			"amanhã às 9", "amanhã de manhã", "amanhã às 9h", "no dia 21 às 9", "sábado às 9 da manhã"},
		"2026-11-22 18:30:00": {"the day after tomorrow at 18:30", "day after tomorrow at 6:30 pm", "sunday at 6:30pm", "dopodomani alle 18:30", "dopodomani alle 6 e mezza di sera", "domenica alle 18.30",
			"übermorgen um 18:30", "übermorgen um halb sieben abends", "Sonntag um 18.30 Uhr", "après-demain à 18h30", "dimanche à 6 heures et demie du soir", "pasado mañana a las 18:30",
			"pasado mañana a las seis y media de la tarde", "depois de amanhã às 18h30", "domingo às 6 e meia da tarde", "22/11 at 18:30", "22.11.2026 18:30"},
		"2026-11-20 20:00:00": {"tonight", "this evening", "at 8 in the evening", "at 8pm", "20:00", "stasera", "alle 8 di sera", "stasera alle 8", "heute Abend", "heute abend um 8", "heute um 20 Uhr",
			"ce soir", "ce soir à 8 heures", "esta noche", "esta noche a las 8", "hoje à noite", "hoje às 8 da noite"},
		"2026-11-23 08:00:00": {"monday at 8", "next monday at 8", "on monday at 8 o'clock", "lunedì alle 8", "lunedì prossimo alle 8", "lunedi alle otto", "nächsten Montag um 8", "am Montag um acht",
			"lundi prochain à 8h", "lundi à huit heures", "el lunes que viene a las 8", "el próximo lunes a las ocho", "na segunda-feira às 8", "segunda às 8", "próxima segunda às oito"},
		"2026-11-21 16:45:00": {"tomorrow at quarter to five in the afternoon", "tomorrow at a quarter to 5 pm", "domani alle 5 meno un quarto di pomeriggio", "morgen um Viertel vor fünf nachmittags",
			"demain à 5 heures moins le quart de l'après-midi", "mañana a las cinco menos cuarto de la tarde", "amanhã às cinco menos um quarto da tarde"},
		"2026-11-27 15:00:00": {"in a week", "in 7 days", "tra una settimana", "in einer Woche", "dans une semaine", "en una semana", "daqui a uma semana"},
		"2027-02-20 15:00:00": {"in 3 months", "tra tre mesi", "in drei Monaten", "dans 3 mois", "en tres meses", "daqui a três meses"},
		"2026-11-22 09:00:00": {"in 2 days at 9", "in 2 days in the morning", "tra due giorni alle 9", "in 2 Tagen um 9", "dans 2 jours à 9h", "en dos días a las 9", "em 2 dias às 9"},
		"2026-11-21 12:00:00": {"tomorrow at noon", "domani a mezzogiorno", "morgen mittag", "demain à midi", "mañana al mediodía", "amanhã ao meio-dia"},
		"2026-11-21 00:00:00": {"at midnight", "a mezzanotte", "um Mitternacht", "à minuit", "a medianoche", "à meia-noite", "today at midnight"},
		"2027-03-04 09:00:00": {"4/3/2027", "March 4", "4th of March 2027", "il 4 marzo", "am 4. März", "le 4 mars", "el 4 de marzo de 2027", "4 de março"},
		"2028-02-29 09:00:00": {"29 February", "29 febbraio"},
		"2027-01-01 09:00:00": {"1 January", "le 1er janvier", "1º de janeiro"},
		"2026-12-31 09:00:00": {"31 December", "31 dicembre"},
		"2026-11-20 18:00:00": {"friday at 18", "this friday at 18", "questo venerdì alle 18", "diesen Freitag um 18 Uhr"},
		"2026-11-27 18:00:00": {"next friday at 18", "venerdì prossimo alle 18", "nächsten Freitag um 18 Uhr", "vendredi prochain à 18h", "el próximo viernes a las 18", "el viernes que viene a las 18", "sexta que vem às 18"},
		"2026-12-01 09:00:00": {"on the first of the month", "am Ersten des Monats", "le premier du mois", "il primo del mese", "el primero de mes"},
		"2026-11-30 09:30:00": {"monday 30 november at 9:30", "Monday, the 30th at 9.30", "lunedì 30 novembre alle 9 e mezza", "Montag, den 30.11. um 9 Uhr 30", "lundi 30 novembre à 9 heures 30",
			"el lunes 30 de noviembre a las 9 y media", "segunda-feira, 30 de novembro às 9 horas e 30 minutos"},
		"2026-11-20 16:31:00": {"1h31m", "in 1h 31m", "in 1h31"},
	} {
		for _, text := range texts {
			w, err := New("en", plainClock).Read(text, now)
			if err != nil || w.Repeat != "" || w.At.Format(time.DateTime) != want {
				t.Errorf("%q: got %s, %q, %v; want %s", text, w.At.Format(time.DateTime), w.Repeat, err, want)
			}
		}
	}
}

func TestRepeats(t *testing.T) {
	for want, texts := range map[string][]string{
		"2026-11-21 09:00 FREQ=DAILY":           {"every day at 9", "daily at 9", "every morning at 9", "ogni giorno alle 9", "tutti i giorni alle 9", "jeden Tag um 9", "täglich um 9 Uhr", "tous les jours à 9h", "chaque jour à 9 heures", "todos los días a las 9", "cada día a las 9", "todos os dias às 9", "todo dia às 9"},
		"2026-11-23 18:30 FREQ=WEEKLY;BYDAY=MO": {"every monday at 18:30", "mondays at 18:30 every week", "ogni lunedì alle 18:30", "jeden Montag um 18:30", "tous les lundis à 18h30", "todos los lunes a las 18:30", "toda segunda às 18h30"},
		"2026-11-24 09:00 FREQ=WEEKLY;BYDAY=TU,TH": {"on tuesdays and thursdays", "dienstags und donnerstags", "los martes y los jueves", "every tuesday and thursday", "every tuesday, thursday at 9", "ogni martedì e giovedì", "tutti i martedì e i giovedì", "jeden Dienstag und Donnerstag", "tous les mardis et jeudis", "todos los martes y jueves", "toda terça e quinta",
			"on tuesday and thursday", "le mardi et le jeudi", "il martedì e il giovedì alle 9", "am Dienstag und am Donnerstag", "el martes y el jueves"},
		"2026-11-23 08:00 FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR": {"every weekday at 8", "ogni giorno feriale alle 8", "jeden Werktag um 8", "chaque jour ouvrable à 8h", "cada día laborable a las 8", "todo dia útil às 8",
			"on weekdays at 8", "monday to friday at 8", "from Monday through Friday at 8am", "an jedem Werktag um 8", "von Montag bis Freitag um 8", "unter der Woche um 8", "en semaine à 8h",
			"du lundi au vendredi à 8h", "entre semana a las 8", "de lunes a viernes a las 8", "nei giorni feriali alle 8", "dal lunedì al venerdì alle 8", "de segunda a sexta às 8"},
		"2026-11-20 17:00 FREQ=HOURLY;INTERVAL=2": {"every 2 hours", "ogni due ore", "alle 2 Stunden", "toutes les 2 heures", "cada dos horas", "a cada 2 horas"},
		"2026-11-20 16:00 FREQ=HOURLY":            {"hourly", "every hour", "stündlich", "ogni ora"},
		"2026-11-22 09:00 FREQ=DAILY;INTERVAL=2":  {"every other day at 9", "every 2 days at 9"},
		"2026-11-20 22:00 FREQ=DAILY":             {"every night at 10", "tutte le sere alle 10", "jeden Abend um 10", "tous les soirs à 10h", "todas las noches a las 10", "todas as noites às 10"},
		"2026-11-21 08:00 FREQ=DAILY":             {"every morning at 8", "tutte le mattine alle 8", "jeden Morgen um 8", "tous les matins à 8h", "todas las mañanas a las 8", "todas as manhãs às 8"},
		"2026-12-01 09:00 FREQ=MONTHLY": {"every month on the 1st", "on the 1st of every month", "ogni mese il 1 alle 9", "every 1st", "the first of every month", "am ersten jedes Monats", "il primo di ogni mese", "le premier de chaque mois",
			"ogni primo del mese", "ogni primo giorno del mese", "jeden Ersten im Monat", "chaque premier du mois", "every first of the month", "cada primero de mes"},
		"2026-12-24 18:00 FREQ=YEARLY": {"every year on 24 December at 18:00", "ogni anno il 24 dicembre alle 18", "jedes Jahr am 24. Dezember um 18 Uhr"},
	} {
		for _, text := range texts {
			w, err := New("it", plainClock).Read(text, now)
			if got := w.At.Format("2006-01-02 15:04 ") + w.Repeat; err != nil || got != want {
				t.Errorf("%q: got %s, %v; want %s", text, got, err, want)
			}
		}
	}
}

// TestUnclear: an ambiguous text is refused rather than misread.
func TestUnclear(t *testing.T) {
	r := New("en", plainClock)
	for text, want := range map[string]error{
		"": ErrUnclear, "soon": ErrUnclear, "9": ErrUnclear, "the third friday of next month at 9": ErrUnclear, "tomorrow at 25": ErrUnclear, "at 9 at 10": ErrUnclear,
		"when the rain stops": ErrUnclear, "tomorrow monday": ErrUnclear, "in 2 hours at 9": ErrUnclear, "every 5 minutes": ErrUnclear, "31/2": ErrPast, "2027-06-31T09:00": ErrNever, "in 99999999 years": ErrUnclear,
		"today": ErrPast, "yesterday at 5": ErrPast, "hier à 5h": ErrPast, "gestern um 5": ErrPast, "ayer a las 5": ErrPast, "ieri alle 5": ErrPast, "ontem às 5": ErrPast, "today at 9": ErrPast, "oggi alle 9": ErrPast, "20 November 2026": ErrPast, "2020-01-01T00:00:00Z": ErrPast, "in 0 minutes": ErrPast,
		"3 days after tomorrow": ErrUnclear, "five days before christmas": ErrUnclear, "every second": ErrUnclear,
		"-5 minutes": ErrUnclear, "in -5 minutes": ErrUnclear, "tuesday 30 november at 9": ErrUnclear, "at 9 and 10": ErrUnclear, strings.Repeat("in 10 minutes ", 20): ErrUnclear,
	} {
		if w, err := r.Read(text, now); !errors.Is(err, want) {
			t.Errorf("%q: got %+v, %v, want %v", text, w, err, want)
		}
	}
}

func TestFind(t *testing.T) {
	for _, tc := range []struct{ text, at, rest string }{
		{"call mum tomorrow at 9", "2026-11-21 09:00", "call mum"},
		{"tomorrow at 9 call mum", "2026-11-21 09:00", "call mum"},
		{"tomorrow call mum at 9", "2026-11-21 09:00", "call mum"},
		{"in 10 minutes to take the pizza out", "2026-11-20 15:10", "take the pizza out"},
		{"me to water the plants every monday at 9", "2026-11-23 09:00 FREQ=WEEKLY;BYDAY=MO", "water the plants"},
		{"every day at 8: stretch!", "2026-11-21 08:00 FREQ=DAILY", "stretch!"},
		{"chiamare la mamma domani alle 9", "2026-11-21 09:00", "chiamare la mamma"},
		{"domani alle 9 di chiamare la mamma", "2026-11-21 09:00", "chiamare la mamma"},
		{"tra mezz'ora spegni il forno", "2026-11-20 15:30", "spegni il forno"},
		{"morgen um 9 Mama anrufen", "2026-11-21 09:00", "Mama anrufen"},
		{"mich in 10 Minuten an die Pizza", "2026-11-20 15:10", "die Pizza"},
		{"demain à 9h appeler maman", "2026-11-21 09:00", "appeler maman"},
		{"llamar a mamá mañana a las 9", "2026-11-21 09:00", "llamar a mamá"},
		{"amanhã às 9 ligar para a mãe", "2026-11-21 09:00", "ligar para a mãe"},
		{"\"buy 3 kg of apples\" on 24 December", "2026-12-24 09:00", "\"buy 3 kg of apples\""},
		{"tomorrow: \"no!\"", "2026-11-21 09:00", "\"no!\""},
		{"monday report due at 17:00", "2026-11-23 17:00", "report due"},
		{"tomorrow at 9", "2026-11-21 09:00", ""},
		{"mon café dans 10 minutes", "2026-11-20 15:10", "mon café"},
		{"2026-11-21 dentist", "2026-11-21 09:00", "dentist"},
		{"2027-01-31T18:30 call mum", "2027-01-31 18:30", "call mum"},
		{"call mum on 2027-01-31T09:00", "2027-01-31 09:00", "call mum"},
		{"2027-01-31T09:00+05:00 call mum", "", ""}, {"2027-01-31T09:00Z call mum", "", ""},
		{"2027-01-31T9 call mum", "", ""},
		{"call mum monday 30 november at 9", "2026-11-30 09:00", "call mum"},
		{"Mama anrufen um 9 Uhr 30", "2026-11-21 09:30", "Mama anrufen"},
		{"um 9 Uhr 30 Leute anrufen", "2026-11-21 09:00", "30 Leute anrufen"},
		{"call the 9 people", "", ""},
		{"2027-01-01T25:00 bad", "", ""}, {"2027-01-01 25:00 bad", "", ""}, {"2027-01-01 at 25:00 bad", "", ""},
		{"bad at 25:00 tomorrow", "", ""}, {"tomorrow at 25:61 bad", "", ""}, {"tomorrow at 30 bad", "", ""},
		{"2027-13-01 09:00 bad", "", ""}, {"09:00 2027-13-01 bad", "", ""}, {"2027-01-13 09:00 good", "2027-01-13 09:00", "good"},
		{"31 december 9999 23:59 far", "9999-12-31 23:59", "far"},
		{"every 29 february at 9:00 leap yearly", "", ""}, {"every 29 february at 9:00 leap", "", ""},
		{"every last friday pay rent at 9", "", ""},
		{"every day at 9:00 until 2026-12-01 meds", "2026-11-21 09:00 FREQ=DAILY;UNTIL=20261201", "meds"},
		{"meds every day at 9 until 1 December at 10", "2026-11-21 09:00 FREQ=DAILY;UNTIL=20261201T100000Z", "meds"},
		{"every day at 9 meds until 1 December", "2026-11-21 09:00 FREQ=DAILY;UNTIL=20261201", "meds"},
		{"ogni giorno alle 9 fino al 1 dicembre pillole", "2026-11-21 09:00 FREQ=DAILY;UNTIL=20261201", "pillole"},
		{"every day at 9 until yesterday meds", "", ""}, {"every day at 9 until I stop", "", ""},
		{"wait until tomorrow", "", ""}, {"tomorrow at 9 until 10:30 meeting", "", ""},
		{"every weekday at 9 week", "", ""}, {"every weekday at 9 report", "2026-11-23 09:00 FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR", "report"},
		{"tomorrow at 9 192.168.1.1 reboot", "2026-11-21 09:00", "192.168.1.1 reboot"},
		{"tomorrow 30 people come", "2026-11-21 09:00", "30 people come"},
		{"nothing in it", "", ""},
	} {
		w, rest, err := New("en", plainClock).Find(tc.text, now)
		got := strings.TrimSpace(w.At.Format("2006-01-02 15:04 ") + w.Repeat)
		if err != nil {
			got = ""
		}
		if got != tc.at || err == nil && rest != tc.rest {
			t.Errorf("%q: got %s and %q, %v; want %s and %q", tc.text, got, rest, err, tc.at, tc.rest)
		}
	}
}

// TestZones: days begin in the zone of now.
func TestZones(t *testing.T) {
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	late := time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC).In(tokyo) // 01:00 on the 21st
	for text, want := range map[string]string{"tomorrow at 9": "2026-11-22T09:00:00+09:00", "2026-11-22T09:00": "2026-11-22T09:00:00+09:00", "2026-11-22T09:00:00+01:00": "2026-11-22T17:00:00+09:00", "at 2": "2026-11-21T02:00:00+09:00"} {
		w, err := New("en", plainClock).Read(text, late)
		if err != nil || w.At.Format(time.RFC3339) != want {
			t.Errorf("%q: got %s, %v, want %s", text, w.At.Format(time.RFC3339), err, want)
		}
	}
	w, err := New("en", plainClock).Read("every 2 hours until 18:00", late)
	if want := "FREQ=HOURLY;INTERVAL=2;UNTIL=20261121T090000Z"; err != nil || w.Repeat != want {
		t.Errorf("got %s, %v, want %s", w.Repeat, err, want)
	}
}

// TestShortMonths: a month after the 31st is the last day of a shorter month.
func TestShortMonths(t *testing.T) {
	last := time.Date(2027, 1, 31, 15, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{"in a month": "2027-02-28 15:00", "in 13 months": "2028-02-29 15:00", "on the 31st at 9": "2027-03-31 09:00", "on the 31st at 16": "2027-01-31 16:00"} {
		w, err := New("en", plainClock).Read(text, last)
		if got := w.At.Format("2006-01-02 15:04"); err != nil || got != want {
			t.Errorf("%q: got %s, %v, want %s", text, got, err, want)
		}
	}
}

// TestWaking: an hour that occurs twice a day means the one in waking hours. Other texts are read as
// before.
func TestWaking(t *testing.T) {
	for text, want := range map[string]string{
		"at 3": "2026-11-21 15:00", "at 5": "2026-11-20 17:00", "um halb 5": "2026-11-20 16:30", "um halb 1": "2026-11-21 12:30", "a las 4": "2026-11-20 16:00",
		"at 9": "2026-11-21 09:00", "today at 9": "2026-11-20 21:00", "heute um 4": "2026-11-20 16:00",
		"tomorrow at 6": "2026-11-21 18:00", "tomorrow at 06:00": "2026-11-21 06:00", "tomorrow at 6 am": "2026-11-21 06:00",
		"every day at 6": "2026-11-21 06:00", "every day at 5": "2026-11-20 17:00", "morgen früh um 5": "2026-11-21 05:00",
		"tonight at 2": "2026-11-21 02:00", "heute nacht um 2": "2026-11-21 02:00", "stanotte alle 3": "2026-11-21 03:00",
		"at 10 tomorrow": "2026-11-21 10:00", "demain à 4h": "2026-11-21 16:00",
	} {
		w, err := New("en", plainClock).Waking().Read(text, now)
		if got := w.At.Format("2006-01-02 15:04"); err != nil || got != want {
			t.Errorf("%q: got %s, %v; want %s", text, got, err, want)
		}
	}
}

// TestImpossibleTimes: an impossible time is not read as another time in another language; common
// variants of a time are read.
func TestImpossibleTimes(t *testing.T) {
	for text, want := range map[string]string{
		"15 minutes before 6pm to leave": "2026-11-20 17:45, , leave", "15 minuten vor 18 uhr los": "2026-11-20 17:45, , los",
		"10 minutes avant 18h de partir": "2026-11-20 17:50, , partir", "zehn nach 8 abends los": "2026-11-20 20:10, , los",
		"fortnightly on friday at 5pm to pay":    "2026-11-20 17:00, FREQ=WEEKLY;INTERVAL=2;BYDAY=FR, pay",
		"zweiwöchentlich am freitag um 17 uhr x": "2026-11-20 17:00, FREQ=WEEKLY;INTERVAL=2;BYDAY=FR, x",
		"un lundi sur deux à 10h de ranger":      "2026-11-23 10:00, FREQ=WEEKLY;INTERVAL=2;BYDAY=MO, ranger",
		"en una hora y cuarto comer":             "2026-11-20 16:15, , comer", "tra un'ora e un quarto mangiare": "2026-11-20 16:15, , mangiare",
		"cada viernes a las 7pm el curso": "2026-11-20 19:00, FREQ=WEEKLY;BYDAY=FR, el curso",
		"um 24 uhr schlafen":              "2026-11-21 00:00, , schlafen", "dans trois quarts d'heure manger": "2026-11-20 15:45, , manger",
		"cada mes el día 5 pagar": "2026-12-05 09:00, FREQ=MONTHLY, pagar", "um 9 nach hause gehen": "2026-11-21 09:00, , nach hause gehen",
	} {
		w, rest, err := New("en", plainClock).Find(text, now)
		if got := w.At.Format("2006-01-02 15:04") + ", " + w.Repeat + ", " + rest; err != nil || got != want {
			t.Errorf("%q: got %s, %v; want %s", text, got, err, want)
		}
	}
	_, rest, err := New("en", plainClock).Find("alle 5 minuten ans trinken", now)
	if !errors.Is(err, ErrOften) || rest != "ans trinken" {
		t.Errorf("unexpected rest %q, %v", rest, err)
	}
}

// TestWords: there is a file for each language, and each has words for all meanings that every
// language has.
func TestWords(t *testing.T) {
	entries, err := files.ReadDir("words")
	if err != nil || len(entries) != len(languages()) {
		t.Fatalf("got %d files, %v", len(entries), err)
	}
	kinds := []kind{in, later, at, on, the, next, every, and, half, quarter, past, to, before, halfTo, oclock, am, pm,
		workday, glue, lasting, until, number, unit, day, part, hour, weekday, month, nth}
	for _, tag := range languages() {
		l := readLexicon(tag)
		has := make(map[sense]bool)
		for key, phrases := range l.phrases {
			for _, p := range phrases {
				for _, s := range p {
					if !slices.Contains(kinds, s.kind) {
						t.Errorf("%s: %q has the unknown meaning %q", tag, key, s.kind)
					}
					has[s] = true
				}
			}
		}
		for _, k := range []kind{in, at, on, next, every, and, half, quarter, to, workday} {
			if !has[sense{k, 0}] {
				t.Errorf("%s has no word for %q", tag, k)
			}
		}
		for k, most := range map[kind]int{weekday: 6, month: 12, unit: aYear, day: 2, number: 12} {
			for v := range most + 1 {
				if !has[sense{k, float64(v)}] && !(v == 0 && (k == month || k == number)) {
					t.Errorf("%s has no word for %s %d", tag, k, v)
				}
			}
		}
	}
}

// FuzzRead: a time that is read lies in the future and within bounds, nothing panics, and the rest
// consists of pieces of the text.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"in 10 minutes", "domani alle 9 chiamare", "am 21.11. um halb 10 abends", "every 2 weeks on monday", "à 9h30", "9.30", "1,5h", "29/2/2028", "º", "99:99", "1 2 3 4", "\u032b", "100000000000000000000", "hAlB 1"} {
		f.Add(s)
	}
	r := New("en", plainClock)
	f.Fuzz(func(t *testing.T, text string) {
		if w, err := r.Read(text, now); err == nil && !w.At.After(now) {
			t.Fatalf("%q was read as %s", text, w.At)
		}
		w, rest, err := r.Find(text, now)
		if err != nil {
			return
		}
		if !w.At.After(now) || w.At.Year() > 9999 || !strings.Contains(text, rest) {
			t.Fatalf("%q was read as %s, rest %q", text, w.At, rest)
		}
	})
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		New("en", plainClock).lexicons()
	}
}

func BenchmarkRead(b *testing.B) {
	r := New("en", plainClock)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Read("amanhã às 9", now); err != nil {
			b.Fatal(err)
		}
	}
}

// TestFractions: the same text always has the same meaning.
func TestFractions(t *testing.T) {
	now := time.Date(2026, 11, 20, 11, 32, 0, 0, time.UTC)
	for range 50 {
		w, err := New("en", nil).Read("in an hour and a half and a quarter", now)
		if err != nil || w.At.Sub(now) != 105*time.Minute {
			t.Fatalf("unexpected time %v, %v", w, err)
		}
	}
}

// TestFindSpan: a duration is recognised at the start, or after a word like "for" at the end.
func TestFindSpan(t *testing.T) {
	const day = 24 * time.Hour
	for _, tc := range []struct {
		text string
		want time.Duration
		rest string
	}{
		{"2 hours", 2 * time.Hour, ""}, {"2 hours he shouts", 2 * time.Hour, "he shouts"}, {"for 10m", 10 * time.Minute, ""},
		{"10 min: spam", 10 * time.Minute, "spam"}, {"1w2d", 9 * day, ""}, {"7d he spams", 7 * day, "he spams"},
		{"2h30m", 150 * time.Minute, ""}, {"for an hour and a half", 90 * time.Minute, ""}, {"1 month", 30 * day, ""},
		{"a year, really", 365 * day, "really"}, {"1 hour and 30 minutes", 90 * time.Minute, ""},
		{"Troll Boy for 2 hours", 2 * time.Hour, "Troll Boy"}, {"he spams for 1w2d", 9 * day, "he spams"},
		{"für zwei Stunden", 2 * time.Hour, ""}, {"Eva 10 Minuten lang", 10 * time.Minute, "Eva"}, {"eine Woche Werbung", 7 * day, "Werbung"},
		{"per 10 minuti", 10 * time.Minute, ""}, {"pendant une demi-heure", 30 * time.Minute, ""}, {"por 3 días", 3 * day, ""},
		{"durante duas horas", 2 * time.Hour, ""},
		{"until 18:00", 3 * time.Hour, ""}, {"until 6pm he shouts", 3 * time.Hour, "he shouts"}, {"until 17", 2 * time.Hour, ""},
		{"Troll Boy until tomorrow", 18 * time.Hour, "Troll Boy"}, {"until Friday at 3pm", 7 * day, ""},
		{"until in 2 hours", 2 * time.Hour, ""}, {"till Monday: spam", 66 * time.Hour, "spam"}, {"bis morgen um 15 Uhr", day, ""},
		{"bis Montag", 66 * time.Hour, ""}, {"fino a domani alle 15", day, ""}, {"fino alle 18", 3 * time.Hour, ""},
		{"Eva fino a lunedì", 66 * time.Hour, "Eva"}, {"jusqu'à demain", 18 * time.Hour, ""}, {"jusqu’à 18h", 3 * time.Hour, ""},
		{"jusqu'à lundi", 66 * time.Hour, ""}, {"hasta mañana", 18 * time.Hour, ""}, {"hasta las 18:00", 3 * time.Hour, ""},
		{"hasta el lunes", 66 * time.Hour, ""}, {"até amanhã", 18 * time.Hour, ""}, {"até às 18h", 3 * time.Hour, ""},
		{"até segunda", 66 * time.Hour, ""}, {"until he stops", 0, "until he stops"}, {"until every Monday", 0, "until every Monday"},
		{"until yesterday", 0, "until yesterday"}, {"he shouts until yesterday", 0, "he shouts until yesterday"},
		{"until 5 people come", 0, "until 5 people come"}, {"until tomorrow 5 people come", 18 * time.Hour, "5 people come"},
		{"until 5 in the afternoon he shouts", 2 * time.Hour, "he shouts"}, {"bis 5 Leute kommen", 0, "bis 5 Leute kommen"},
		{"until 17 tomorrow he shouts", 26 * time.Hour, "he shouts"},
		{"", 0, ""}, {"Troll", 0, "Troll"}, {"Lang 10m", 0, "Lang 10m"}, {"for spam", 0, "for spam"},
		{"he spams 3 times in 10 minutes", 0, "he spams 3 times in 10 minutes"}, {"tomorrow", 0, "tomorrow"},
		{"at 9", 0, "at 9"}, {"-5 minutes", 0, "-5 minutes"}, {"99999999 weeks", 0, "99999999 weeks"},
		{"0m", 0, "0m"}, {"a second account", 0, "a second account"}, {"30 seconds", 30 * time.Second, ""}, {"99999 years", 0, "99999 years"}, {"600 weeks", 0, "600 weeks"}, {"10 years", 3650 * day, ""},
	} {
		got, rest, _ := New("en", nil).FindSpan(tc.text, now)
		if got != tc.want || rest != tc.rest {
			t.Errorf("%q: got %v and %q, want %v and %q", tc.text, got, rest, tc.want, tc.rest)
		}
	}
}

// TestLikeUnit: units in all languages are recognised, also if they are misspelled.
func TestLikeUnit(t *testing.T) {
	for word, want := range map[string]bool{
		"m": true, "h": true, "day": true, "Minuts": true, "houres": true, "dayz": true, "Stundn": true, "settimana": true,
		"giornu": true, "jours": true, "años": true, "horas": true,
		"warnings": false, "people": false, "nd": false, "x": false, "spam": false, "mal": false, "volte": false, "": false,
	} {
		if got := New("en", nil).IsLikeUnit(word); got != want {
			t.Errorf("%q: got %v, want %v", word, got, want)
		}
	}
}

// TestUntilWhen: a text with an end time is an error if that time is past or not understood.
func TestUntilWhen(t *testing.T) {
	for text, want := range map[string]error{
		"until yesterday": ErrPast, "he shouts until yesterday": ErrPast, "fino a ieri": ErrPast, "until he stops": ErrUnclear,
		"until every Monday": ErrUnclear, "until 5 people come": ErrUnclear, "until he stops, for 2 hours": nil,
		"until tomorrow": nil, "he shouts until he gets it": nil, "2 hours, as until yesterday": nil, "he shouts": nil, "": nil,
	} {
		_, _, err := New("en", nil).FindSpan(text, now)
		if !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", text, err, want)
		}
	}
}
