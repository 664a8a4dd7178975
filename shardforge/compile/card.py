"""The dataset card: ``README.md`` of a compiled dataset."""

from __future__ import annotations

from shardforge.shards.manifest import Manifest

_MEANING = {
    "image": "the image",
    "volume": "the volume, [Z, Y, X]",
    "class": "class id, an ASCII integer",
    "mask": "label picture, sized and placed like the image",
    "picture": "further picture, RGB",
    "text": "text, UTF-8",
    "json": "further data, JSON",
    "array": "numpy array",
}


def card(manifest: Manifest) -> str:
    """The card as Markdown; its front matter tells Hugging Face ``datasets`` which shards belong to which split."""
    recipe = manifest.recipe
    size = recipe["size"] if isinstance(recipe["size"], int) else "x".join(map(str, recipe["size"]))
    lines = ["---", "tags:", "- webdataset", "configs:", "- config_name: default", "  data_files:"]
    for name in _in_order(manifest):
        lines += [f"  - split: {name}", f"    path: {name}-*.tar"]
    lines += [
        "---",
        "",
        "# Compiled dataset",
        "",
        f"WebDataset shards in the format {manifest.format}, made by shardforge. Every sample has these members:",
        "",
        "| member | what it is |",
        "| --- | --- |",
    ]
    for name, info in manifest.fields.items():
        lines.append(f"| `{name}` | {_MEANING[info.kind]}{' (optional)' if info.optional else ''} |")
    lines += ["", "| split | samples | failed | filtered | skipped | shards | bytes |", "| --- |" + " ---: |" * 6]
    for name in _in_order(manifest):
        split = manifest.splits[name]
        counts = (split.samples, split.failed, split.filtered, split.skipped, len(split.shards), split.bytes)
        lines.append(f"| {name} | " + " | ".join(f"{count:,}" for count in counts) + " |")
    lines += [
        "",
        f"Images: {manifest.channels} channel{'s' * (manifest.channels != 1)}, format `{recipe['format']}`.",
        f"Depth: {manifest.depth} bits.",
        f"Resize: `{recipe['resize']}`, size {size}, filter `{recipe['resampler']}`.",
        "",
        "`dataset.json` is the manifest with checksums, pixel statistics and the complete recipe. The parquet file",
        "beside each shard has one row per planned item, also for those that failed.",
        "",
    ]
    return "\n".join(lines)


def _in_order(manifest: Manifest) -> list[str]:
    return sorted(manifest.splits, key=lambda name: (name != "train", name))
