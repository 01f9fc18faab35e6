# Sourced by the commands beside it, after `set -euo pipefail`: what they need of the machine.
# Whatever is there already is left alone, so that a second run asks no network for anything.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/build/venv
python=""  # the interpreter to use, once set_up_python or find_python has run
modules="altair elftools jinja2 numpy pydantic rich scipy vl_convert"  # what the commands import; tests need more

export PYTHONPYCACHEPREFIX=$root/build/pycache  # no compiled Python beside its source
unset PYTHONDONTWRITEBYTECODE                   # or each call would compile every module again: a second

# The CUDA toolkit's packages leave nvcc outside PATH.
if ! command -v nvcc >/dev/null && [[ -x ${CUDA_HOME:-/usr/local/cuda}/bin/nvcc ]]; then
  export PATH="$PATH:${CUDA_HOME:-/usr/local/cuda}/bin"
fi

say() { printf '==> %s\n' "$*"; }

die() {
  printf '%s: error: %s\n' "${0#"$root"/}" "$*" >&2
  exit 2
}

gpu_answers() { [[ $(nvidia-smi -L 2>/dev/null) == *"GPU "* ]]; }

# Prints the GPUs of this machine, or of CUDA_VISIBLE_DEVICES, for ctest --resource-spec-file: together
# they take as many tests at a time as there are cores.
gpu_spec() {
  local gpus slots
  IFS=, read -ra gpus <<<"${CUDA_VISIBLE_DEVICES:-$(nvidia-smi -L | sed -n 's/^GPU \([0-9]*\):.*/\1/p' | paste -sd,)}"
  slots=$((($(nproc) + ${#gpus[@]} - 1) / ${#gpus[@]}))
  printf '{"version": {"major": 1, "minor": 0}, "local": [{"gpus": ['
  printf '{"id": "%s", "slots": '"$slots"'}, ' "${gpus[@]}" | sed 's/, $//'
  printf ']}]}\n'
}

has_header() { printf '#include <%s>\n' "$1" | "${CXX:-g++}" -E -x c++ - >/dev/null 2>&1; }

# Prints the names of the Debian packages whose content is not on this machine, however it came.
# Argument: the preset; gpu needs less.
missing_packages() {
  command -v cmake >/dev/null || echo cmake
  command -v ninja >/dev/null || echo ninja-build
  command -v git >/dev/null || echo git
  command -v "${CXX:-g++}" >/dev/null || echo g++
  has_header gtest/gtest.h || echo libgtest-dev
  has_header benchmark/benchmark.h || echo libbenchmark-dev
  if [[ $1 != gpu ]]; then
    has_header boost/context/fiber.hpp || echo libboost-context-dev
    command -v clang++ >/dev/null || echo clang  # compiles the counted kernels
    # Netlib's tests of SGEMM
    [[ -z ${TILEGATE_THOROUGH:-} ]] || compgen -G '/usr/lib/*/blas/xblat3s' >/dev/null || echo libblas-test
  fi
  python3 -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
}

# Installs what missing_packages names for a preset. Nothing happens where nothing is missing.
set_up_packages() {
  mkdir -p "$root/build" 2>/dev/null && [[ -w $root/build ]] ||
    die "$root/build cannot be written: is the checkout read-only?"
  local missing as_root=()
  mapfile -t missing < <(missing_packages "$1")
  if ((${#missing[@]} == 0)); then return; fi
  local install="apt-get install -y --no-install-recommends ${missing[*]}"
  [[ -n ${TILEGATE_NO_INSTALL:-} ]] && die "missing, and not to be installed: ${missing[*]}"
  command -v apt-get >/dev/null ||
    die "missing: ${missing[*]} (Debian's names); this machine has no apt-get, install them by hand"
  if [[ $(id -u) != 0 ]]; then
    # A sudo that would ask for a password needs a terminal.
    sudo -n true 2>/dev/null || { command -v sudo >/dev/null && [[ -t 0 ]]; } ||
      die "missing: ${missing[*]}; neither root nor sudo here, so run as root: $install"
    as_root=(sudo)
  fi
  say "Packages: ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive $install -qq >/dev/null
}

# CMakePresets.json needs CMake 3.25; an older distribution gets it from PyPI, into build/venv.
set_up_cmake() {
  local has
  has=$(cmake --version | sed -n '1s/[^0-9]*//p')
  if [[ $(printf '%s\n' 3.25 "$has" | sort -V | head -n 1) == 3.25 ]]; then return; fi
  [[ $python == "$venv/bin/python" ]] || die "CMake $has is too old, 3.25 is needed"
  if [[ ! -x $venv/bin/cmake ]]; then
    [[ -z ${TILEGATE_NO_INSTALL:-} ]] || die "missing, and not to be installed: CMake 3.25 (here: $has)"
    pip_install_locked "$root/ci/cmake.lock"
  fi
  export PATH="$venv/bin:$PATH"
}

venv_is_current() {
  cmp -s "$root/ci/requirements.txt" "$venv/requirements.txt" && "$venv/bin/python" -c '' 2>/dev/null
}

# A folder of Python packages, for a machine that reaches no index: --wheels DIR, as
# TILEGATE_WHEELS=DIR. Sets `arguments` to the other ones.
take_wheels() {
  arguments=()
  while (($#)); do
    case $1 in
      --wheels) (($# > 1)) || die "--wheels needs a folder" && TILEGATE_WHEELS=$2 && shift ;;
      --wheels=*) TILEGATE_WHEELS=${1#--wheels=} ;;
      --) arguments+=("$@") && break ;;
      *) arguments+=("$1") ;;
    esac
    shift
  done
  find_wheels
}

find_wheels() {
  [[ -n ${TILEGATE_WHEELS:-} ]] || return 0
  compgen -G "$TILEGATE_WHEELS/*.whl" >/dev/null || die "no wheels in $TILEGATE_WHEELS"
  TILEGATE_WHEELS=$(cd "$TILEGATE_WHEELS" && pwd)
  export TILEGATE_WHEELS
}

# pip says why it fails; few retries, so that a machine without a network learns it soon.
pip_install() {
  local from=(--retries 2 --timeout 15)
  if [[ -n ${TILEGATE_WHEELS:-} ]]; then from=(--no-index --find-links "$TILEGATE_WHEELS"); fi
  # Python compiles what it imports, a small part of the whole.
  "$venv/bin/python" -m pip install -q --no-compile --disable-pip-version-check "${from[@]}" "$@"
}

# Nothing but the files whose digests the lock file has. Wheels of a folder are the user's own.
pip_install_locked() {
  local hashes=(--require-hashes)
  if [[ -n ${TILEGATE_WHEELS:-} ]]; then hashes=(); fi
  pip_install "${hashes[@]}" -r "$1"
}

make_venv() {
  if [[ -L $venv ]]; then
    # --clear would empty the folder that others use too.
    echo "build/venv is a link to $(readlink "$venv"), which is left alone: bring that up to date, or remove the link" >&2
    return 1
  fi
  python3 -m venv --clear "$venv" || return
  if [[ -n ${TILEGATE_WHEELS:-} ]]; then
    # Whatever the folder lacks may be on this machine already, in whatever version.
    pip_install --no-deps "$TILEGATE_WHEELS"/*.whl &&
      python3 -c 'import site; print(*site.getsitepackages(), sep="\n")' \
        >"$("$venv/bin/python" -c 'import site; print(site.getsitepackages()[0])')/machine.pth" &&
      "$venv/bin/python" -c "import ${modules// /, }" || return
  else
    pip_install_locked "$root/ci/requirements.lock" || return
  fi
  cp "$root/ci/requirements.txt" "$venv/requirements.txt"
}

# Of several commands at once, one makes it.
make_venv_in_turn() {
  local turn made=0
  mkdir -p "$root/build" && exec {turn}<"$root/build"
  flock -n "$turn" || { say "another command is at work in build/; waiting until it has ended" && flock "$turn"; }
  venv_is_current || make_venv || made=$?
  exec {turn}<&-
  return "$made"
}

# Sets `python`: build/venv, made or brought up to date, or else the python3 of this machine where
# that has the modules named as arguments.
set_up_python() {
  python=$venv/bin/python
  if venv_is_current; then return; fi
  local needed="$*" failure="it may not be made (TILEGATE_NO_INSTALL)"
  if [[ -z ${TILEGATE_NO_INSTALL:-} ]]; then
    say "Python packages: build/venv"
    make_venv_in_turn && return
    failure="it could not be made, see above"
  fi
  python=$(command -v python3) && "$python" -c "import sys${needed:+, ${needed// /, }}" 2>/dev/null ||
    die "no build/venv, $failure, and python3 lacks one of: $needed"
  say "No build/venv: $failure. Using $python; tests that need more will say that they are skipped"
}

# Sets `python` to build/venv if it is there, else to python3; installs nothing but wheels at hand.
find_python() {
  python=$venv/bin/python
  if venv_is_current; then return; fi
  if [[ -n ${TILEGATE_WHEELS:-} ]]; then set_up_python $modules && return; fi
  python=$(command -v python3) && "$python" -c '' || die "no python3 that works on this machine"
}

find_wheels
