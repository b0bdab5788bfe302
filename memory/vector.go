package memory

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/bits"

	"synthbot/core"
)

const maxLength = 8192

// vector is the direction of an embedding, with a byte for each component.
type vector struct {
	model      uint32 // tag of the model and the length: only vectors of one tag are compared
	scale      float32
	components []byte // int8; of a stored vector that is not coarse, valid during the transaction
}

// coarseTag changes the model of a coarse vector. Passages are many, so each component of theirs has four bits.
const coarseTag = 0x34626974

func modelTag(model string, length int) uint32 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s\x00%d", model, length)
	return h.Sum32()
}

// quantize makes a vector of an embedding; ok is false if it has no direction.
func quantize(model string, embedding []float32) (v vector, ok bool) {
	sum, largest := 0.0, 0.0
	for _, x := range embedding {
		sum += float64(x) * float64(x)
		largest = max(largest, math.Abs(float64(x)))
	}
	if !(sum > 0) || math.IsInf(sum, 0) || len(embedding) > maxLength {
		return vector{}, false
	}
	v = vector{modelTag(model, len(embedding)), float32(largest / 127 / math.Sqrt(sum)), make([]byte, len(embedding))}
	for i, x := range embedding {
		v.components[i] = byte(int8(math.Round(float64(x) / largest * 127)))
	}
	return v, true
}

func (v *vector) cosine(w *vector) float64 {
	a, b := v.components, w.components
	b = b[:len(a)]
	var sum int32
	for i, x := range a {
		sum += int32(int8(x)) * int32(int8(b[i]))
	}
	return float64(sum) * float64(v.scale) * float64(w.scale)
}

// coarse returns the vector with components of four bits, from -7 to 7. It chooses the step between them that
// changes the direction least.
func (v *vector) coarse() (best vector) {
	nearest := -1.0
	for step := 18; step > 4; step-- { // 127 is 7 of the first
		c := v.quantized(step)
		near := c.cosine(v)
		if near > nearest {
			best, nearest = c, near
		}
	}
	return best
}

// quantized divides the components by a step, rounds them, and limits them to 7 steps.
func (v *vector) quantized(step int) vector {
	c, sum := vector{model: v.model ^ coarseTag, components: make([]byte, len(v.components))}, 0
	for i, d := range v.components {
		x := (2*int(int8(d)) + 19*step) / (2 * step) // rounded, plus 9 so that it is above 0
		x = min(max(x-9, -7), 7)
		c.components[i] = byte(int8(x))
		sum += x * x
	}
	c.scale = float32(1 / math.Sqrt(float64(sum)))
	return c
}

const vectorHeader = 8

// encode returns the vector as it is stored. It is coarse if the number is that of a passage.
func (v *vector) encode(number uint64) []byte {
	b := make([]byte, 0, vectorHeader+len(v.components))
	b = binary.BigEndian.AppendUint32(b, v.model)
	b = binary.BigEndian.AppendUint32(b, math.Float32bits(v.scale))
	if number < firstPassage {
		return append(b, v.components...)
	}
	for i, d := range v.components { // from 1 to 15; 0 after an odd one
		if i%2 == 0 {
			b = append(b, (d+8)<<4)
		} else {
			b[len(b)-1] |= d + 8
		}
	}
	return b
}

func decodeVector(b []byte, number uint64) (v vector, err error) {
	if len(b) <= vectorHeader || len(b) > vectorHeader+maxLength {
		return vector{}, fmt.Errorf("vector of %d bytes: %w", len(b), errFields)
	}
	v = vector{binary.BigEndian.Uint32(b), math.Float32frombits(binary.BigEndian.Uint32(b[4:])), b[vectorHeader:]}
	if number >= firstPassage {
		v.components = unpack(v.components)
	}
	scale := float64(v.scale)
	if !(scale > 0) || math.IsInf(scale, 0) {
		return vector{}, fmt.Errorf("vector of scale %v: %w", scale, errFields)
	}
	return v, nil
}

func unpack(pairs []byte) []byte {
	components := make([]byte, 0, 2*len(pairs))
	for _, pair := range pairs {
		components = append(components, pair>>4-8, pair&0xf-8)
	}
	if pairs[len(pairs)-1]&0xf == 0 {
		return components[:len(components)-1]
	}
	return components
}

const sketchWords = 16

// sketch says on which side of 1024 planes through the origin a vector lies. The nearer two vectors, the fewer
// bits differ.
type sketch [sketchWords]uint64

