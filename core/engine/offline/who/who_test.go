package who

import "testing"

func TestSpeakable(t *testing.T) {
	for name, want := range map[string]string{
		"Anna": "Anna", "anna maria": "anna", "O'Neill": "O'Neill", "Jean-Luc": "Jean-Luc", "J.": "", "": "", "R2D2": "R2D2",
		"root": "", "Admin": "", "<b>": "", "@everyone": "", "a_b": "", "Пётр": "Пётр", "Abcdefghijklmnopqrstuvwxyz": "",
	} {
		if got := Speakable(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

func TestLanguage(t *testing.T) {
	for rules, want := range map[string]string{
		"Always answer in Italian.": "it", "language: fr.": "fr", `Conversation language: "de"; write in it`: "de",
		"Speak in German, please.": "de", "You like French food.": "", "": "",
	} {
		if got := Language(rules); got != want {
			t.Errorf("%q: got %q, want %q", rules, got, want)
		}
	}
}

func TestRead(t *testing.T) {
	p := Read("You are Aria, also called Ari, Ria. Profile: A librarian. Kind to all. Likes: tea; old books. " +
		"Dislikes: noise. Interests: maps; stars. Reply with one JSON object.")
	if p.Name != "Aria" || len(p.Aliases) != 2 || p.Profile != "A librarian. Kind to all." || len(p.Likes) != 2 || len(p.Dislikes) != 1 {
		t.Errorf("got %+v", p)
	}
	if p := Read("Be kind."); p.Name != "synthbot" || p.Profile != "" {
		t.Errorf("got %+v", p)
	}
}
