package memory

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"synthbot/core"
)

func equal(a, b any) string {
	samePath := cmp.Comparer(func(a, b core.Path) bool { return a == b })
	return cmp.Diff(a, b, cmp.AllowUnexported(storedEntry{}, head{}), samePath)
}

// anyPath draws a path, often with elements that need escaping.
func anyPath(t *rapid.T) core.Path {
	elements := rapid.SliceOfN(rapid.StringN(1, 6, -1), 1, 4).Draw(t, "elements")
	p, err := core.MakePath(elements...)
	if err != nil {
		t.Skip(err)
	}
	return p
}

func TestPlaceKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyPath(t), anyPath(t)
		if extended, err := core.MakePath(append(b.Elements(), "x")...); err == nil && rapid.Bool().Draw(t, "below") {
			a = extended
		}
		back, err := parsePlace(placeKey(a))
		if err != nil || back != a {
			t.Fatalf("%s was decoded as %s, %v", a, back, err)
		}
		from, to := subtree(b)
		place := placeKey(a)
		for _, key := range [][]byte{place, seqKey(place, 0), seqKey(place, ^uint64(0)), newestKey(place)} {
			within := bytes.Compare(key, from) >= 0 && bytes.Compare(key, to) < 0
			if within != a.Within(b) {
				t.Fatalf("%s within %s is %t, but its key %q in the range: %t", a, b, a.Within(b), key, within)
			}
		}
		if bytes.HasPrefix(placeKey(a), placeKey(b)) != (a == b) {
			t.Fatalf("the key of %s begins with that of %s", a, b)
		}
	})
}

func TestAfter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0x7f, 0x80, 0xb2, 0xfe, 0xff}), 1, 5)
		prefix, key := some.Draw(t, "prefix"), some.Draw(t, "key")
		end := prefixEnd(prefix)
		within := bytes.Compare(key, prefix) >= 0 && isBefore(key, end)
		if within != bytes.HasPrefix(key, prefix) {
			t.Fatalf("%x begins with %x: want %t; the end of the range is %x", key, prefix, within, end)
		}
	})
}

func TestLongIDs(t *testing.T) {
	long := strings.Repeat("x", maxID)
	seen := map[string]string{}
	for _, id := range []string{"a", long[:maxID-1], long, long + "x", string(shortID(long))} {
		key := string(shortID(id))
		if old, ok := seen[key]; ok {
			t.Errorf("%q and %q have the same key", old, id)
		}
		seen[key] = id
		if len(key) > 1+maxID {
			t.Errorf("the key of an id of %d bytes has %d", len(id), len(key))
		}
	}
}

// anyLine draws an entry in which any field may be set.
func anyLine(t *rapid.T) storedEntry {
	var l storedEntry
	draw(t, reflect.ValueOf(&l.Entry).Elem())
	l.Message.Path, l.Message.Seq = kitchen, 7
	l.reactors = rapid.MapOfN(rapid.StringN(1, 3, -1), rapid.SliceOfN(rapid.StringN(1, 3, -1), 1, 2), 1, 3).Draw(t, "reactors")
	return l
}

func draw(t *rapid.T, v reflect.Value) {
	if rapid.IntRange(0, 3).Draw(t, "zero") == 0 {
		return
	}
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		*x = time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "s"), rapid.Int64Range(0, 999999999).Draw(t, "ns")).UTC()
		return
	case *core.Path:
		*x = anyPath(t)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(string(rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "string")))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "int"))
	case reflect.Uint8:
		v.SetUint(uint64(rapid.Uint8().Draw(t, "uint8")))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "uint64"))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		draw(t, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") != "-" { // not stored
				draw(t, v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		draw(t, v.Index(0))
		draw(t, v.Index(1))
		if v.Type() == reflect.TypeFor[[]core.Path]() && (v.Index(0).IsZero() || v.Index(1).IsZero()) {
			v.SetZero() // a scope is never the root
		}
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]int{"a": 1, "b": -2}))
	default:
		t.Fatalf("no value for a field of type %s", v.Type())
	}
}

func TestEntryComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyLine(t)
		got, err := decodeEntry(encodeEntry(&want), kitchen, 7)
		if diff := equal(want, got); err != nil || diff != "" {
			t.Fatalf("%v\n%s", err, diff)
		}
	})
}

func TestUnknownTagsAreSkipped(t *testing.T) {
	c := codec{}
	c.writeField(200, []byte("from the future"))
	c.out = append(c.out, encodeEntry(&storedEntry{Entry: message(kitchen, "1", "text")})...)
	c.writeField(201, []byte{77})
	got, err := decodeEntry(c.out, kitchen, 1)
	if err != nil || got.Message.Text != "text" || got.Message.ID != "1" {
		t.Errorf("%+v, %v", got, err)
	}
}

