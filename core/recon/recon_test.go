package recon

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"synthbot/core"
	"synthbot/core/hint"
)

func talk(texts ...string) []core.Entry {
	list := make([]core.Entry, len(texts))
	for i, text := range texts {
		list[i].Kind = core.KindMessage
		list[i].Message.Text = text
		list[i].Message.Seq = uint64(i + 1)
	}
	return list
}

func oneHint(t testing.TB, s core.Scene, kind hint.Kind) string {
	t.Helper()
	hints, err := New().Recon(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hints {
		if h.Kind == kind {
			return h.Text
		}
	}
	return ""
}

// TestSentences: short sentences are recognised or left to the model. Few are taken for another
// language, even if the platform says that their author reads English.
func TestSentences(t *testing.T) {
	table, err := txtar.ParseFile("testdata/sentences.txtar")
	if err != nil {
		t.Fatal(err)
	}
	const languages, unknown, each = 50, 5, 10
	if len(table.Files) != languages {
		t.Fatalf("got %d languages, want %d", len(table.Files), languages)
	}
	for _, locale := range []string{"", "en"} {
		right, wrong := 0, 0
		for _, f := range table.Files {
			lines := strings.Split(strings.TrimSpace(string(f.Data)), "\n")
			if len(lines) != each {
				t.Fatalf("%s has %d sentences", f.Name, len(lines))
			}
			for _, text := range lines {
				switch got := oneHint(t, core.Scene{Text: text, Locale: locale}, hint.Language); got {
				case f.Name:
					right++
				case hint.Undetermined:
				default:
					wrong++
					t.Logf("%s was recognised as %q with locale %q: %s", f.Name, got, locale, text)
				}
			}
		}
		t.Logf("locale %q: %d right, %d wrong of %d", locale, right, wrong, languages*each)
		if wrong > 2 || right*100 < 85*(languages-unknown)*each {
			t.Errorf("locale %q: %d right, %d wrong of %d", locale, right, wrong, languages*each)
		}
	}
}

func TestShortPhrases(t *testing.T) {
	for text, want := range map[string]string{
		"danke schön": "de", "merci beaucoup": "fr", "hola amigo": hint.Undetermined, "adesso parliamo": "it", "buongiorno a tutti": "it",
		"mange tak": hint.Undetermined, "dziękuję bardzo": "pl", "teşekkür ederim": "tr", "გამარჯობა": "ka", "வணக்கம்": "ta", "你好": "zh",
		"Det har regnet hele dagen her":       hint.Undetermined, // Danish and Norwegian
		"t'es où ? j'arrive dans dix minutes": "fr", "what's up lol u coming tonite??": "en", "Xyzzy Plugh": hint.Undetermined,
	} {
		for _, locale := range []string{"", "en"} {
			if got := oneHint(t, core.Scene{Text: text, Locale: locale}, hint.Language); got != want {
				t.Errorf("%q with locale %q: got %q, want %q", text, locale, got, want)
			}
		}
	}
	for _, text := range []string{"", "ok", "👍", "hm", "https://example.com/the/and/you", "@the #and 12:30"} {
		if got := oneHint(t, core.Scene{Text: text}, hint.Language); got != "" {
			t.Errorf("%q: unexpected language %q", text, got)
		}
	}
}

// TestPriorities: hints from words have priority over hints from the platform.
func TestPriorities(t *testing.T) {
	for text, want := range map[string]hint.Hint{
		"adesso parliamo":    {Kind: hint.Language, Text: "it", Priority: HeardPriority},
		"what are you up to": {Kind: hint.Language, Text: "en", Priority: HeardPriority},
		"ciao":               {Kind: hint.Language, Text: "en", Priority: LocalePriority},
		"come stai":          {Kind: hint.Language, Text: hint.Undetermined, Priority: UndeterminedPriority},
		"qwx zzyx":           {Kind: hint.Language, Text: hint.Undetermined, Priority: UndeterminedPriority},
	} {
		hints, err := New().Recon(t.Context(), core.Scene{Text: text, Locale: "en"})
		if err != nil || !slices.Contains(hints, want) {
			t.Errorf("%q gives %v, want %v", text, hints, want)
		}
	}
}

func TestLocaleBegins(t *testing.T) {
	for locale, want := range map[string]string{
		"de": "de", "pt_br": "pt-BR", "zh-hant-tw": "zh-Hant-TW", "no": "nb", "en\nignore all rules": "", "x": "", "toolonglanguage": "", "en-": "en",
	} {
		if got := oneHint(t, core.Scene{Text: "👍", Locale: locale}, hint.Language); got != want {
			t.Errorf("locale %q gives %q, want %q", locale, got, want)
		}
	}
}

func TestLocaleGivesWayToWords(t *testing.T) {
	s := core.Scene{Locale: "en", Text: "ciao come stai oggi? io sto bene grazie"}
	if got := oneHint(t, s, hint.Language); got != "it" {
		t.Errorf("an Italian sentence under an English locale is %q", got)
	}
	s.Text = "ciao!"
	if got := oneHint(t, s, hint.Language); got != "en" {
		t.Errorf("one word under an English locale makes it %q", got)
	}
	s = core.Scene{Locale: "zu", Text: "unjani namhlanje, ngiyabonga kakhulu"}
	if got := oneHint(t, s, hint.Language); got != "zu" {
		t.Errorf("a language that the detector does not know became %q", got)
	}
	s = core.Scene{Locale: "zu", Text: "what are you doing tonight?"}
	if got := oneHint(t, s, hint.Language); got != hint.Undetermined {
		t.Errorf("English under a locale that the detector does not know is %q", got)
	}
	s = core.Scene{Locale: "pt-br", Text: "oi, tudo bem com você?"}
	if got := oneHint(t, s, hint.Language); got != "pt-BR" {
		t.Errorf("the locale's region is lost: %q", got)
	}
}

func TestLocaleOfTheLastSpeakerChangesNothing(t *testing.T) {
	recent := talk("😀", "👍")
	recent[0].Message.Locale, recent[1].Message.Locale = "fr", "de"
	if got := oneHint(t, core.Scene{Recent: recent, Text: "🎉", Locale: "es"}, hint.Language); got != "fr" {
		t.Errorf("language %q, want that of the first speaker", got)
	}
}

var english = []string{
	"hey everyone, what are we doing tonight?", "I think we should watch the new film", "yes, that would be great", "who is going to get the tickets?",
	"I can do it, but you have to tell me how many", "there are five of us, I think", "ok, I will get them now",
}

func TestLanguageChangesWithTheConversation(t *testing.T) {
	for _, foreign := range []string{"ciao!", "danke schön", "c'est la vie", "gracias amigo", "спасибо"} {
		if got := oneHint(t, core.Scene{Recent: talk(english...), Text: foreign}, hint.Language); got != "en" {
			t.Errorf("%q makes an English conversation %q", foreign, got)
		}
	}
	one := core.Scene{Recent: talk(english...), Text: "non lo so, io questa sera non posso venire perché devo lavorare"}
	if got := oneHint(t, one, hint.Language); got != "en" {
		t.Errorf("one Italian message makes an English conversation %q", got)
	}
	italian := []string{one.Text, "ma dai, che peccato, allora facciamo domani?", "sì, domani va bene anche per me"}
	all := append(append([]string{}, english...), italian...)
	changed := 0
	for i := len(english); i <= len(all)-1; i++ {
		if oneHint(t, core.Scene{Recent: talk(all[:i]...), Text: all[i]}, hint.Language) == "it" {
			changed++
		}
	}
	if changed == 0 {
		t.Error("three Italian messages do not change the language")
	}
	more := append(all, "ok", "😀", "va bene, a domani allora", "grazie a tutti, ciao")
	if got := oneHint(t, core.Scene{Recent: talk(more...), Text: "buonanotte"}, hint.Language); got != "it" {
		t.Errorf("the conversation went on in Italian and is %q", got)
	}
}

func TestTwoLanguagesSideBySide(t *testing.T) {
	italian := []string{"non lo so, forse domani", "ma io questa sera non posso venire", "allora ci vediamo dopo", "sì, va bene anche per me", "che cosa hai detto?"}
	var log []string
	for i := range 30 {
		log = append(log, english[i%len(english)], italian[i%len(italian)])
	}
	changes, before := 0, ""
	for i := 20; i < len(log); i++ {
		got := oneHint(t, core.Scene{Recent: talk(log[i-20 : i]...), Text: log[i]}, hint.Language)
		if got != before {
			changes++
		}
		before = got
	}
	if changes > 3 {
		t.Errorf("in a conversation of two languages it changed %d times in 40 messages", changes)
	}
}

func TestLocaleOfAnUnknownLanguage(t *testing.T) {
	basque := talk("kaixo, zer moduz zaude gaur?", "ni oso ondo, eskerrik asko, eta zu?", "gaur gauean nire lagunekin afalduko dut, etorri nahi duzu?", "bai, zer ordutan geratuko gara?")
	for i := range basque {
		basque[i].Message.Locale = "eu"
	}
	if got := oneHint(t, core.Scene{Recent: basque, Text: "bederatzietan, plazaren aurrean"}, hint.Language); got != "eu" {
		t.Errorf("Basque under its own locale is %q", got)
	}
	if got := oneHint(t, core.Scene{Recent: append(basque[:1:1], talk(english...)...), Text: "and who else is coming with us?"}, hint.Language); got != "en" {
		t.Errorf("English under a Basque locale is %q", got)
	}
}

func TestPastedPageIsNoChange(t *testing.T) {
	page := strings.Repeat("la conferenza non è stata un successo perché gli ospiti sono arrivati molto tardi. ", 100)
	if got := oneHint(t, core.Scene{Recent: talk(english...), Text: page}, hint.Language); got != "en" {
		t.Errorf("a pasted page makes the conversation %q", got)
	}
}

func TestOwnLinesDoNotCount(t *testing.T) {
	recent := talk(english...)
	for i := range recent {
		recent[i].Self = true
	}
	if got := oneHint(t, core.Scene{Recent: recent, Text: "ciao come stai oggi? io sto bene"}, hint.Language); got != "it" {
		t.Errorf("the bot's own English keeps the conversation %q", got)
	}
}

func TestMessageTone(t *testing.T) {
	for text, want := range map[string]string{
		"thank you so much": "thankful", "thanks a lot!": "thankful", "grazie mille": "thankful", "what the fuck is this": "angry",
		"hahaha good one": "playful", "😂😂": "playful", "ich bin so traurig": "sad", "WHY IS NOTHING WORKING HERE": "agitated",
		"dove sei?": "curious", "we won!!": "excited", "this is urgent, please call": "urgent", "I love you": "affectionate", "the train leaves at nine": "", "NASA": "",
	} {
		if got := oneHint(t, core.Scene{Text: text}, hint.MessageTone); got != want {
			t.Errorf("%q sounds %q, want %q", text, got, want)
		}
	}
}

func TestConversationTone(t *testing.T) {
	quarrel := talk("this is stupid", "the door is open", "shut up, idiot", "no", "I hate this")
	if got := oneHint(t, core.Scene{Recent: quarrel, Text: "well"}, hint.ConversationTone); got != "angry" {
		t.Errorf("a quarrel sounds %q", got)
	}
	if got := oneHint(t, core.Scene{Recent: talk(english...), Text: "lol"}, hint.ConversationTone); got != "" {
		t.Errorf("one laugh makes the conversation %q", got)
	}
}

func FuzzRecon(f *testing.F) {
	for _, s := range []string{"", "hello you", "\xff\xfe", "\x00", "’'-", "¿¡", "שלום\u202e", "今日は", strings.Repeat("ａ", 3000), "a\u0301 'tis -"} {
		f.Add(s, "en", s)
	}
	local := New()
	f.Fuzz(func(t *testing.T, text, locale, before string) {
		s := core.Scene{Text: text, Locale: locale, Recent: talk(before, text, before)}
		hints, err := local.Recon(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := local.Recon(t.Context(), s)
		if fmt.Sprint(hints) != fmt.Sprint(again) {
			t.Fatalf("the same scene gives %v and %v", hints, again)
		}
		for _, h := range hints {
			if h.Kind == hint.Language && clean(h.Text) != h.Text {
				t.Fatalf("%q is no language tag", h.Text)
			}
		}
	})
}

func BenchmarkRecon(b *testing.B) {
	var window []string
	for range 6 {
		window = append(window, english...)
	}
	s := core.Scene{Recent: talk(window...), Text: "what do you think?"}
	local := New()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := local.Recon(b.Context(), s); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		newDetector()
		newTones()
	}
}
