#!/usr/bin/env bash
# Makes a release: scripts/release.sh VERSION [FOLDER [ARCH...]]
# Static binaries and Debian packages for linux, a bill of materials for each
# binary, and SHA256SUMS, in FOLDER (dist/VERSION), which contains nothing else. The same
# commit, version and Go produce identical files. A tree with changes is refused. Outside
# of git, COMMIT and SOURCE_DATE_EPOCH replace the data of git.
set -euo pipefail
# Pinned here instead of in go.mod, because it is not part of the bot.
bill=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
version=${1:?usage: scripts/release.sh VERSION [FOLDER [ARCH...]]}
out=$(realpath -m "${2:-$(dirname "$0")/../dist/$version}")
cd "$(dirname "$0")/.."
shift $(($# > 2 ? 2 : $#))
[ $# -gt 0 ] || set -- amd64 arm64

if [ -z "${COMMIT:-}" ]; then
  [ -z "$(git status --porcelain)" ] || { echo 'release: the tree has uncommitted changes' >&2; exit 1; }
  COMMIT=$(git rev-parse --short=12 HEAD)
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
fi
export COMMIT SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
umask 022

build() { # ARCH FILE
  CGO_ENABLED=0 GOOS=linux GOARCH=$1 GOAMD64=v1 GOARM64=v8.0 GOFLAGS= \
    go build -trimpath -buildvcs=false -ldflags "-s -w -funcalign=8 -buildid= -X synthbot/cmd/synthbot/commands.version=$version -X synthbot/cmd/synthbot/commands.commit=$COMMIT" -o "$2" ./cmd/synthbot
}

if [ -e "$out" ] && [ -n "$(find "$out" -mindepth 1 ! -name 'synthbot_*' ! -name SHA256SUMS)" ]; then
  echo "release: $out contains other files, which would be deleted" >&2
  exit 1
fi
rm -rf "$out"
mkdir -p "$out"
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
GOBIN=$tools GOFLAGS=-trimpath go install "$bill"
here=$(go env GOHOSTARCH)
build "$here" "$tools/synthbot"

for arch; do
  name=synthbot_${version}_linux_$arch
  if [ "$arch" = "$here" ]; then cp "$tools/synthbot" "$out/$name"; else build "$arch" "$out/$name"; fi
  "$tools/cyclonedx-gomod" bin -json -std -noserial -version "$version" -output-version 1.5 "$out/$name" |
    sed -E 's/("timestamp": ").*"/\1'"$(date -u -d "@$SOURCE_DATE_EPOCH" +%FT%TZ)"'"/' >"$out/$name.cdx.json"
  PRINTER=$tools/synthbot packaging/deb.sh "$out/$name" "$out" "$arch" "$version" 2>/dev/null
done
cd "$out"
find . -type f ! -name SHA256SUMS -printf '%P\0' | sort -z | xargs -0 sha256sum >"$tools/SHA256SUMS"
mv "$tools/SHA256SUMS" .
cat SHA256SUMS
