# shellcheck shell=bash
# Sourced by all scripts here. Needs bash and a Python with venv; makes environments under .venv/.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset PYTHONPATH PYTHONHOME # either could put another stratsynth before the installed one

say() { printf '%s\n' "$*" >&2; }
fail() { say "scripts/$(basename "$0"): $*"; exit 1; }

# The path of the first Python that really runs (a version manager's stub may not), is supported, and has venv.
find_python() {
  local name
  if [ -n "${PYTHON:-}" ]; then set -- "$PYTHON"; else set -- python3.13 python3.12 python3.11 python3; fi
  for name in "$@"; do
    "$name" -c 'import ensurepip, sys, venv; assert (3, 11) <= sys.version_info[:2] <= (3, 13); print(sys.executable)' \
      2>/dev/null && return
  done
  fail "no Python 3.11 to 3.13 with venv among: $*. Install one (Debian: python3-venv), or set PYTHON to its path."
}

# On a terminal pip talks; elsewhere it is heard only when it fails.
run_pip() {
  if [ -t 2 ]; then
    "$env/bin/python" -m pip --disable-pip-version-check "$@" >&2
  elif ! "$env/bin/python" -m pip --disable-pip-version-check --no-input "$@" >"$scratch/pip.log" 2>&1; then
    cat "$scratch/pip.log" >&2
    return 1
  fi
}

# make_env NAME LOCK...: sets $env to .venv/NAME with the locks' packages in it, remade when a lock or the Python changed.
# The mark is written last, so an interrupted installation never counts. On return this process holds the
# environment's lock (where flock exists), so that two runs do not install over each other.
make_env() {
  local lock python wanted locks=("${@:2}")
  locks=("${locks[@]/#/$root/locks/}")
  env=$root/.venv/$1
  python=$(find_python)
  mkdir -p "$root/.venv"
  if command -v flock >/dev/null; then
    exec 9>"$env.lock"
    flock -n 9 || { say "waiting for another run that uses .venv/$1"; flock 9; }
  fi
  wanted=$("$python" -c 'import sys; print(sys.version, sys.base_prefix)' && echo "$root" && cat "${locks[@]}")
  if [ "$wanted" != "$(cat "$env/ready" 2>/dev/null)" ]; then
    say "making .venv/$1: the first run installs the pinned packages, which takes a minute or two"
    rm -rf "$env"
    "$python" -m venv "$env"
    # Wheels only: building a source package would run code that no hash pins. PySpark alone has no wheel: its pinned
    # source is built by the pinned setuptools, last.
    local wheels=() built=()
    for lock in "${locks[@]}"; do
      if [ "$(basename "$lock")" = spark.txt ]; then built+=("$lock"); else wheels+=("$lock"); fi
    done
    # The demonstration uses a small part of what is installed: Python compiles that when it is imported.
    local compile=--compile
    if [ "$1" = demo ]; then compile=--no-compile; fi
    run_pip install --require-hashes --only-binary :all: "${wheels[@]/#/--requirement=}" "$compile"
    if [ ${#built[@]} -gt 0 ]; then
      run_pip install --require-hashes --only-binary :all: --no-binary pyspark --no-build-isolation \
        "${built[@]/#/--requirement=}"
    fi
    printf '%s\n' "$wanted" >"$env/ready"
  fi
}

sources=(pyproject.toml LICENSE stratsynth adapters evaluation)
if [ -f "$root/README.md" ]; then sources+=(README.md); fi

# build_wheel DIR: the wheel, from a clean copy of the sources. The same sources and locks give the same bytes: dates
# and modes of files are the same everywhere, and the packages that build it are pinned.
build_wheel() (
  umask 022
  copy=$(mktemp -d "$scratch/source.XXXXXX")
  (cd "$root" && tar -cf - --exclude=__pycache__ "${sources[@]}") | tar -xf - -C "$copy" --no-same-owner
  find "$copy" -type d -exec chmod 755 {} + -o -exec chmod 644 {} +
  find "$copy" -exec touch -t 202601010000 {} +
  export SOURCE_DATE_EPOCH=1767225600 PYTHONHASHSEED=0 # 1 January 2026; the date of a release is in the changelog
  run_pip wheel --no-deps --no-index --no-build-isolation --wheel-dir "$1" "$copy"
)

# Installs the wheel in $env and keeps it in $env/wheel, unless one of these very sources is there.
install_project() {
  local wanted
  wanted=$(cd "$root" && find "${sources[@]}" -type f ! -path '*/__pycache__/*' -exec cksum {} + | LC_ALL=C sort)
  if [ "$wanted" != "$(cat "$env/installed" 2>/dev/null)" ] || ! [ -d "$env/wheel" ]; then
    rm -rf "$env/installed" "$env/wheel"
    build_wheel "$env/wheel"
    run_pip install --no-deps --no-index --force-reinstall "$env/wheel"/*.whl
    printf '%s\n' "$wanted" >"$env/installed"
  fi
}

# answer_help USAGE [ARGUMENT...]: where an argument asks for help, prints the usage and ends. No environment is made.
answer_help() {
  local argument
  for argument in "${@:2}"; do
    case $argument in -h | --help) printf '%s\n' "$1"; exit ;; esac
  done
}

# answer_help_of MODULE [ARGUMENT...]: the same of a module beside this file, which reads its arguments before it imports
# anything but Python's own library: any supported Python can print its help.
answer_help_of() {
  local argument python
  for argument in "${@:2}"; do
    case $argument in
      -h | --help)
        python=$(find_python)
        PYTHONPATH=$root/scripts "$python" -B -P -S -m "$@"
        exit
        ;;
    esac
  done
}

# run_beside MODULE [ARGUMENT...]: runs a module beside this file, which is not installed, on the wheel installed in $env.
run_beside() {
  install_project
  exec 9>&- # others may run at the same time
  rm -rf "$scratch"
  # A stratsynth/ in the folder we are in is not the installed one, here and in processes that are started; in scripts/
  # there is none.
  export PYTHONPATH=$root/scripts PYTHONSAFEPATH=1
  exec "$env/bin/python" -m "$@"
}
