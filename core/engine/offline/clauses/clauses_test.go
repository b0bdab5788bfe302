package clauses

import (
	"strings"
	"testing"
)

func TestMainClause(t *testing.T) {
	verbs := map[string]string{"heisst": "", "wohne": "", "ist": "", "steht": "", "habe": ""}
	determiners := map[string]string{"meine": "", "mein": "", "der": ""}
	functions := map[string]string{"in": "", "ich": "", "mir": ""}
	for text, want := range map[string]string{
		"meine Schwester Anna heißt":        "meine Schwester heißt Anna",
		"ich in Berlin wohne":               "ich wohne in Berlin",
		"mein auto in der tiefgarage steht": "mein auto steht in der tiefgarage",
		"mein neues Auto rot ist":           "mein neues Auto ist rot",
		"mein neues auto rot ist":           "mein neues auto rot ist",
		"meine Schwester heißt Anna":        "meine Schwester heißt Anna",
		"ich das Buch gelesen habe":         "ich habe das Buch gelesen",
		"meine schwester Lena heißt":        "meine schwester heißt Lena",
		"tante maria in oslo steht":         "tante maria in oslo steht",
		"Tante Maria in Oslo steht":         "Tante Maria steht in Oslo",
		"tom mir etwas heißt":               "tom heißt mir etwas",
		"der Schlüssel unter der Matte ist": "der Schlüssel ist unter der Matte",
		"ich komme, wenn Anna da ist":       "ich komme, wenn Anna da ist",
		"mein auto steht":                   "mein auto steht", "ich wohne": "ich wohne", "ist": "ist", "": "",
	} {
		if got := Main(text, verbs, determiners, functions); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestSentences(t *testing.T) {
	for text, want := range map[string]string{
		"Hello! Who are you? I am 9.": "Hello!| Who are you?| I am 9.", "am 21. Mai, 9 a.m. sharp": "am 21. Mai, 9 a.m. sharp", "¡Hola! ¿Qué?": "¡Hola!| ¿Qué?",
	} {
		if got := strings.Join(Sentences(text), "|"); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
