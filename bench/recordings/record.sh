#!/usr/bin/env bash
# Records one sitting on this machine's GPU: builds bench, and a copy of it for each mutation.
# Run again, it goes on where it stopped.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: bench/recordings/record.sh SITTING OUT [options]

  SITTING               a name, as in h200-1
  OUT                   the folder for SITTING.json.gz
  --processes N         of the whole suite (default 20)
  --rounds N            of each plant and mutation (default 8)
  --plants RUNG         slow RUNG down by 0.5, 1, 2, 3, 5 and 10 %
  --mutations           build and record bench/recordings/mutations/*.patch too
  --seconds N           stop recording after that many (default 420)
  --work FOLDER         where to build (default build/recordings)
  --cmake ARGUMENT      for cmake; may be given again

Without git history, TILEGATE_COMMIT says which commit this is.
Exit code: 0 complete, 3 processes are left to run.
USAGE
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"
[[ ${1:-} == -h || ${1:-} == --help ]] && usage && exit
(($# >= 2)) || { usage >&2; exit 2; }
sitting=$1 out=$2
shift 2
processes=20 rounds=8 rung="" mutations="" seconds=420 work=$root/build/recordings cmake=()
while (($#)); do
  case $1 in
    --processes) processes=$2 ;;
    --rounds) rounds=$2 ;;
    --plants) rung=$2 ;;
    --mutations) mutations=yes && shift && continue ;;
    --seconds) seconds=$2 ;;
    --work) work=$2 ;;
    --cmake) cmake+=("$2") ;;
    *) usage >&2 && exit 2 ;;
  esac
  shift 2
done

say() { printf '==> %s\n' "$*"; }

# A copy of the sources, so that a mutation never touches the originals.
say "Building bench"
mkdir -p "$work/src" "$out"
cp -a CMakeLists.txt CMakePresets.json kernels bench tests ci "$work/src/"
build() {
  cmake --build "$work/build" --target bench/bench >"$work/build.log" 2>&1 ||
    { tail -n 40 "$work/build.log" >&2 && exit 2; }
}
(cd "$work/src" && cmake --preset gpu -B "$work/build" -DTILEGATE_BUILD_TESTS=OFF \
  -DTILEGATE_INSTALL=OFF "${cmake[@]}") >"$work/configure.log" 2>&1 ||
  { tail -n 40 "$work/configure.log" >&2 && exit 2; }
build
mkdir -p "$work/base"
cp -a "$work/build/bench/bench" "$work/base/bench"
cmake --build "$work/build" --target stages_json >>"$work/build.log" 2>&1  # which rungs are gated
cp -a "$work/build/stages.json" "$work/base/stages.json"

arguments=()
if [[ -n $rung ]]; then
  for percent in 0.5 1 2 3 5 10; do arguments+=(--plant "$rung=$percent"); done
fi
if [[ -n $mutations ]]; then
  for patch in bench/recordings/mutations/*.patch; do
    name=$(basename "$patch" .patch) # RUNG.what_was_done
    say "Building the mutation $name"
    # git looks no further up, where it would take the paths for those of another repository.
    (cd "$work/src" && patch -s -p1 <"$root/$patch" ||
      GIT_CEILING_DIRECTORIES=$work git apply "$root/$patch")
    build
    mkdir -p "$work/$name"
    cp -a "$work/build/bench/bench" "$work/$name/bench"
    cmp -s "$work/$name/bench" "$work/base/bench" && { echo "$name changed nothing" >&2; exit 2; }
    arguments+=(--mutation "${name%%.*}:${name#*.}=$work/$name/bench")
    while read -r file; do cp "$root/$file" "$work/src/$file"; done \
      < <(sed -n 's|^+++ b/||p' "$root/$patch")
  done
fi

say "Recording"
exec ci/gate lab record --sitting "$sitting" --out "$out/$sitting.json.gz" \
  --processes "$processes" --rounds "$rounds" --bench "$work/base/bench" \
  --time-limit "$seconds" "${arguments[@]}"
