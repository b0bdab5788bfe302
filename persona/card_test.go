package persona

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"synthbot/core/lore"
	"synthbot/core/txt"
)

const (
	cardV1 = `{"name":"Mira","description":"{{char}} sails.","personality":"dry","scenario":"A harbour.",
		"first_mes":"Ahoy {{user}}","mes_example":"<START>\n{{user}}: hi"}`
	cardV2 = `{"spec":"chara_card_v2","spec_version":"2.0","name":"old","data":{"name":"Mira","description":"Sails.","personality":"dry",
		"scenario":"","first_mes":"Ahoy","mes_example":"","creator_notes":"SECRET","system_prompt":"{{original}} Stay in role.","post_history_instructions":"Be brief.",
		"alternate_greetings":["x"],"tags":[],"creator":"me","character_version":"1","extensions":{},
		"character_book":{"name":"Lore","scan_depth":4.0,"token_budget":"500","recursive_scanning":true,"extensions":{},"entries":[
			{"keys":["harbour",7,""],"content":"The harbour is {{char}}'s.","extensions":{},"enabled":true,"insertion_order":3,"secondary_keys":["sea"],"selective":true,"constant":false,"id":1},
			{"keys":"fog","content":"Fog.","enabled":false,"priority":null},
			{"keys":[],"content":""}, 17]}}}`
	cardV3 = `{"spec":"chara_card_v3","spec_version":"3.0","data":{"name":"Mira Delgado","nickname":"Captain","description":"{{char}} sails.","personality":"",
		"first_mes":null,"group_only_greetings":[],"mes_example":["a","b"],"character_book":{"entries":[{"keys":["^x"],"use_regex":true,"content":"X","constant":true}]}}}`
)

func TestCards(t *testing.T) {
	for name, tc := range map[string]struct{ json, text, greeting string }{
		"v1": {cardV1, "You are Mira. Profile: Mira sails. A harbour. Personality: dry.", "Ahoy Jay"},
		"v2": {cardV2, "You are Mira. Profile: Sails. Personality: dry. Guidance: Stay in role. Be brief.", "Ahoy"},
		"v3": {cardV3, "You are Mira Delgado, also called Captain. Profile: Captain sails.", ""},
	} {
		for _, kind := range []string{"json", "tEXt", "zTXt", "iTXt", "iTXt compressed"} {
			data := []byte("\ufeff" + tc.json)
			if kind != "json" {
				data = picture(cardChunk(kind, "chara", tc.json))
			}
			p, err := Load(write(t, "card", string(data)))
			if err != nil {
				t.Errorf("%s as %s: unexpected error %v", name, kind, err)
				continue
			}
			got := p.For("Jay")
			if strings.Join(strings.Fields(got.Text), " ") != tc.text || got.Greeting != tc.greeting {
				t.Errorf("%s as %s: unexpected text %q or greeting %q", name, kind, got.Text, got.Greeting)
			}
		}
	}
}

func TestBook(t *testing.T) {
	p, err := Parse("card", []byte(cardV2))
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(p.Book)
	want := lore.Book{ScanDepth: 4, TokenBudget: 500, Recursive: true, Entries: []lore.Entry{
		{Keys: []string{"harbour"}, SecondaryKeys: []string{"sea"}, Content: "The harbour is {{char}}'s.", Enabled: true, Selective: true, Order: 3},
		{Keys: []string{"fog"}, Content: "Fog."},
	}}
	if w, _ := json.Marshal(want); string(got) != string(w) {
		t.Errorf("book\n got %s\nwant %s", got, w)
	}
	p, err = Parse("card", []byte(cardV3))
	if err != nil || len(p.Book.Entries) == 0 || !p.Book.Entries[0].Regex || !p.Book.Entries[0].Constant ||
		!p.Book.Entries[0].Enabled {
		t.Errorf("unexpected v3 book %+v, %v", p.Book, err)
	}
}

