# shellcheck shell=bash
# Sourced by the scripts beside it: one function that makes sure Debian packages are installed.

# ensure_packages NAME...: installs what is missing with apt-get, or says exactly what to install and returns 1.
ensure_packages() {
  local missing=() name as_root=()
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "error: please install what these Debian packages contain, then run this again: $*" >&2
    return 1
  fi
  for name in "$@"; do
    if [[ "$(dpkg-query --show --showformat='${db:Status-Status}' "$name" 2>/dev/null)" != installed ]]; then
      missing+=("$name")
    fi
  done
  if ((${#missing[@]} == 0)); then
    return 0
  fi
  if ((EUID != 0)); then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
      as_root=(sudo -n)
    else
      echo "error: please install the missing system packages, then run this again:" >&2
      echo "  sudo apt-get install ${missing[*]}" >&2
      return 1
    fi
  fi
  echo "==> apt-get install ${missing[*]}"
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq </dev/null; then
    echo "warning: apt-get update failed; trying with the package lists that are here" >&2
  fi
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 "${missing[@]}" </dev/null >/dev/null
}
