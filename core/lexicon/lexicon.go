// Package lexicon tells which words of a text carry meaning, in the languages of the house, and
// which of them may be forms of one.
package lexicon

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"synthbot/core/sorting"
)

// Limits of what is looked at of one text.
const (
	ReadMax  = 4000 // bytes
	askMax   = 12   // words that facts are looked for with
	letters  = 3    // of the shortest word that carries meaning
	endMax   = 3    // letters by which a form may be longer than what it shares with another
	endsMax  = 5    // of both forms together
	stemMin  = 4    // letters that they must share, unless one is the other's beginning
	shortEnd = 2    // letters that a short word may be longer by
)

// Lexicon knows the words that carry no meaning.
type Lexicon map[string]bool

func New() Lexicon {
	l := make(Lexicon, 900)
	for word := range strings.FieldsSeq(small) {
		l[word] = true
	}
	return l
}

// Content are the words of a text that carry meaning, lower-cased, each once.
func (l Lexicon) Content(text string) []string {
	if len(text) > ReadMax {
		text = strings.ToValidUTF8(text[:ReadMax], "")
	}
	var all []string
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	}) {
		for _, w := range units(word) {
			lower := strings.ToLower(w)
			if !l[lower] && !slight(w) && !slices.Contains(all, lower) {
				all = append(all, lower)
			}
		}
	}
	return all
}

// slight reports whether a word is too short to carry meaning. Short words do where they are
// written large: TV, UK.
func slight(word string) bool {
	return utf8.RuneCountInString(word) < letters && !dense(word) &&
		(strings.ToUpper(word) != word || strings.ToLower(word) == word || len(word) < 2)
}

// dense reports whether a word is of a script that parts no words.
func dense(word string) bool {
	first, _ := utf8.DecodeRuneInString(word)
	return unicode.In(first, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai)
}

// units are a word, or the pairs of letters of what parts no words.
func units(word string) []string {
	runes := []rune(word)
	if len(runes) < 3 || !dense(word) {
		return []string{word}
	}
	pairs := make([]string, len(runes)-1)
	for i := range pairs {
		pairs[i] = string(runes[i : i+2])
	}
	return pairs
}

// Telling are the words to look for: the longest ones, which are the rarest.
func Telling(words []string) []string {
	if len(words) <= askMax {
		return words
	}
	sorted := slices.Clone(words)
	sorting.SortStable(sorted,
		func(a, b string) int { return cmp.Compare(utf8.RuneCountInString(b), utf8.RuneCountInString(a)) })
	return sorted[:askMax]
}

// Shared counts the words that a text has, in whatever form.
func Shared(words, text []string) (n int) {
	for _, w := range words {
		if slices.ContainsFunc(text, func(t string) bool { return alike(w, t) }) {
			n++
		}
	}
	return n
}

// alike reports whether two words may be forms of one.
func alike(a, b string) bool {
	if a == b {
		return true
	}
	if dense(a) || dense(b) {
		return false
	}
	x, y := []rune(a), []rune(b)
	same := 0
	for same < min(len(x), len(y)) && x[same] == y[same] {
		same++
	}
	left, right := len(x)-same, len(y)-same
	if (left == 0 || right == 0) && same >= letters && max(left, right) <= shortEnd {
		return true
	}
	return same >= stemMin && max(left, right) <= endMax && left+right <= endsMax
}

// Enough is how many of the words that were said a text must have to answer
// well.
func Enough(words int) int {
	return min(1+(words-1)/4, 3)
}