// TestBookByNumber: the entries of a book may be an object, as in world books.
func TestBookByNumber(t *testing.T) {
	card := func(book string) string {
		return `{"spec":"chara_card_v2","data":{"name":"Mira","character_book":` + book + `}}`
	}
	p, err := Parse("card", []byte(card(`{"entries":{"10":{"uid":10,"key":["fog"],"content":"Fog.","disable":true},"2":{"uid":2,"keys":["sea"],"keysecondary":["salt"],"content":"Sea.","order":5}}}`)))
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(p.Book.Entries)
	want, _ := json.Marshal([]lore.Entry{
		{Keys: []string{"sea"}, SecondaryKeys: []string{"salt"}, Content: "Sea.", Enabled: true, Order: 5},
		{Keys: []string{"fog"}, Content: "Fog."},
	})
	if string(got) != string(want) {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	for _, none := range []string{`null`, `{}`, `{"entries":[]}`, `{"entries":{}}`, `{"entries":null}`} {
		if p, err := Parse("card", []byte(card(none))); err != nil || len(p.Book.Entries) > 0 {
			t.Errorf("%s: unexpected persona %+v, %v", none, p, err)
		}
	}
	for _, bad := range []string{`"lore"`, `[1]`, `{"entries":"many"}`, `{"entries":5}`} {
		if _, err := Parse("card", []byte(card(bad))); err == nil || !strings.Contains(err.Error(), "character_book") {
			t.Errorf("%s: unexpected error %v", bad, err)
		}
	}
}

// TestStartIsNotSent: the mark <START> that cards put before each example dialogue is removed.
func TestStartIsNotSent(t *testing.T) {
	p := &Persona{Name: "Mira", ExampleDialogue: "<START>\n{{user}}: Hi\n{{char}}: Ahoy\n\n<start>{{user}}: Bye\n"}
	if got, want := p.For("Ann").Dialogue, "Ann: Hi\nMira: Ahoy\n\nAnn: Bye"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPNGPrefersV3(t *testing.T) {
	data := picture(cardChunk("tEXt", "chara", cardV2), cardChunk("tEXt", "ccv3", cardV3))
	p, err := Parse("card", data)
	if err != nil || p.Name != "Mira Delgado" {
		t.Errorf("unexpected persona %+v, %v", p, err)
	}
	data = picture(cardChunk("tEXt", "ccv3", "{broken"), cardChunk("tEXt", "Chara", cardV2))
	p, err = Parse("card", data)
	if err != nil || p.Name != "Mira" {
		t.Errorf("with a broken ccv3 chunk: unexpected persona %+v, %v", p, err)
	}
}

func TestBadPNG(t *testing.T) {
	good := picture(cardChunk("tEXt", "chara", cardV1))
	flipped := bytes.Clone(good)
	flipped[len(pngSignature)+25+20] ^= 1 // within the text
	endless := bytes.Clone(good)
	binary.BigEndian.PutUint32(endless[len(pngSignature)+25:], 0xffffffff)
	for name, tc := range map[string]struct {
		data []byte
		want string
	}{
		"no card":       {picture(), "a PNG without a character card"},
		"other text":    {picture(pngChunk("tEXt", []byte("Comment\x00hello"))), "a PNG without a character card"},
		"no separator":  {picture(pngChunk("tEXt", []byte("chara"))), "a PNG without a character card"},
		"cut":           {good[:len(good)-20], "truncated PNG"},
		"cut in frame":  {good[:len(pngSignature)+5], "truncated PNG"},
		"no end":        {good[:len(good)-12], "truncated PNG"},
		"flipped":       {flipped, "checksum of chunk \"tEXt\""},
		"endless":       {endless, "of 4294967295 bytes"},
		"headless":      {[]byte(pngSignature + string(pngChunk("IEND", nil))), "not with IHDR"},
		"no base64":     {picture(pngChunk("tEXt", []byte("chara\x00{}{}"))), "not base64"},
		"no json":       {picture(cardChunk("tEXt", "chara", "hello")), "no JSON inside"},
		"not a card":    {picture(cardChunk("tEXt", "chara", "{}")), "no character card"},
		"bomb":          {picture(bomb()), "larger than 8388608 bytes"},
		"bad zlib":      {picture(pngChunk("zTXt", []byte("chara\x00\x00garbage"))), "compressed text"},
		"short":         {picture(pngChunk("zTXt", []byte("chara\x00"))), "too short"},
		"short i":       {picture(pngChunk("iTXt", []byte("chara\x00\x00\x00en"))), "too short"},
		"empty in both": {picture(cardChunk("tEXt", "chara", "[]"), cardChunk("tEXt", "ccv3", "1")), "ccv3 text"},
	} {
		if p, err := Parse("x.png", tc.data); err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "x.png: ") {
			t.Errorf("%s: got %+v, %v; want an error with %q", name, p, err, tc.want)
		}
	}
}

// TestPicture: the picture has no text chunks, and huge pictures are refused because browsers
// cannot show them.
func TestPicture(t *testing.T) {
	got, err := Picture(picture(cardChunk("tEXt", "chara", cardV1), pngChunk("gAMA", []byte{0, 0, 0, 1})))
	if err != nil || !bytes.Equal(got, picture(pngChunk("gAMA", []byte{0, 0, 0, 1}))) {
		t.Errorf("unexpected picture %q, %v", got, err)
	}
	wide := picture()
	header := pngChunk("IHDR", []byte{0, 0, 0, 1, 0, 0, 0x10, 1, 8, 0, 0, 0, 0})
	copy(wide[len(pngSignature):], header)
	for name, tc := range map[string]struct {
		data []byte
		want string
	}{
		"wide": {wide, "1 × 4097 pixels, at most 4096 × 4096"}, "json": {[]byte(cardV1), "not a PNG"},
		"cut": {picture()[:60], "truncated"}, "header": {[]byte(pngSignature + string(pngChunk("IHDR", nil))), "wrong size"},
		"late":  {[]byte(pngSignature + string(pngChunk("gAMA", nil)) + string(header)), "does not come first"},
		"twice": {slices.Insert(picture(), len(picture()[:len(pngSignature)+25]), pngChunk("IHDR", []byte{0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0})...), "does not come first"},
	} {
		if _, err := Picture(tc.data); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: unexpected error %v", name, err)
		}
	}
}

