#!/usr/bin/env bash
# Makes one Debian package: packaging/deb.sh BINARY FOLDER ARCH VERSION
# BINARY is for ARCH (amd64, arm64). The program in $PRINTER (default: BINARY) prints
# the manual and the completions, and must run on this machine. EXAMPLE is the
# configuration to ship. SOURCE_DATE_EPOCH is the date of all files.
set -euo pipefail
cd "$(dirname "$0")/.."

nfpm=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.0
binary=$1 out=$2 ARCH=$3 version=$4
printer=${PRINTER:-$binary}
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct 2>/dev/null || date +%s)}"

# deb_version turns "v1.2.0-rc.1" into "1.2.0~rc.1", which sorts before 1.2.0, and
# the `git describe` of a commit after a release into "1.2.0+5.gabc". Other names,
# such as a commit's hash, sort before all versions, by date.
deb_version() {
  local date
  date=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d%H%M%S)
  sed -E "s/-dirty\$/+dirty/; s/-([0-9]+)-(g[0-9a-f]+)/+\1.\2/; s/-/~/g; /^v?[0-9]+\./!s/^/0~$date./; s/^v//" <<<"$1"
}

DEB_VERSION=$(deb_version "$version")
STAGE=$(mktemp -d)
trap 'rm -rf "$STAGE"' EXIT
cp "$binary" "$STAGE/synthbot"
cp systemd/synthbot.service systemd/synthbot@.service systemd/tools.conf "$STAGE/"
cp packaging/synthbot.sysusers "$STAGE/synthbot.conf"
cp "${EXAMPLE:-config.example.toml}" "$STAGE/config.toml"
cp LICENSE "$STAGE/copyright"
"$printer" manual | gzip -9n >"$STAGE/synthbot.1.gz"
for shell in bash zsh fish; do
  "$printer" completion "$shell" >"$STAGE/synthbot.$shell"
done
find "$STAGE" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +

mkdir -p "$out"
export ARCH DEB_VERSION STAGE SOURCE_DATE_EPOCH
package=$out/synthbot_${DEB_VERSION}_$ARCH.deb
go run "$nfpm" package --config packaging/nfpm.yaml --packager deb --target "$package" >&2
echo "$package"
