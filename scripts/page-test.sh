#!/usr/bin/env bash
# Tests the admin page in a real browser: playwright-core and axe-core from npm, in
# the versions of the lock file, and Debian's Chromium. If they are not available, it
# prints a note and is skipped. SCREENS=folder writes screenshots; BINARY is an
# existing synthbot.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
here=$root/scripts/page-test
lock=$(sha256sum "$here/package-lock.json" | cut -c1-16)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/synthbot/page-test-$lock

skip() {
  echo "skipped: $1, so the admin page cannot be tested in a browser" >&2
  exit
}

if ! command -v chromium >/dev/null && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -q && timeout 240 apt-get install -qy --no-install-recommends chromium; } >/dev/null 2>&1 || true
fi
command -v chromium >/dev/null || skip 'Chromium is missing'
command -v node >/dev/null && command -v npm >/dev/null || skip 'Node or npm is missing'

if [ ! -e "$folder/installed" ]; then
  rm -rf "$folder"
  mkdir -p "$folder"
  cp "$here/package.json" "$here/package-lock.json" "$folder/"
  timeout 120 npm ci --prefix "$folder" --ignore-scripts --no-audit --no-fund --loglevel=error >&2 || skip 'npm cannot install playwright-core'
  touch "$folder/installed"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -n "${BINARY:-}" ]; then
  cp "$BINARY" "$work/synthbot"
else
  (cd "$root" && CGO_ENABLED=0 go build -o "$work/synthbot" ./cmd/synthbot)
fi
cp "$root/persona/aria.toml" "$work/aria.toml"
NODE_MODULES=$folder/node_modules WORK=$work CHROMIUM=$(command -v chromium) timeout --kill-after=10 600 node "$here/page.mjs"