// TestBombIsNotUnpacked: decompression stops at the limit, before the wrong checksum at the end.
func TestBombIsNotUnpacked(t *testing.T) {
	text := packed(strings.Repeat("A", maxText+5000))
	text[len(text)-1] ^= 1
	_, err := Parse("x.png", picture(pngChunk("zTXt", fmt.Appendf(nil, "chara\x00\x00%s", text))))
	if err == nil || !strings.Contains(err.Error(), "larger than 8388608 bytes") {
		t.Errorf("unexpected error %v", err)
	}
}

func TestLongCardIsCut(t *testing.T) {
	long, _ := json.Marshal(map[string]any{"name": strings.Repeat("n", 500), "description": strings.Repeat("猫", 50_000)})
	p, err := Parse("card", long)
	if err != nil {
		t.Fatal(err)
	}
	if n := utf8.RuneCountInString(p.Profile); n != maxField || !strings.HasSuffix(p.Profile, "…") || utf8.RuneCountInString(p.Name) != maxName {
		t.Errorf("unexpected: a profile of %d and a name of %d characters", n, len(p.Name))
	}
}

func FuzzParse(f *testing.F) {
	f.Add(aria)
	for _, c := range []string{cardV1, cardV2, cardV3, "name = 1\nx = []\n[a.b]\nc = {d=1}", "name = \"{{user}}\""} {
		f.Add([]byte(c))
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkParsed(t, data) })
}

func FuzzPNG(f *testing.F) {
	f.Add("tEXt", []byte("chara\x00eyJuYW1lIjoiQSJ9"), uint8(0))
	f.Add("zTXt", cardChunk("zTXt", "ccv3", cardV3)[8:], uint8(3))
	f.Add("iTXt", cardChunk("iTXt", "chara", cardV2)[8:], uint8(0))
	f.Fuzz(func(t *testing.T, kind string, body []byte, cutOff uint8) {
		data := picture(pngChunk((kind + "....")[:4], body))
		data = data[:len(data)-int(cutOff)%len(data)]
		checkParsed(t, data)
		if picture, err := Picture(data); err == nil && len(picture) > len(data) {
			t.Errorf("the picture has %d bytes, the file only %d", len(picture), len(data))
		}
	})
}

// checkParsed checks that a file gives either a persona that renders as one clean line, or an error
// that names the file.
func checkParsed(t *testing.T, data []byte) {
	p, err := Parse("some.file", data)
	if err != nil {
		for l := range strings.SplitSeq(err.Error(), "\n") {
			if !strings.HasPrefix(l, "some.file:") || !utf8.ValidString(l) {
				t.Fatalf("invalid error line %q", l)
			}
		}
		return
	}
	got := p.For("Jay")
	if got.Name == "" || got.Text != txt.Line(got.Text) || !utf8.ValidString(got.Text+got.Dialogue+got.Greeting) {
		t.Fatalf("%q was rendered as %q", data, got)
	}
	for _, l := range []string{" Profile: ", " Likes: ", " Speaking style: "} {
		if strings.Count(got.Text, l) > 1 {
			t.Fatalf("%q has the label %q twice", got.Text, l)
		}
	}
}

// picture returns a PNG of one pixel with more chunks.
func picture(chunks ...[]byte) []byte {
	out := append([]byte(pngSignature), pngChunk("IHDR", []byte{0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0})...)
	for _, c := range chunks {
		out = append(out, c...)
	}
	out = append(out, pngChunk("IDAT", packed("\x00\x00"))...)
	return append(out, pngChunk("IEND", nil)...)
}

func pngChunk(kind string, body []byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	out = append(append(out, kind...), body...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:]))
}

func cardChunk(kind, keyword, card string) []byte {
	text := base64.StdEncoding.EncodeToString([]byte(card))
	switch kind {
	case "zTXt":
		return pngChunk("zTXt", fmt.Appendf(nil, "%s\x00\x00%s", keyword, packed(text)))
	case "iTXt":
		return pngChunk("iTXt", fmt.Appendf(nil, "%s\x00\x00\x00\x00\x00%s", keyword, text))
	case "iTXt compressed":
		return pngChunk("iTXt", fmt.Appendf(nil, "%s\x00\x01\x00en\x00wort\x00%s", keyword, packed(text)))
	}
	return pngChunk("tEXt", fmt.Appendf(nil, "%s\x00%s", keyword, text))
}

func packed(text string) []byte {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	z.Write([]byte(text))
	z.Close()
	return b.Bytes()
}

func bomb() []byte {
	return pngChunk("zTXt", fmt.Appendf(nil, "chara\x00\x00%s", packed(strings.Repeat("A", maxText+10))))
}
