#!/usr/bin/env bash
# Makes an archive for each system: scripts/archives.sh [FOLDER [SYSTEM...]]
# FOLDER (dist) gets synthbot_VERSION_SYSTEM.tar.gz: the stripped binary of the working tree, licence, README, example
# of the configuration, and for linux the systemd units. A SYSTEM is linux-amd64, linux-arm64, linux-armv7,
# darwin-amd64 or darwin-arm64; without any, all of them.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "${1:-dist}")
shift $(($# > 0 ? 1 : 0))
[ $# -gt 0 ] || set -- linux-amd64 linux-arm64 linux-armv7 darwin-amd64 darwin-arm64
version=${VERSION:-$(git describe --tags --always --dirty 2>/dev/null || echo dev)}
commit=${COMMIT:-$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

for system; do
  os=${system%%-*} arch=${system#*-}
  name=synthbot_${version}_$system
  mkdir "$work/$name"
  CGO_ENABLED=0 GOOS=$os GOARCH=${arch%v7} GOARM=7 make --no-print-directory build \
    OUT="$work/$name/synthbot" VERSION="$version" COMMIT="$commit"
  cp LICENSE README.md config.example.toml "$work/$name"
  [ "$os" != linux ] || cp -r systemd "$work/$name"
  rm -f "$work/$name"/systemd/*.go "$work/$name"/systemd/template.sh
  tar -C "$work" --owner=0 --group=0 --sort=name -czf "$out/$name.tar.gz" "$name"
  rm -r "${work:?}/$name"
  stat -c '%n %s bytes' "$out/$name.tar.gz"
done
