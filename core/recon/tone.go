package recon

import (
	"strings"
	"unicode"

	"synthbot/core"
)

// tone is how something is said; the empty one is nothing special.
type tone string

// mood is a tone and what gives it away, in the languages of the detector.
type mood struct {
	tone   tone
	words  string // whole words
	traces string // anywhere: laughter, emoji; parted by spaces
}

// moods lists them by strength: the first that fits is the tone.
func moods() []mood {
	return []mood{
		{"urgent", "urgent urgently asap emergency urgente urgenza subito dringend sofort eilt urgence vite pilne срочно терміново", "🚨 🆘 ‼"},
		{"angry", "damn shit fuck fucking wtf stupid idiot idiots hate shut cazzo merda stronzo incazzato odio scheiße scheisse verdammt blöd idiotisch putain merde connard mierda joder puta hijo caralho porra kurwa cholera verdomme godverdomme jävla fan блять бля сука черт чёрт", "😡 🤬 😠 👿"},
		{"sad", "sad depressed lonely crying triste depresso solo traurig einsam deprimiert déprimé seul deprimido sola sozinho verdrietig eenzaam ledsen smutny smutno грустно грустный сумно", "😢 😭 💔 ☹ 🥺 😞 😔 :( :'("},
		{"worried", "worried afraid scared anxious preoccupato preoccupata paura ansia angst besorgt sorgen inquiet inquiète peur preocupado preocupada miedo preocupada medo ansioso bang orolig boję страшно боюсь", "😰 😨 😟"},
		{"affectionate", "love darling dear tesoro amore liebe liebling schatz chéri chérie cariño amor querida querido schat älskar kocham люблю кохаю", "❤ 😍 🥰 😘 💕 💖 🤗 <3"},
		{"thankful", "thanks thank thx ty grazie danke dankeschön merci gracias obrigado obrigada bedankt dank tack tak takk kiitos dzięki dziękuję díky děkuji köszi köszönöm mersi mulțumesc teşekkürler sağol makasih спасибо дякую благодаря", "🙏"},
		{"playful", "lol lmao rofl xd hihi ahah ahaha mdr ptdr kkk", "😂 🤣 😜 😝 😹 😆 😏 haha hehe jaja hahah ахах хаха ㅋㅋ ㅎㅎ www 哈哈 笑 ;) :P"},
		{"excited", "wow omg amazing awesome yay fantastico incredibile wahnsinn geil super génial incroyable increíble genial incrível geweldig fantastisch wspaniale супер круто", "🎉 🔥 🤩 🥳 !!"},
	}
}

// tones recognises moods. It is immutable.
type tones struct {
	words  map[string]int // the mood's place in the list
	traces [][]string
	names  []tone
}

func newTones() *tones {
	t := &tones{words: make(map[string]int, 256)}
	for i, m := range moods() {
		t.names = append(t.names, m.tone)
		t.traces = append(t.traces, strings.Fields(m.traces))
		for word := range strings.FieldsSeq(m.words) {
			_, taken := t.words[word]
			if !taken {
				t.words[word] = i
			}
		}
	}
	return t
}

// none is behind every mood.
const none = 1 << 10

// of is the tone of a text.
func (t *tones) of(text string) tone {
	if len(text) > textMax {
		text = text[:textMax]
	}
	found := none
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) }) {
		if i, ok := t.words[strings.ToLower(word)]; ok {
			found = min(found, i)
		}
	}
	lower := strings.ToLower(text)
	for i, traces := range t.traces {
		for _, trace := range traces {
			if i < found && (strings.Contains(lower, trace) || strings.Contains(text, trace)) {
				found = i
			}
		}
	}
	switch {
	case found != none:
		return t.names[found]
	case shouting(text):
		return "agitated"
	case strings.ContainsAny(text, "?？¿؟"):
		return "curious"
	}
	return ""
}

// shouting reports whether most of a text of some length is in capitals.
func shouting(text string) bool {
	upper, lower := 0, 0
	for _, r := range text {
		switch {
		case unicode.IsUpper(r):
			upper++
		case unicode.IsLower(r):
			lower++
		}
	}
	return upper >= 12 && upper > 4*lower
}

// What makes a conversation's tone.
const (
	toneSpan  = 10 // of people's latest messages
	toneShare = 3  // one of so many must have it
	toneMin   = 2
)

// conversation is the tone that prevails among people's latest messages.
func (t *tones) conversation(s core.Scene) tone {
	counts := map[tone]int{t.of(s.Text): 1}
	heard := 1
	for i := len(s.Recent) - 1; i >= 0 && heard < toneSpan; i-- {
		e := &s.Recent[i]
		if e.Spoken() && !e.Self {
			counts[t.of(e.Message.Text)]++
			heard++
		}
	}
	delete(counts, "")
	delete(counts, "curious") // a question is a matter of the message
	for _, name := range append(t.names, "agitated") {
		n := counts[name]
		if n >= toneMin && n*toneShare >= heard {
			return name
		}
	}
	return ""
}