// small are words that bring nothing up: those that hold sentences together,
// and greetings.
const small = `
the and for are was were been being have has had having does did doing done will would shall should can could may
might must not but yet nor than then that this these those there here what when where which who whom whose why how
with without within about above after again against all also always any anyone anything are around because before
below between both but came come comes down during each either else ever every everyone everything few from further
get gets got give goes going gone good great hello hey him his her hers herself himself into its itself just know let
like little look made make many maybe mean more most much myself never new nice now off often okay once one only other
our ours out over own please quite rather really right said same say see she some someone something soon still such
sure take tell thank thanks their theirs them themselves they thing things think though through thus too tonight under
until upon use used very want wants way well went while yeah yes you your yours yourself today tomorrow yesterday
morning evening night bye goodbye cheers sorry lol haha don doesn didn isn wasn aren won hasn haven couldn wouldn
shouldn ain remember remind ich und der die das den dem des ein eine einer einem einen eines nicht kein keine auch
aber oder wenn weil dass daß wie was wer wen wem wann warum wieso welche welcher welches mit ohne für von vom zum zur
bei nach aus auf über unter vor hinter zwischen durch gegen bis seit ist sind war waren bin bist seid hat habe haben
hatte hatten wird werden wurde wurden kann können konnte muss müssen soll sollte will wollen möchte mag mein meine
dein deine sein seine ihr ihre unser euer mir mich dir dich ihm ihn uns euch sich man hier dort jetzt dann noch schon
nur sehr mehr viel viele etwas nichts alles immer nie mal doch denn also hallo guten gute guter morgen abend nacht
tschüss danke bitte heute gestern gut okay genau che chi cui non come dove quando perché perche quale quali quanto con
senza per tra fra dal dalla del della dei delle degli dello nel nella nei sul sulla alla allo agli alle gli una uno
dei sono sei siamo siete era erano essere stato stata hai abbiamo avete hanno aveva avere fare faccio fai può puoi
posso devo deve vuole voglio vorrei mio mia tuo tua suo sua nostro vostro loro questo questa questi queste quello
quella quelli quelle qui qua poi ora adesso ancora già più meno molto molta molti poco tutto tutti tutte niente nulla
sempre mai anche però oppure quindi ciao salve buongiorno buonasera buonanotte grazie prego oggi ieri domani bene
allora les des une est sont était étaient être avoir avait ont avons avez pas plus moins très bien aussi mais donc
pour par avec sans sous sur dans chez entre vers qui que quoi quand comment pourquoi quel quelle quels quelles cette
ces ceux celle mon mes ton tes ses notre nos votre vos leur leurs moi toi lui elle elles nous vous ils ici maintenant
alors puis encore déjà toujours jamais tout tous toute toutes rien quelque chose faire fait fais peux peut veux veut
dois doit bonjour bonsoir salut merci oui non demain hier aujourd hui los las una unos unas del para por con sin sobre
entre hasta desde hacia que qué quien quién cuando cuándo donde dónde como cómo cual cuál porque pero sino también
tampoco muy más menos mucho mucha muchos poco todo todos toda todas nada algo siempre nunca ser estar está están estoy
eres somos son era eran fue fueron haber hay había tiene tengo tienes tener hacer hace hago puede puedo quiero quiere
debe este esta estos estas ese esa esos eso esto aquel mis tus sus nuestro vuestro ella ellos ellas nosotros ustedes
hola buenos buenas días tardes noches gracias favor hoy ayer mañana bien ahora aquí allí entonces não sim uma uns umas
dos das nos nas pelo pela para por com sem sobre entre até desde que quem quando onde como qual quais porque mas
também muito muita mais menos pouco tudo todos nada algo sempre nunca ser estar está estão estou somos são era foi
eram ter tem tenho fazer faz pode posso quero quer deve este esta isto esse essa isso aquele meu minha teu tua seu sua
nosso dele dela eles elas você vocês olá obrigado obrigada hoje ontem amanhã bem agora aqui então het een van voor met
zonder over onder tussen naar bij uit niet geen maar ook want dus omdat als dan dat dit deze die wie wat waar wanneer
waarom hoe welke zijn was waren ben bent heeft heb hebben had worden wordt kan kunnen moet moeten wil willen mijn jouw
haar hun ons onze jullie hij zij wij hier daar nu nog wel heel veel meer iets niets alles altijd nooit hallo hoi
goedemorgen dank bedankt vandaag gisteren это что как где когда почему кто для или если чтобы так уже ещё еще только
очень был была были быть есть нет его она они мне меня тебя тебе вас нас мой твой наш ваш свой этот эта эти тот там
тут здесь теперь потом тоже можно надо привет здравствуйте спасибо пожалуйста сегодня вчера завтра
`
