#!/bin/sh
# The binary interface of libqdnn against that of the last release of this minor version, which libqdnn-X.Y.abi holds:
#
#   check.sh COMPILER X.Y            compare; what is added is fine (docs/compatibility.md)
#   check.sh COMPILER X.Y --write    write the file anew, before a release
#
# Types come from debug information, so the public functions are compiled once more with it: driver/ alone, as it
# defines them all. Needs abidw and abidiff (Debian: abigail-tools or libabigail-tools).
set -eu
compiler=$1 version=$2 mode=${3:-}
cd "$(dirname "$0")/../.."
here=tests/abi release=tests/abi/libqdnn-$version.abi
for tool in abidw abidiff; do
    command -v $tool >/dev/null || { echo "skipped: $tool was not found"; exit 0; }
done
[ "$(uname -m)" = x86_64 ] || { echo "skipped: the interface of the last release is that of x86_64"; exit 0; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

$compiler -g -O0 -w -fPIC -shared -fvisibility=hidden -std=c17 -D_POSIX_C_SOURCE=200809L -I. -Iinclude \
    -ffile-prefix-map="$PWD"/= driver/*/*.c -o "$scratch/libqdnn.so" -Wl,-soname,"libqdnn.so.$version" \
    -Wl,--version-script=cmake/qdnn.map
abidw --suppressions $here/public.suppr --drop-undefined-syms --exported-interfaces-only --no-comp-dir-path \
    --no-show-locs --no-corpus-path --no-elf-needed --no-parameter-names --type-id-style hash \
    --out-file "$scratch/now.abi" "$scratch/libqdnn.so"
if [ "$mode" = --write ]; then
    mv "$scratch/now.abi" "$release"
    echo "$release is written"
    exit
fi

compare()
{
    abidiff --no-added-syms --suppressions $here/growth.suppr "$1" "$2"
}

# A comparison that notices nothing would be worthless: a function, a number and a field that differ are found.
differs()
{
    sed "$1" "$release" >"$scratch/other.abi"
    if cmp -s "$release" "$scratch/other.abi" || compare "$release" "$scratch/other.abi" >/dev/null; then
        echo "abidiff does not notice: $1"
        exit 1
    fi
}
differs "/elf-symbol name='qdnnQuantize'/d"
differs "s/name='QDNN_DATA_NF4' value='[0-9]*'/name='QDNN_DATA_NF4' value='99'/"
differs "/class-decl name='qdnnBinding_t'/,/\/class-decl/s/layout-offset-in-bits='64'/layout-offset-in-bits='32'/"

if compare "$release" "$scratch/now.abi"; then
    echo "the interface is that of $version, or has grown"
else
    echo "The interface of $version has changed (docs/compatibility.md). Before the release of $version: $0 COMPILER $version --write"
    exit 1
fi
