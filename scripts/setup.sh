#!/usr/bin/env bash
# Creates .venv in the repository root and installs shardforge into it, editable, with what the demo and the
# tests need. Does nothing that is already done. Works from any directory.
set -euo pipefail

scripts="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
root="$(dirname "$scripts")"
venv="$root/.venv"
python="$venv/bin/python"
stamp="$venv/.shardforge-setup"
# shellcheck source=scripts/packages.sh
source "$scripts/packages.sh"

say() { echo "==> $*"; }
fail() {
  echo "error: $*" >&2
  exit 1
}

find_python() {
  local candidate path
  for candidate in python3 python3.13 python3.12 python3.11 python3.14; do
    path="$(command -v "$candidate")" || continue
    if "$path" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$path"
      return 0
    fi
  done
  return 1
}

# A header counts as present when the compiler finds it, whoever installed it.
has_header() { echo "#include <$1>" | cc -x c -include stdio.h -fsyntax-only - 2>/dev/null; }

# pillow-simd is compiled here. Only jpeg and zlib: shardforge decodes everything else with wheels that bring
# their own libraries, so that what can be read does not depend on the headers of this machine.
install_system_packages() {
  local wanted=()
  command -v cc >/dev/null || wanted+=(gcc libc6-dev)
  if ((${#wanted[@]})) || ! has_header jpeglib.h; then wanted+=(libjpeg-dev); fi
  if ((${#wanted[@]})) || ! has_header zlib.h; then wanted+=(zlib1g-dev); fi
  if ! "$base_python" -c 'import ensurepip, venv' 2>/dev/null; then
    wanted+=("python$base_version-venv")
  fi
  if ! "$base_python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))'; then
    wanted+=("python$base_version-dev")
  fi
  if ((${#wanted[@]})); then
    ensure_packages "${wanted[@]}"
  fi
}

# What the installation depends on: the declared packages, where the checkout stands, the interpreter.
fingerprint() {
  { cat "$root/pyproject.toml" "$root/constraints.txt"; echo "$root $base_version $(uname -m)"; } | sha256sum
}

base_python="$(find_python)" || fail "Python 3.11 or newer is needed; found $(python3 --version 2>&1 || true)." \
  "On Debian 12 or Ubuntu 24.04: sudo apt-get install python3 python3-venv python3-dev"
base_version="$("$base_python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
wanted_state="$(fingerprint)"

if [[ -x "$python" && -f "$stamp" && "$(cat "$stamp")" == "$wanted_state" ]] &&
  "$python" -c 'import shardforge' 2>/dev/null; then
  say "set-up is up to date: $venv"
else
  install_system_packages
  # An environment made for another place or interpreter carries paths that no longer hold.
  if [[ -e "$venv" ]] && ! "$python" - "$venv" "$base_version" 2>/dev/null <<'PYTHON'; then
import os, pip, sys
assert os.path.samefile(sys.prefix, sys.argv[1]) and "%d.%d" % sys.version_info[:2] == sys.argv[2]
assert sys.argv[1] in open(os.path.join(sys.argv[1], "bin", "activate")).read()
PYTHON
    say "the environment in .venv is from another place or Python: making it anew"
    rm -rf -- "$venv"
  fi
  if [[ ! -x "$python" ]]; then
    say "creating .venv with $base_python (Python $base_version)"
    "$base_python" -m venv "$venv"
  fi
  rm -f -- "$stamp"
  say "installing shardforge with its dependencies into .venv (minutes the first time: pillow-simd is compiled)"
  (cd "$root" && "$python" -m pip install -qq --progress-bar off --no-input --disable-pip-version-check \
    -c constraints.txt -e '.[dev,demo]' </dev/null) || fail "pip could not install shardforge; its message is above"
  echo "$wanted_state" >"$stamp"
  say "installed"
fi

"$python" - <<'PYTHON' || exit 1
import sys

from shardforge.installation import inspect_pillow

pillow, problems = inspect_pillow()
for problem in problems:
    print(f"error: {problem.what}. {problem.todo}", file=sys.stderr)
if pillow is not None:
    print(f"==> PIL is {pillow.distribution} {pillow.version} with {', '.join(pillow.codecs)}")
sys.exit(bool(problems))
PYTHON
