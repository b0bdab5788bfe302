#!/usr/bin/env bash
# Installs the reference MCP server for the tests of plugins/mcp into a cache folder
# outside of the checkout, with the versions of the lock file and without running
# package scripts. Does nothing if it is already installed. Prints the folder.
# Without npm it prints a note, and the tests are skipped.
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
