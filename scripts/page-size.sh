#!/usr/bin/env bash
# Tells what the admin's page adds to the binary: the program is built as it is, and
# with the page never served, so that the linker leaves it out. Fails above 3 MB.
# BINARY is a synthbot that is built already, as `make build` does.
set -euo pipefail
cd "$(dirname "$0")/.."
max=3000000
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

build() { # FILE [OPTION...]
  CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -funcalign=16' -o "$@" ./cmd/synthbot
}

sed '/^func (s \*pageServer) serve(/a\if true { return }' daemon/page.go >"$work/page.go"
! cmp -s daemon/page.go "$work/page.go" || { echo 'page-size: pageServer.serve begins otherwise'; exit 1; }
printf '{"Replace": {"%s": "%s"}}' "$PWD/daemon/page.go" "$work/page.go" >"$work/overlay.json"
build "$work/without" -overlay "$work/overlay.json"
[ -n "${BINARY:-}" ] && cp "$BINARY" "$work/with" || build "$work/with"
with=$(stat -c %s "$work/with") without=$(stat -c %s "$work/without")
printf 'with the page %d bytes, without %d: it adds %d\n' "$with" "$without" $((with - without))
[ $((with - without)) -lt "$max" ] || { echo "over $max bytes"; exit 1; }
[ "$with" -gt "$without" ] || { echo 'nothing was left out'; exit 1; }
