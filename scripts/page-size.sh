#!/usr/bin/env bash
# Prints how much the admin page adds to the binary: builds the program with and
# without serving the page, so that the linker leaves it out. Fails above 3 MB.
# BINARY is an existing synthbot, as built by `make build`.
set -euo pipefail
cd "$(dirname "$0")/.."
max=3000000
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

build() { # FILE [OPTION...]
  CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -funcalign=8' -o "$@" ./cmd/synthbot
}

sed '/^func (s \*pageServer) serve(/a\if true { return }' daemon/page.go >"$work/page.go"
! cmp -s daemon/page.go "$work/page.go" || { echo 'page-size: the declaration of pageServer.serve has changed'; exit 1; }
printf '{"Replace": {"%s": "%s"}}' "$PWD/daemon/page.go" "$work/page.go" >"$work/overlay.json"
build "$work/without" -overlay "$work/overlay.json"
[ -n "${BINARY:-}" ] && cp "$BINARY" "$work/with" || build "$work/with"
with=$(stat -c %s "$work/with") without=$(stat -c %s "$work/without")
printf 'with the page %d bytes, without %d: it adds %d\n' "$with" "$without" $((with - without))
[ $((with - without)) -lt "$max" ] || { echo "over $max bytes"; exit 1; }
[ "$with" -gt "$without" ] || { echo 'nothing was left out'; exit 1; }