// FuzzEntry: an entry that can be decoded is encoded and decoded to the same value.
func FuzzEntry(f *testing.F) {
	full := message(kitchen, "1", "text")
	full.Message.ReplyTo = &core.Quote{ID: "0", From: core.Author{ID: "7"}, Time: time.Unix(1, 2)}
	full.Command = &core.Command{Name: "help", Args: []string{"", "x"}}
	full.Message.Attachments = []core.Attachment{{Kind: core.MediaImage, Size: -1}}
	f.Add(encodeEntry(&storedEntry{Entry: full, reactors: map[string][]string{"7": {"x"}}}))
	f.Add([]byte{5, 2, 0xff})
	f.Add([]byte{4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, value []byte) {
		one, err := decodeEntry(value, kitchen, 1)
		if err != nil {
			return
		}
		two, err := decodeEntry(encodeEntry(&one), kitchen, 1)
		if err != nil || !bytes.Equal(encodeEntry(&one), encodeEntry(&two)) {
			t.Fatalf("%v\n%+v\n%+v", err, one, two)
		}
	})
}

// FuzzHead: a head that can be decoded is encoded and decoded to the same value.
func FuzzHead(f *testing.F) {
	f.Add(encodeHead(head{last: 5, answered: 2, count: 3, time: time.Unix(1, 2)}))
	f.Fuzz(func(t *testing.T, value []byte) {
		one, err := decodeHead(value)
		if err != nil {
			return
		}
		if two, err := decodeHead(encodeHead(one)); err != nil || two != one {
			t.Fatalf("%v\n%+v\n%+v", err, one, two)
		}
	})
}

// FuzzKeys: a key that can be split is built again from its parts.
func FuzzKeys(f *testing.F) {
	f.Add(seqKey(placeKey(kitchen), 7))
	f.Add(journalKey(placeKey(kitchen), core.Key{Turn: core.TurnID{Seq: 1}, Round: 2, Step: 3, Part: 4}))
	f.Fuzz(func(t *testing.T, key []byte) {
		path, rest, err := cutPath(key)
		if err != nil {
			return
		}
		place := placeKey(path)
		if !bytes.Equal(append(bytes.Clone(place), rest...), key) {
			t.Fatalf("%q was decoded as %s", key, path)
		}
		if _, seq, err := parseEntryKey(key); err == nil && !bytes.Equal(seqKey(place, seq), key) {
			t.Fatalf("%q was decoded as %d", key, seq)
		}
		if k, err := parseJournalKey(key); err == nil && !bytes.Equal(journalKey(place, k), key) {
			t.Fatalf("%q was decoded as %+v", key, k)
		}
	})
}

func BenchmarkDecode100(b *testing.B) {
	e := message(kitchen, "1234567", "Well, I would say that the quick brown fox is rather lazy today, don't you think so? Let us meet at ten.")
	e.Message.Author = core.Author{ID: "123456789012345678", Name: "Jay Miller", Tag: "@jay", Rank: core.RankModerator}
	e.Message.Time = time.Now()
	e.Message.Addressed = core.AddressedMention
	e.Message.ReplyTo = &core.Quote{ID: "1234566", From: core.Author{ID: "99", Name: "Ann"}, Text: "What do you think?", Time: time.Now()}
	value := encodeEntry(&storedEntry{Entry: e})
	b.ReportAllocs()
	b.ReportMetric(float64(len(value)), "bytes/entry")
	for b.Loop() {
		for i := range 100 {
			if _, err := decodeEntry(value, kitchen, uint64(i)); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func Example_layout() {
	place := placeKey(core.MustPath("telegram/-100/7"))
	fmt.Printf("%q\n%q\n", place, seqKey(place, 258))
	// Output:
	// "telegram\x01-100\x017\x00"
	// "telegram\x01-100\x017\x00\x00\x00\x00\x00\x00\x00\x01\x02"
}

// TestIDs: an id is decoded to the same text, and a number takes less space.
func TestIDs(t *testing.T) {
	for id, size := range map[string]int{
		"": 0, "0": 3, "7": 3, "007": 5, "-7": 4, "+7": 4, "1200000000000000000": 11, "18446744073709551615": 12,
		"18446744073709551616": 22, "7a": 4, "٧": 4,
	} {
		var c, back codec
		c.id(2, 32, &id)
		want(t, "bytes of "+id, len(c.out), size)
		var got string
		if err := back.read(c.out, func() { back.id(2, 32, &got) }); err != nil || got != id {
			t.Errorf("%q is %q: %v", id, got, err)
		}
	}
}
