#!/usr/bin/env bash
# The whole line on real data: handwritten digits as PNG class folders become shards, are inspected and verified,
# and train a small network on two ranks. Then a CT study that ships with pydicom becomes three windows as channels.
#   scripts/demo.sh [DIR]      DIR: where the digits and the shards go (default: demo-data in the repository)
set -euo pipefail

scripts="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
root="$(dirname "$scripts")"
data="${1:-$root/demo-data}"

bash "$scripts/setup.sh"
mkdir -p -- "$data"
data="$(cd "$data" && pwd -P)"
export PATH="$root/.venv/bin:$PATH"

# Prints a command as one could type it, then runs it.
run() {
  local word
  printf '\n$'
  for word in "$@"; do
    if [[ "$word" =~ ^[A-Za-z0-9_./=,:-]+$ ]]; then printf ' %s' "$word"; else printf ' %q' "$word"; fi
  done
  printf '\n'
  "$@"
}

SECONDS=0
run python "$scripts/make_digits.py" "$data/digits"
run shardforge build "$data/digits" "$data/shards" --split train=0.8,val=0.2 --format png --channels 1 \
  --resize none --shard-samples 300
run shardforge inspect "$data/shards"
run shardforge inspect "$data/shards" --verify
OMP_NUM_THREADS=1 run torchrun --standalone --nproc_per_node 2 "$root/recipes/train_ddp.py" \
  --data "$data/shards" --target-accuracy 0.95

study="$(python -c 'import pathlib, pydicom; print(pathlib.Path(pydicom.__file__).parent)')"
study="$study/data/test_files/dicomdirtests/98892001"
run shardforge build "$study" "$data/ct" --recipe ct-head --key-file "$data/identity.key"

cat <<SUMMARY

Done in $SECONDS s: 1 797 scans in $data/digits became shards in $data/shards,
every byte was checked, and two ranks trained on them to over 95 % on the validation split.
A CT study became brain, subdural and bone windows in $data/ct, under keyed hashes in place of names.
SUMMARY
