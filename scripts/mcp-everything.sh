#!/usr/bin/env bash
# Installs the reference MCP server, which the tests of plugins/mcp talk to, into
# a cache folder outside of the checkout: exactly what the lock file says, no
# scripts of packages run. Does nothing where it is there already. Prints the
# folder; where there is no npm it says so, and the tests skip.
set -euo pipefail
here=$(cd "$(dirname "$0")/../plugins/mcp/testdata/npm" && pwd)
lock=$(sha256sum "$here/package-lock.json" | cut -c1-16)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/synthbot/mcp-everything-$lock

if [ -e "$folder/installed" ]; then
  echo "$folder"
  exit
fi
if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
  echo 'skipped: Node and npm are not there, so that the reference MCP server cannot be installed' >&2
  exit
fi
rm -rf "$folder"
mkdir -p "$folder"
cp "$here/package.json" "$here/package-lock.json" "$folder/"
npm ci --prefix "$folder" --ignore-scripts --no-audit --no-fund --loglevel=error >&2
touch "$folder/installed"
echo "$folder"
