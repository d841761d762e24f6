#!/bin/bash
# Fuzzes each target in turn: fuzz/run.sh [MINUTES for all together, default 6] [TARGET…]
#   fuzz/run.sh --pack DIR   puts the targets and their first inputs into DIR, with a script `run` that needs nothing else:
#                            for a machine without this source (x86-64 Linux, no older glibc than here).
# Needs a nightly compiler and cargo-fuzz (cargo install cargo-fuzz). Findings lie in fuzz/artifacts, where
# `cargo +nightly fuzz run TARGET FILE` repeats them; what is mended becomes a case of conformance/tests/suite/found.rs.
# The same on a stable compiler, without coverage: conformance/tests/fuzz_smoke.rs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if ! cargo +nightly fuzz --version >/dev/null 2>&1; then
    echo 'cargo-fuzz or a nightly compiler is missing: rustup toolchain install nightly && cargo install cargo-fuzz' >&2
    exit 2
fi
# Its own folder: the sanitizer needs everything compiled anew.
unset CARGO_TARGET_DIR
# What gcc marks as out of scope is a table without end to the runtime of LLVM.
export CFLAGS=-fno-sanitize-address-use-after-scope
# libdeflate has a static table of one name in several files, which is no fault.
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_odr_violation=0}"
all=(open container envelope page records end_to_end update xrootd trees)
# No input may take two seconds, no allocation more than what the budget of the targets (fuzz/src/lib.rs) explains.
options=(-timeout=2 -malloc_limit_mb=256 -rss_limit_mb=1024 -max_len=131072 -use_value_profile=1)

seeds() {
    mkdir -p fuzz/corpus/{open,container,envelope,page,records,end_to_end,update,xrootd,trees}
    cp -u conformance/bad/*.root fuzz/corpus/open/
    cp -u conformance/bad_trees/*.root fuzz/corpus/trees/
    data="${TUPELO_DATA:-../shared/data}"
    [ -d "$data" ] && find "$data" -name '*.root' -size -64k -exec cp -u {} fuzz/corpus/open/ \;
    cargo run --quiet --package conformance --example make_seeds -- fuzz/corpus
    cp -u fuzz/corpus/open/* fuzz/corpus/update/
}

if [ "${1:-}" = --pack ]; then
    folder="${2:?where to}"
    seeds
    cargo +nightly fuzz build
    mkdir -p "$folder"
    for target in "${all[@]}"; do cp "fuzz/target/x86_64-unknown-linux-gnu/release/$target" "$folder/"; done
    cp -r fuzz/corpus "$folder/"
    {
        echo '#!/bin/bash'
        echo '# Fuzzes each target for so many minutes, one job a core: ./run MINUTES [TARGET…]. Findings: artifacts/TARGET-*'
        echo 'export ASAN_OPTIONS=detect_odr_violation=0'
        echo 'cd "$(dirname "${BASH_SOURCE[0]}")" && mkdir -p artifacts; minutes="${1:?minutes}"; shift'
        echo "[ \$# -gt 0 ] && targets=(\"\$@\") || targets=(${all[*]})"
        echo 'for target in "${targets[@]}"; do'
        echo "    ./\"\$target\" corpus/\"\$target\" -artifact_prefix=artifacts/\"\$target\"- -max_total_time=\$((60 * minutes)) \\"
        echo "        ${options[*]} -fork=\"\$(nproc)\" -ignore_crashes=1"
        echo 'done'
        echo 'ls artifacts'
    } > "$folder/run"
    chmod +x "$folder/run"
    exit
fi

minutes="${1:-6}"
shift || true
[ $# -gt 0 ] && targets=("$@") || targets=("${all[@]}")
seeds
for target in "${targets[@]}"; do
    echo "== $target: $((60 * minutes / ${#targets[@]})) s"
    cargo +nightly fuzz run "$target" -- "${options[@]}" -max_total_time="$((60 * minutes / ${#targets[@]}))"
done
