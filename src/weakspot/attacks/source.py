"""Attacked data as a source, made once: in memory, or in a folder from which a killed run resumes."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from weakspot._version import __version__
from weakspot.attacks.attack import Attack
from weakspot.attacks.goals import Against
from weakspot.attacks.making import attack_batch
from weakspot.attacks.outcome import Outcome
from weakspot.attacks.store import FolderStore, MemoryStore, Store, damaged_parts
from weakspot.core.digest import class_code, digest, to_json
from weakspot.core.errors import ConfigError
from weakspot.core.files import make_folder, remove_folder, tidy, write_text, writing
from weakspot.core.observation import Batch
from weakspot.core.progress import Progress, Silent
from weakspot.core.sample_check import CheckedSource
from weakspot.core.source import Source, Turn, check_ids, groups_of
from weakspot.core.subject import Subject

_IN_MEMORY = 1 << 30
"""Sets up to so many bytes are kept in memory."""


class Attacked:
    """Another source with every input changed by an attack on a subject.

    ids, targets and order are those of the original, so that Findings of both can be compared sample by sample; the
    metadata gain `attack_success`, `attack_before`, `attack_l0`, `attack_l2` and `attack_linf` (see `Outcome`).

    The whole set is made once, part by part, when it is first read.

    folder: where it is kept, each set below its own name, so that an interrupted call resumes and a later one reads it;
        without one it is kept in memory.
    seed: random numbers depend on it and on the sample's id alone.
    against: what to lead away from, the targets ("target") or the model's own predictions ("prediction").
    batch_size: samples per pass.
    part_size: samples that are kept together. Neither changes what is made.
    """

    def __init__(
        self,
        source: Source,
        subject: Subject,
        attack: Attack,
        *,
        seed: int = 0,
        against: Against = "target",
        folder: Path | None = None,
        batch_size: int = 64,
        part_size: int = 256,
        progress: Progress | None = None,
    ):
        if against not in ("target", "prediction"):
            raise ConfigError(f"against is {against!r}: choose 'target' or 'prediction'")
        if batch_size < 1 or part_size < 1:
            raise ConfigError(f"expected batch_size and part_size ≥ 1, got {batch_size} and {part_size}")
        attack.check(subject)
        check_ids(source)
        self.ids: Sequence[str] = source.ids
        self.groups = groups_of(source)
        self._source, self._subject, self._attack = source, subject, attack
        self._seed, self._against = seed, against
        self._folder, self._batch_size, self._part_size = folder, batch_size, part_size
        self._progress = progress or Silent()
        self._lock = Turn()

    def __getstate__(self) -> dict[str, Any]:
        """The set as it was made, so that it is made once; for that the model is no longer needed."""
        assert self.store is not None
        return {**vars(self), "_subject": None, "_progress": Silent()}

    def fingerprint(self) -> str:
        """Of the original data, the model, the attack with its options and code, the seed, and what is left."""
        return self._made_as if "_store" in vars(self) else digest(self._identity())

    def read(self, positions: np.ndarray) -> Batch:
        """The attacked samples at these places; the first call makes the set."""
        positions = np.asarray(positions)
        original = self._source.read(positions)
        inputs = torch.empty_like(original.inputs)
        numbers = positions // self._part_size
        for number in np.unique(numbers):
            rows = np.flatnonzero(numbers == number)
            chosen = self.store.inputs(int(number))[positions[rows] % self._part_size]
            inputs[torch.from_numpy(rows)] = torch.from_numpy(np.array(chosen)).to(inputs.dtype)
        metadata = {name: column[positions] for name, column in self.outcome.metadata.items()}
        return Batch(original.ids, positions, inputs, original.targets, {**(original.metadata or {}), **metadata})

    @cached_property
    def outcome(self) -> Outcome:
        """What the attack did to each sample; makes the set if that has not been done."""
        parts = [self.store.columns(number) for number in range(self._parts)]
        return Outcome(
            self.ids, {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, self.groups
        )

    @property
    def store(self) -> Store:
        """The finished parts; makes them if that has not been done."""
        with self._lock, torch.inference_mode(False):
            if "_store" not in vars(self):
                self._made_as = digest(self._identity())
                self._store = self._make()
        return self._store

    @property
    def _parts(self) -> int:
        return -(-len(self.ids) // self._part_size)

    def _identity(self) -> Mapping[str, object]:
        return {
            "attack": self._attack,
            "code": class_code(type(self._attack)),
            "seed": self._seed,
            "against": self._against,
            "subject": self._subject.fingerprint(),
            "data": self._source.fingerprint(),
            "weakspot": __version__,
        }

    def _make(self) -> Store:
        store = self._empty_store()
        missing = [number for number in range(self._parts) if not store.has(number)]
        left = sum(len(self._positions(number)) for number in missing)
        label = f"attacking: {type(self._attack).__name__}"
        self._progress.begin(label, total=len(self.ids), done=len(self.ids) - left)
        try:
            with self._subject.borrowed():
                source = self._checked_source()
                for number in missing:
                    store.put(number, *self._made(source, self._positions(number)))
        finally:
            self._progress.end()
        return store

    def _empty_store(self) -> Store:
        if self._folder is not None:
            return self._opened_folder(self._folder)
        one = self._source.read(np.arange(1)).inputs
        size = one.nbytes * len(self.ids)
        if size > _IN_MEMORY:
            raise ConfigError(
                f"the attacked set takes {size / 2**30:.1f} GiB, too much to keep in memory: give folder= where it may "
                "be kept, or attack fewer samples"
            )
        return MemoryStore()

    def _opened_folder(self, folder: Path) -> Store:
        set_folder = folder / digest([self._made_as, self._part_size])[:24]
        with writing(set_folder):
            make_folder(set_folder)
        tidy(set_folder)
        for part, reason in damaged_parts(set_folder):
            self._progress.tell(f"{part} was damaged ({reason}) and is made again")
            remove_folder(part)
        write_text(set_folder / "set.json", to_json(self._identity()))
        return FolderStore(set_folder)

    def _positions(self, number: int) -> np.ndarray:
        start = number * self._part_size
        return np.arange(start, min(start + self._part_size, len(self.ids)))

    def _checked_source(self) -> Source:
        """The original, whose bad samples are refused by name before anything climbs their loss."""
        outputs, _ = self._subject.tried(self._source.read(np.arange(1)).inputs)
        return CheckedSource(self._source, self._subject.task, self._subject.class_count(outputs))

    def _made(self, source: Source, positions: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """One part: its inputs and columns."""
        inputs: list[np.ndarray] = []
        columns: list[dict[str, np.ndarray]] = []
        for start in range(0, len(positions), self._batch_size):
            batch = source.read(positions[start : start + self._batch_size])
            changed, did = attack_batch(self._subject, self._attack, batch, seed=self._seed, against=self._against)
            inputs.append(changed.cpu().numpy())
            columns.append({name: column.cpu().numpy() for name, column in did.items()})
            self._progress.advance(len(batch))
        together = {name: np.concatenate([each[name] for each in columns]) for name in columns[0]}
        return np.concatenate(inputs), together
