#!/bin/sh
# Builds and runs the fuzzers: damaged documents and texts against validation, the printer, index keys and the text parser, outside
# of a server, under the address and undefined-behaviour sanitizers, with libbson and a second validation as oracles (see fuzz.c).
# Where there is a server (in the environment of test/env/cluster.sh run), the languages and all else in it, too (see server.sh).
#
#   run.sh [ITERATIONS [SEED [FIRST]]]     a million iterations by default; the seed is printed and repeats the run
#   run.sh smoke                           a short run, the one that make test does
#
# The last line says how it ended; the exit status is 0 when there was no fault. CC chooses the compiler.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
work=${DP_WORK:-$top/build/fuzz}
pg_config=${PG_CONFIG:-pg_config}
iterations=${1:-1000000}
seed=${2:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
if [ "$iterations" = smoke ]; then iterations=100000 seed=${2:-20181211}; fi
pc=$(pkg-config --exists bson2 2>/dev/null && echo bson2 || echo libbson-1.0)
mkdir -p "$work"
cd "$top"
bson=src/bson
bucket=src/types/bucket

# build OUT FILE...
build() {
  out=$work/$1
  shift
  # shellcheck disable=SC2046
  "${CC:-gcc}" -g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all -ffunction-sections -Wl,--gc-sections \
    -fno-strict-aliasing -fwrapv \
    -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers -Wno-clobbered \
    -Isrc -Itest/fuzz -isystem "$("$pg_config" --includedir-server)" -D_GNU_SOURCE \
    $(pkg-config --cflags "$pc" | sed 's/-I/-isystem /g') -o "$out" "$@" \
    -L"$("$pg_config" --pkglibdir)" -L"$("$pg_config" --libdir)" -lpgcommon -lpgport \
    $(pkg-config --libs "$pc") -lm
}

# shellcheck disable=SC2046
build fuzz test/fuzz/fuzz.c test/fuzz/documents.c test/fuzz/keys.c test/fuzz/reference.c test/fuzz/shim.c \
  src/index/key.c src/index/extract.c $bson/path.c $bson/find.c $bson/compare.c $bson/hash.c $bson/number.c \
  $bson/builder.c $bson/reader.c $bson/validate.c $bson/io.c $bson/text_*.c $(grep -l '^dp_decimal128_from_text' $bson/*.c)
build bucket test/fuzz/bucket.c test/fuzz/bucket_shim.c test/fuzz/shim.c \
  $bson/builder.c $bson/reader.c $bson/validate.c $bucket/codec_*.c $bucket/numeric.c $bucket/column.c $bucket/builder.c \
  $bucket/reader.c $bucket/load.c $bucket/whole.c $bucket/kind.c
build accumulate test/fuzz/accumulate.c test/fuzz/bucket_shim.c test/fuzz/shim.c \
  src/mql/accumulate.c src/mql/accumulate_list.c src/mql/accumulate_series.c src/mql/accumulate_state.c src/mql/accumulate_document.c \
  src/mql/expression_result.c src/mql/percentile.c $bson/names.c $bson/bigsum.c $bson/exactsum.c $bson/distinct.c $bson/compare.c $bson/hash.c $bson/number.c $bson/find.c $bson/path.c \
  $bson/builder.c $bson/reader.c $bson/validate.c $(grep -l '^dp_decimal128_from_text' $bson/*.c)
build diff test/fuzz/diff.c test/fuzz/documents.c test/fuzz/shim.c \
  $bson/diff.c $bson/diff_align.c $bson/diff_carry.c $bson/diff_list.c $bson/path.c $bson/find.c $bson/builder.c $bson/reader.c $bson/validate.c
build stats test/fuzz/stats.c test/fuzz/documents.c test/fuzz/shim.c \
  src/index/stats/stats_pack.c $bson/find.c $bson/path.c $bson/builder.c $bson/reader.c $bson/validate.c
export ASAN_OPTIONS=detect_leaks=0 FUZZ_TEXTS="$work/texts"
for room in document value filter update expression schema json; do cat test/fuzz/corpus/$room/*.txt; done >"$FUZZ_TEXTS"
"$work/stats" "$((iterations / 20))" "$seed" ${3:+"$3"}
"$work/diff" "$((iterations / 20))" "$seed" ${3:+"$3"}
"$work/accumulate" "$((iterations / 100))" "$seed" ${3:+"$3"}
"$work/bucket" "$((iterations / 100))" "$seed" ${3:+"$3"}
"$work/fuzz" "$iterations" "$seed" ${3:+"$3"}
if [ -n "${PGHOST:-}" ]; then test/fuzz/server.sh "$((iterations / 100))" "$seed"; fi
