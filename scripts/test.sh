#!/usr/bin/env bash
# Sets up, then lint, format, types, import floors and tests.
#   scripts/test.sh [--full] [pytest arguments…]
# Without --full the long suites run as a seeded subset. The exit code is that of the first thing that failed.
set -euo pipefail

scripts="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
root="$(dirname "$scripts")"
python="$root/.venv/bin/python"

selection=(-m "not long" --hypothesis-seed=0)
if [[ "${1:-}" == --full ]]; then
  selection=()
  shift
fi

bash "$scripts/setup.sh"
cd "$root"

failed=()
check() {
  local name="$1"
  shift
  echo "==> $name"
  "$@" || failed+=("$name")
}
check "ruff check" "$python" -m ruff check .
check "ruff format" "$python" -m ruff format --check .
check "mypy" "$python" -m mypy
check "import floors" .venv/bin/lint-imports --no-logo
if ((${#failed[@]})); then
  echo "error: failed before any test ran: ${failed[*]}" >&2
  exit 1
fi

echo "==> pytest"
exec "$python" -m pytest -n 2 --dist loadgroup "${selection[@]}" "$@"