// sketch rotates the vector in a fixed, pseudo-random way, so that every number affects every bit, and keeps the signs.
func (v *vector) sketch() (s sketch) {
	n := sketchWords * 64
	for n < len(v.components) {
		n *= 2
	}
	turned := make([]int32, n)
	state := uint64(0)
	for i, d := range v.components {
		if i%64 == 0 {
			state = mix(uint64(i) + 1)
		}
		turned[i] = int32(int8(d))
		if state>>(i%64)&1 == 1 {
			turned[i] = -turned[i]
		}
	}
	hadamard(turned)
	for i := range sketchWords * 64 {
		if turned[i] > 0 {
			s[i/64] |= 1 << (i % 64)
		}
	}
	return s
}

func mix(x uint64) uint64 {
	x *= 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// hadamard computes the Walsh-Hadamard transform in place. The length is a power of two.
func hadamard(x []int32) {
	for half := 1; half < len(x); half *= 2 {
		for at := 0; at < len(x); at += 2 * half {
			low, high := x[at:at+half], x[at+half:at+2*half]
			for i, a := range low {
				b := high[i]
				low[i], high[i] = a+b, a-b
			}
		}
	}
}

// distance counts the bits in which a sketch differs from a stored one.
func (s *sketch) distance(stored []byte) (n int) {
	for i := range s {
		n += bits.OnesCount64(s[i] ^ binary.LittleEndian.Uint64(stored[8*i:]))
	}
	return n
}

// A value holds the sketches of chunkFacts consecutive numbers, so that a search reads few
// keys. Each is the number within the chunk (1 byte), the model's tag (4) and the bits.
const (
	chunkFacts  = 60
	sketchBytes = 1 + 4 + 8*sketchWords
)

func chunkKey(origin core.Path, fact uint64) []byte { return seqKey(placeKey(origin), fact/chunkFacts) }

func (t factTx) putVector(origin core.Path, fact uint64, v *vector) {
	if fact >= firstPassage {
		c := v.coarse()
		v = &c
	}
	t.bucket(bucketVectors).Put(seqKey(placeKey(origin), fact), v.encode(fact))
	t.setSketch(origin, fact, v.encodeSketch(fact))
}

func (v *vector) encodeSketch(fact uint64) []byte {
	one := make([]byte, 1, sketchBytes)
	one[0] = byte(fact % chunkFacts)
	one = binary.BigEndian.AppendUint32(one, v.model)
	for _, word := range v.sketch() {
		one = binary.LittleEndian.AppendUint64(one, word)
	}
	return one
}

func (t factTx) sketchAt(origin core.Path, fact uint64) []byte {
	rest := t.bucket(bucketSketches).Get(chunkKey(origin, fact))
	for ; len(rest) >= sketchBytes; rest = rest[sketchBytes:] {
		if rest[0] == byte(fact%chunkFacts) {
			return rest[:sketchBytes]
		}
	}
	return nil
}

func (t factTx) dropVector(origin core.Path, fact uint64) {
	t.bucket(bucketVectors).Delete(seqKey(placeKey(origin), fact))
	t.setSketch(origin, fact, nil)
}

// setSketch stores the encoded sketch of one fact; nil deletes it.
func (t factTx) setSketch(origin core.Path, fact uint64, one []byte) {
	b, key := t.bucket(bucketSketches), chunkKey(origin, fact)
	old := b.Get(key)
	chunk := make([]byte, 0, len(old)+sketchBytes)
	for rest := old; len(rest) >= sketchBytes; rest = rest[sketchBytes:] {
		if one != nil && rest[0] > one[0] {
			chunk, one = append(chunk, one...), nil
		}
		if rest[0] != byte(fact%chunkFacts) {
			chunk = append(chunk, rest[:sketchBytes]...)
		}
	}
	b.set(key, append(chunk, one...))
}

// sketches calls use for the sketches of one model in an origin, beginning with the chunk that contains from.
func (t factTx) sketches(origin core.Path, from uint64, model uint32, use func(fact uint64, stored []byte)) {
	for chunk, v := range t.numbers(bucketSketches, placeKey(origin), from/chunkFacts) {
		for ; len(v) >= sketchBytes; v = v[sketchBytes:] {
			if binary.BigEndian.Uint32(v[1:]) == model {
				use(chunk*chunkFacts+uint64(v[0]), v[5:])
			}
		}
	}
}

// vectorOf reads a fact's vector; ok is false if there is none.
func (t factTx) vectorOf(origin core.Path, fact uint64) (v vector, ok bool) {
	value := t.bucket(bucketVectors).Get(seqKey(placeKey(origin), fact))
	if value == nil {
		return vector{}, false
	}
	v, err := decodeVector(value, fact)
	return v, err == nil
}
