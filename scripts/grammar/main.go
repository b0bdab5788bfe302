// Command grammar prints random texts that llama.cpp's grammar engine allows for a JSON Schema, one a line: what a
// server that enforces the schema would answer with a model that writes at random.
//
//	grammar COUNT < SCHEMA
//
// The engine is the one in Ollama's module; scripts/corrections.sh builds it.
package main

/*
#cgo CXXFLAGS: -std=c++17
#include <stdlib.h>
#include "grammar.h"
*/
import "C"

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"strconv"
	"unsafe"

	_ "github.com/ollama/ollama/llama/llama.cpp/common"
	_ "github.com/ollama/ollama/llama/llama.cpp/src"
	_ "github.com/ollama/ollama/ml/backend/ggml/ggml/src"
)

const (
	maxGrammar = 4 << 20
	maxText    = 6000 // a longer text is started again
)

func main() {
	log.SetFlags(0)
	count, err := strconv.Atoi(os.Args[len(os.Args)-1])
	if err != nil {
		log.Fatal(err)
	}
	schema, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	grammar := (*C.char)(C.malloc(maxGrammar))
	if C.grammar_of(C.CString(string(schema)), grammar, maxGrammar) < 0 {
		log.Fatalf("no grammar for the schema: %s", C.GoString(grammar))
	}
	w := newWriter(grammar)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for count > 0 {
		text, ok := w.text()
		if ok {
			fmt.Fprintln(out, text)
			count--
		}
	}
}

// writer writes random texts of a grammar, character by character.
type writer struct {
	grammar *C.char
	pieces  []*C.char
	weights []float64 // of the pieces, and of the end of the text
	random  *rand.Rand
}

func newWriter(grammar *C.char) *writer {
	w := &writer{grammar: grammar, random: rand.New(rand.NewPCG(1, 2))}
	for c := ' '; c <= '~'; c++ {
		weight := 1.0
		switch c {
		case '"', '}', ']', '{':
			weight = 40 // else strings and lists would be very long
		case '\\', ' ':
			weight = 0.2
		}
		w.pieces, w.weights = append(w.pieces, C.CString(string(c))), append(w.weights, weight)
	}
	w.weights = append(w.weights, 40)
	return w
}

func (w *writer) text() (text string, ok bool) {
	n := len(w.pieces)
	g := C.grammar_begin(w.grammar, (**C.char)(unsafe.Pointer(&w.pieces[0])), C.size_t(n))
	if g == nil {
		log.Fatal("the engine refused the grammar")
	}
	defer C.grammar_end(g)
	allowed := make([]C.uint8_t, n+1)
	var written []byte
	for len(written) < maxText {
		C.grammar_allows(g, &allowed[0])
		next := w.pick(allowed)
		if next == n {
			return string(written), true
		}
		C.grammar_take(g, C.uint32_t(next))
		written = append(written, byte(' '+next))
	}
	return "", false
}

func (w *writer) pick(allowed []C.uint8_t) int {
	sum := 0.0
	for i, a := range allowed {
		sum += w.weights[i] * float64(a)
	}
	if sum == 0 {
		log.Fatal("the grammar allows no next character")
	}
	at, last := w.random.Float64()*sum, 0
	for i, a := range allowed {
		if a == 0 {
			continue
		}
		last = i
		at -= w.weights[i]
		if at < 0 {
			break
		}
	}
	return last
}
