"""``SequentialDataset``: tars that can only be read forwards, as a torch ``IterableDataset``."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import cv2
import numpy as np
from torch.utils.data import IterableDataset, get_worker_info

from shardforge.errors import DamagedError, ShardforgeError, StorageError, UsageError
from shardforge.stream.buffer import shuffled
from shardforge.stream.collate import stack, to_torch
from shardforge.stream.epoch import EpochClock, Ticket, iteration_of
from shardforge.stream.members import MemberDecoder, check_names
from shardforge.stream.permute import key_of, permute
from shardforge.stream.pipeline import Callback, generator_at, steps_of
from shardforge.stream.ranks import Ranks
from shardforge.stream.sample import OnError, Sample
from shardforge.stream.slots import FreshSlots
from shardforge.stream.tally import ErrorTally
from shardforge.stream.tar_stream import RawSample, read_samples
from shardforge.stream.urls import Urls, expand

BUFFER = 1000
"""Samples in the shuffle buffer with ``shuffle=True``."""


class SequentialDataset(IterableDataset[Any]):
    """Samples or batches from tars without an index: pipes, web servers, anything that can only be read forwards.

    The classical WebDataset reader, for data that leave no choice; where the tars are files, ``shardforge index`` and
    ``ShardDataset`` give every sample exactly once, mix better and resume. Here every epoch shuffles the shards by
    (seed, epoch), deals them out to ranks and their workers, and mixes samples in a buffer. How many samples a rank
    gets depends on its shards, so ranks that wait for each other (DDP) need ``steps_per_epoch``.

    **A URL that begins with ``pipe:`` is run as a shell command**, and http and other schemes start a helper program
    (curl, gsutil): never take URLs from anybody you would not let run commands.

    Args:
        urls: a path or URL, or several: braces (``train-{000..099}.tar``) are expanded, local patterns
            (``data/*.tar``) too; ``http(s)://``, ``pipe:COMMAND``, and whatever else ``webdataset`` opens.
        shuffle: True: shards, and samples in a buffer of :data:`BUFFER`; an int: a buffer of so many, which holds
            their undecoded bytes; False: everything as it comes.
        seed: of the order and of all transforms.
        fields: ``image``, ``label`` (the member ``cls``, int64), ``key``, or the suffix of any member: ``txt``,
            ``json``, ``npy``, further pictures (a grey ``png`` is a mask, uint8 or uint16 [H, W]; any other picture
            uint8 [H, W, 3] in RGB order); an unknown one is given as bytes.
        transform: one callable or a list, applied to the image, NumPy uint8 (uint16 with ``depth=16``) [H, W, C] in
            RGB order. One with a parameter ``generator`` is given a ``numpy.random.Generator`` that depends on
            (seed, epoch, shard, key, how often the sample was met in this epoch) alone.
        batch_size: rows of a batch, for ``DataLoader(batch_size=None)``; None: samples are given one by one. Without
            ``steps_per_epoch`` the last batch of every worker may be shorter.
        steps_per_epoch: batches (without ``batch_size``: samples) that every rank gives in an epoch, over all its
            workers. Shares that are too small are read again, from larger ones the rest is left out. Also gives the
            dataset its ``len``.
        rank, world_size: found when needed unless given (torch.distributed, then RANK and WORLD_SIZE, else 0 of 1).
        on_error: what happens to a sample that cannot be decoded, and to the rest of a shard that breaks off or
            cannot be opened. ``raise``, or ``mask``: skipped, counted by :attr:`masked_errors`, logged once for each
            cause.
        image: suffix of the member that holds the image; None: the first of jpg, jpeg, png, webp and npy.
        channels, depth: of the images given: 1 or 3; 8 or 16 bits.
        as_tuple: give tuples in the order of ``fields`` instead of dicts.
        transform_sample: one callable or a list, applied after ``transform`` to the whole sample; returns a mapping.

    Yields:
        As ``ShardDataset``: dicts (or tuples) of tensors, texts and plain values; batches have one more dimension.

    Raises:
        UsageError: an argument makes no sense, or there are fewer shards than workers of all ranks together.
        StorageError: a shard cannot be opened or read.
        DamagedError: a shard or sample is broken, or none of a worker's shards holds a sample (with ``mask`` and
            without ``steps_per_epoch`` only if nothing was masked there).
    """

    def __init__(
        self,
        urls: Urls,
        *,
        shuffle: bool | int = True,
        seed: int = 0,
        fields: Sequence[str] = ("image", "label"),
        transform: Callback | Sequence[Callback] | None = None,
        batch_size: int | None = None,
        steps_per_epoch: int | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        on_error: OnError = "raise",
        image: str | None = None,
        channels: int = 3,
        depth: int = 8,
        as_tuple: bool = False,
        transform_sample: Callback | Sequence[Callback] | None = None,
    ) -> None:
        super().__init__()
        if on_error not in ("raise", "mask"):
            raise UsageError(f"on_error={on_error!r}", todo="Choose 'raise' or 'mask'.")
        for name, value in (("batch_size", batch_size), ("steps_per_epoch", steps_per_epoch)):
            if value is not None and (not isinstance(value, int | np.integer) or value < 1):
                raise UsageError(f"{name}={value!r}: a whole number, at least 1")
        if not isinstance(seed, int | np.integer) or seed < 0:
            raise UsageError(f"seed={seed!r}: a whole number, not negative")
        if not isinstance(shuffle, bool) and shuffle < 1:
            raise UsageError(f"shuffle={shuffle}: a buffer holds at least 1 sample")
        self.urls = expand(urls)
        self._buffer = (BUFFER if shuffle else 0) if isinstance(shuffle, bool) else int(shuffle)
        self._seed, self._batch_size, self._steps = int(seed), batch_size, steps_per_epoch
        self._ranks, self._on_error, self.as_tuple = Ranks.of(rank, world_size), on_error, as_tuple
        self.names = check_names(fields)
        self._decoder = MemberDecoder(self.names, image, channels, depth)
        self._image_steps, self._sample_steps = steps_of(transform), steps_of(transform_sample)
        self._tally, self._clock = ErrorTally(), EpochClock()
        self._begun = self._masked_here = 0
        if world_size is not None:
            # In the training process, where the message stands alone; how many workers there are only they know.
            self._check_shares(world_size, 1)

    @property
    def masked_errors(self) -> int:
        """Samples and rests of shards so far that were skipped (``on_error="mask"``), over all workers."""
        return self._tally.total

    @property
    def epoch(self) -> int:
        """The epoch that the next iteration reads."""
        return self._clock.begin().epoch

    def set_epoch(self, epoch: int) -> None:
        """The next iteration reads ``epoch`` (0 … 2^28 - 1), in all workers."""
        self._clock.set(epoch)

    def __len__(self) -> int:
        """Steps per rank and epoch.

        Raises:
            TypeError: without ``steps_per_epoch`` nobody knows.
        """
        if self._steps is None:
            raise TypeError("a SequentialDataset has a length only with steps_per_epoch")
        return self._steps

    def __iter__(self) -> Iterator[Any]:
        self._begun += 1
        worker = get_worker_info()
        if worker is None:
            return self._epoch(self._clock.begin(), 0, 1)
        # OpenCV's own threads would only fight with the other workers.
        cv2.setNumThreads(0)
        iteration = iteration_of(worker.seed - worker.id, self._begun)
        return self._epoch(self._clock.begin(iteration), worker.id, worker.num_workers)

    def _epoch(self, ticket: Ticket, worker: int, workers: int) -> Iterator[Any]:
        samples = self._samples(ticket.epoch, worker, workers)
        given = samples if self._batch_size is None else self._batches(samples)
        # As in ShardDataset, worker w of W makes the steps w, w + W, w + 2W …
        limit = None if self._steps is None else len(range(worker, self._steps, workers))
        for content in itertools.islice(given, limit):
            yield self._as_chosen(content)
        if worker == 0:
            self._clock.end(ticket)

    def _batches(self, samples: Iterator[Sample]) -> Iterator[dict[str, Any]]:
        while rows := list(itertools.islice(samples, self._batch_size)):
            yield {name: stack(name, rows, FreshSlots()) for name in rows[0]}

    def _samples(self, epoch: int, worker: int, workers: int) -> Iterator[Sample]:
        """One pass over this worker's shards, or endless ones with ``steps_per_epoch``."""
        shards = self._shards(epoch, worker, workers)
        for cycle in itertools.count():
            made, masked = 0, self._masked_here
            for raw in self._raw(shards, epoch, cycle, worker):
                sample = self._made(raw, epoch, cycle, worker)
                if sample is not None:
                    made += 1
                    yield sample
            # What was masked has been told; nothing at all has not, and with a number of steps there is no end.
            if not made and (self._steps is not None or self._masked_here == masked):
                what = f"none of the {len(shards)} shards of this share holds a sample that can be read"
                raise DamagedError(what, where=shards[0])
            if self._steps is None:
                return

    def _shards(self, epoch: int, worker: int, workers: int) -> list[str]:
        rank, world = self._ranks.find()
        self._check_shares(world, workers)
        return self._in_order(self.urls, epoch, "all")[rank::world][worker::workers]

    def _check_shares(self, world: int, workers: int) -> None:
        needed = world * workers
        if len(self.urls) < needed:
            each = f" with {workers} workers each" if workers > 1 else ""
            ranks = f"{world} ranks{each}" if world > 1 else f"{workers} workers"
            raise UsageError(
                f"{len(self.urls)} shards for {ranks}: {needed - len(self.urls)} of them would get no data",
                where=self.urls[0],
                todo="Use fewer workers or more shards. Indexed tars (`shardforge index`) are shared out by samples.",
            )

    def _in_order(self, urls: Sequence[str], *purpose: object) -> list[str]:
        if not self._buffer:
            return list(urls)
        numbers = np.arange(len(urls), dtype=np.uint64)
        keys = np.full(len(urls), key_of("shards", self._seed, *purpose))
        return [urls[number] for number in permute(numbers, len(urls), keys).tolist()]

    def _raw(self, shards: Sequence[str], epoch: int, cycle: int, worker: int) -> Iterator[RawSample]:
        rank, _ = self._ranks.find()
        urls = shards if cycle == 0 else self._in_order(shards, epoch, rank, worker, cycle)
        found = read_samples(urls, lambda error: self._bad(error, worker))
        if not self._buffer:
            return found
        key = int(key_of("buffer", self._seed, epoch, rank, worker, cycle))
        return shuffled(found, self._buffer, np.random.Generator(np.random.Philox(key)))

    def _bad(self, error: ShardforgeError, worker: int) -> None:
        if self._on_error == "raise":
            raise error
        self._masked_here += 1
        self._tally.add(worker, error.what, error)

    def _made(self, raw: RawSample, epoch: int, cycle: int, worker: int) -> Sample | None:
        try:
            sample: Mapping[str, Any] = self._decoder.values(raw)
        except (DamagedError, StorageError) as error:
            # What a sample lacks because its shard broke off is counted with the shard.
            if "__cut__" not in raw:
                self._bad(error, worker)
            return None
        if not self._image_steps and not self._sample_steps:
            return dict(sample)
        place = int(key_of("place", raw["__url__"], raw["__key__"], cycle))
        generator = generator_at(self._seed, epoch, place)
        values = dict(sample)
        if "image" in values:
            for step in self._image_steps:
                values["image"] = step(values["image"], lambda: generator)
        for step in self._sample_steps:
            values = step(values, lambda: generator)
            if not isinstance(values, Mapping):
                raise UsageError(f"transform_sample returned {type(values).__name__}, not the sample's mapping")
        return dict(values)

    def _as_chosen(self, content: dict[str, Any]) -> Any:
        values = content if self._batch_size is not None else {name: to_torch(v) for name, v in content.items()}
        if not self.as_tuple:
            return values
        missing = [name for name in self.names if name not in values]
        if missing:
            raise UsageError(f"transform_sample left out {missing[0]!r}, which is one of the fields")
        return tuple(values[name] for name in self.names)
