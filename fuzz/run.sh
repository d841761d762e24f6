#!/bin/bash
# Fuzzes each target for a while: fuzz/run.sh [SECONDS in all, default 60] [TARGET…]
# Needs a nightly compiler and cargo-fuzz (cargo install cargo-fuzz). Findings lie in fuzz/artifacts, where
# `cargo +nightly fuzz run TARGET FILE` repeats them. The same on a stable compiler: conformance/tests/fuzz_smoke.rs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if ! cargo +nightly fuzz --version >/dev/null 2>&1; then
    echo 'cargo-fuzz or a nightly compiler is missing: rustup toolchain install nightly && cargo install cargo-fuzz' >&2
    exit 2
fi
seconds="${1:-60}"
shift || true
[ $# -gt 0 ] && targets=("$@") || targets=(open page records)
mkdir -p fuzz/corpus/open
cp -u conformance/bad/*.root fuzz/corpus/open/
data="${TUPELO_DATA:-../shared/data}"
[ -d "$data" ] && find "$data" -name '*.root' -size -64k -exec cp -u {} fuzz/corpus/open/ \;
for target in "${targets[@]}"; do
    echo "== $target: $((seconds / ${#targets[@]})) s"
    cargo +nightly fuzz run "$target" -- -max_total_time="$((seconds / ${#targets[@]}))" -timeout=5 \
        -rss_limit_mb=2048 -max_len=65536
done
