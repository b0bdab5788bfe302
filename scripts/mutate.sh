#!/bin/sh
# Mutates a package, one change at a time, and prints the changes that its tests do not
# detect: scripts/mutate.sh PACKAGE [FLAG...], with the flags of gremlins. "--diff main"
# mutates only the lines that differ from main.
set -eu
cd "$(dirname "$0")/../$1"
shift
# gremlins compares names of files relative to the package. Its time limit is a multiple of
# one run of the compiled tests, which must not come from the cache; a mutant is also compiled.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=diff.relative GIT_CONFIG_VALUE_0=true GOFLAGS=-count=1
# Pinned here instead of in go.mod, because it is not part of the bot.
exec go run github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0 unleash --timeout-coefficient 60 --output-statuses lt "$@"
