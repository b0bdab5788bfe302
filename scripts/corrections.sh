#!/bin/sh
# Counts how many of 1,000 answers cost a correction: of the corpus, of random plans of the reply
# schema, and of plans that llama.cpp's grammar engine allows for it. The engine is compiled from
# Ollama's module, which takes a few minutes once; it needs a C++ compiler and the header
# nlohmann/json.hpp (Debian: g++, nlohmann-json3-dev). Without them it is left out.
set -eu
cd "$(dirname "$0")/.."
bench() { go test -run '^$' -bench Corrections -benchtime 1x ./core/action; }
if ! command -v g++ >/dev/null || ! echo '#include <nlohmann/json.hpp>' | g++ -E -x c++ - >/dev/null 2>&1; then
	echo 'skipped: the grammar engine needs g++ and nlohmann/json.hpp' >&2
	bench
	exit
fi
tool=$(mktemp)
trap 'rm -f "$tool"' EXIT INT TERM
(
	cd scripts/grammar
	library=$(go mod download -json github.com/ollama/ollama | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
	llama=$library/llama/llama.cpp
	CGO_CPPFLAGS="-I$llama/include -I$llama/common -I$llama/src -I$library/ml/backend/ggml/ggml/include" \
		go build -o "$tool" .
)
GRAMMAR=$tool bench
