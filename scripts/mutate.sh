#!/bin/sh
# Mutates a package or some of its files, and prints the changes that its tests do
# not detect:
#
#   scripts/mutate.sh [-time 10m] [-seed N] [-run REGEXP] [-short=false]
#	    [-at FILE:LINE,...] PACKAGE [FILE...]
#
# Without arguments it mutates the most critical packages, for TIME (10m) each.
set -eu
cd "$(dirname "$0")/.."
tool=$(mktemp)
trap 'rm -f "$tool"' EXIT INT TERM
go build -o "$tool" ./scripts/mutate
if [ $# -gt 0 ]; then
	"$tool" "$@"
	exit
fi
for package in core/turn core/action core/draft memory; do
	"$tool" -time "${TIME:-10m}" "$package"
done
"$tool" -time "${TIME:-10m}" interfaces/telegram send.go intake.go draft.go
"$tool" -time "${TIME:-10m}" interfaces/telegram/botapi
"$tool" -time "${TIME:-10m}" interfaces/discord deliver.go send.go cursor.go draft.go
