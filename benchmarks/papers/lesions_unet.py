"""A 3-D U-Net with the dropout of Lambert et al. 2022, and its training: by patches, augmented, resumable."""

import copy
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from lesions_patches import Augmentation, drawn_patch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F

from weakspot.core.digest import digest
from weakspot.core.errors import ConfigError, DataError, SubjectError
from weakspot.core.files import whole_folder
from weakspot.core.index_checks import read_index
from weakspot.core.progress import Progress, Silent
from weakspot.core.sealed import check_sealed, seal
from weakspot.core.source import Source
from weakspot.core.subject import Subject
from weakspot.looks.windows import SlidingWindow

FORMAT, VERSION = "weakspot-unet", 1
_COURSE = "course.json"


class UNet3d(nn.Module):
    """A U-Net (Çiçek et al. 2016) with Dropout3d at the end of each encoding and decoding block (Lambert et al. 2022).

    Inputs (cases, sequences, z, y, x), logits (cases, classes, z, y, x); sizes that the levels do not divide are padded
    with 0 and cut back.

    sequences, classes: how many. widths: channels of each level, the first at full resolution. dropout: of whole
    channels, 0.2 in the paper.
    """

    def __init__(
        self, sequences: int = 1, classes: int = 2, *, widths: Sequence[int] = (16, 32, 64, 128), dropout: float = 0.2
    ):
        super().__init__()
        if len(widths) < 2 or not 0 <= dropout < 1:
            raise ConfigError(f"expected two levels or more and 0 ≤ dropout < 1, got {tuple(widths)} and {dropout}")
        self.encode = nn.ModuleList(map(_block, (sequences, *widths[:-1]), widths, [dropout] * len(widths)))
        self.rise = nn.ModuleList(nn.ConvTranspose3d(w, v, 2, stride=2) for v, w in _pairs(widths))
        self.decode = nn.ModuleList(_block(2 * v, v, dropout) for v, _ in _pairs(widths))
        self.classifier = nn.Conv3d(widths[0], classes, 1)

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits on the grid of the inputs."""
        sides = inputs.shape[2:]
        step = 2 ** len(self.rise)
        values = F.pad(inputs, [pad for side in reversed(sides) for pad in (0, -side % step)])
        levels: list[Tensor] = []
        for block in self.encode:
            values = block(F.max_pool3d(values, 2) if levels else values)
            levels.append(values)
        for rise, block, level in zip(self.rise, self.decode, levels[-2::-1], strict=True):
            values = block(torch.cat([rise(values), level], 1))
        z, y, x = sides
        logits: Tensor = self.classifier(values)[:, :, :z, :y, :x]
        return logits


def _pairs(widths: Sequence[int]) -> list[tuple[int, int]]:
    """Neighbouring levels, the deepest first."""
    return list(zip(widths[-2::-1], widths[:0:-1], strict=True))


def _block(before: int, after: int, dropout: float) -> nn.Sequential:
    layers: list[nn.Module] = []
    for channels in (before, after):
        layers += [nn.Conv3d(channels, after, 3, padding=1), nn.BatchNorm3d(after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Dropout3d(dropout))


@dataclass(frozen=True)
class UNetRecipe:
    """How Lambert et al. 2022 train: Dice and cross-entropy, Adam, patches, augmentation.

    epochs: times over all cases, at most; each gives one patch per epoch. learning_rate: of Adam. batch_size: patches
    per step. patch: its size along z, y, x. around_lesions: the share of patches that hold a lesion's voxel in their
    middle half (the paper does not say; 0.5). augmentation: what is done to patches, None for nothing. patience: with
    validation cases, end after so many epochs without a lower loss on them. seed: of weights, patches and dropout.
    """

    epochs: int = 300
    learning_rate: float = 1e-4
    batch_size: int = 5
    patch: tuple[int, int, int] = (32, 192, 160)
    around_lesions: float = 0.5
    augmentation: Augmentation | None = field(default_factory=Augmentation)
    patience: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.epochs, self.batch_size, self.patience, *self.patch) < 1 or not 0 <= self.around_lesions <= 1:
            raise ConfigError(
                "expected epochs, batch_size, patience and patch of 1 or more and around_lesions from 0 to 1, got "
                f"{self.epochs}, {self.batch_size}, {self.patience}, {self.patch} and {self.around_lesions}"
            )


def dice_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy + 1 − mean over the foreground classes of 2 Σ p t / (Σ p + Σ t), sums over the whole batch.

    logits (cases, classes, …voxels), targets (cases, …voxels) with class numbers.
    """
    share = logits.softmax(1)
    truth = F.one_hot(targets, logits.shape[1]).movedim(-1, 1).to(share.dtype)
    over = [axis for axis in range(logits.ndim) if axis != 1]
    overlap, total = (share * truth).sum(over)[1:], (share + truth).sum(over)[1:]
    dice = (2 * overlap + 1) / (total + 1)  # 1 is added so that a batch without lesions has a gradient and no 0 / 0
    return F.cross_entropy(logits, targets) + 1 - dice.mean()


@dataclass
class Course:
    """How far a training has come: epochs done, the validation loss after each, the weights where it was lowest."""

    epochs: int = 0
    losses: list[float] = field(default_factory=list)
    best: dict[str, Tensor] | None = None

    @property
    def since_best(self) -> int:
        """Epochs since the validation loss was lowest; 0 where there is none."""
        return len(self.losses) - 1 - self.losses.index(min(self.losses)) if self.losses else 0


def train_unet(
    net: nn.Module,
    train: Source,
    *,
    validation: Source | None = None,
    recipe: UNetRecipe | None = None,
    checkpoints: Path | None = None,
    device: str | torch.device = "cpu",
    progress: Progress | None = None,
) -> nn.Module:
    """A trained copy of a segmentation network, in evaluation mode.

    train, validation: cases with masks, of which none may be in both. checkpoints: a folder; interrupted, the same call
    goes on after the last whole epoch and ends with the same weights on the same machine; so does a call for more
    epochs after one for fewer. device: where patches are augmented and the network is trained.
    """
    how, told = recipe or UNetRecipe(), progress or Silent()
    both = sorted(set(train.ids) & set(validation.ids if validation else ()))
    if both:
        raise DataError(
            f"case {both[0]!r} is trained on and judged by: keep the cases apart, see weakspot.lesions.folds"
        )
    twin = copy.deepcopy(net).to(device)
    kept = None if checkpoints is None else checkpoints / _key(net, train, validation, how)
    optimiser = torch.optim.Adam(twin.parameters(), lr=how.learning_rate)
    course = Course() if kept is None else _load(kept, twin, optimiser)
    if course.epochs > how.epochs:
        raise ConfigError(f"{kept} holds {course.epochs} epochs, and {how.epochs} are asked for: give another folder")
    told.begin("training the network", total=how.epochs * len(train.ids), done=course.epochs * len(train.ids))
    try:
        with torch.random.fork_rng(), torch.enable_grad():
            while course.epochs < how.epochs and course.since_best < how.patience:
                _epoch(twin, train, how, course.epochs, optimiser, told)
                _note(course, twin, validation, how)
                if kept is not None:
                    _save(kept, course, twin, optimiser)
    finally:
        told.end()
    twin.load_state_dict(course.best or twin.state_dict())
    return twin.eval()


def _key(net: nn.Module, train: Source, validation: Source | None, how: UNetRecipe) -> str:
    """Names what a training depends on, so that another one never meets its checkpoints."""
    start = Subject(net, task="segmentation").fingerprint()
    lasting = replace(how, epochs=1, patience=1)  # a longer training begins as a shorter one
    return digest([start, train.fingerprint(), validation and validation.fingerprint(), lasting])[:16]


def _epoch(
    net: nn.Module, train: Source, how: UNetRecipe, number: int, optimiser: torch.optim.Optimizer, told: Progress
) -> None:
    """Once over all cases; what is drawn depends on seed and epoch alone, so that a training can go on anywhere."""
    rng = np.random.default_rng([how.seed, number])
    torch.manual_seed(int(rng.integers(2**31)))
    net.train()
    device = next(net.parameters()).device
    for inputs, targets in _batches(train, how, rng, device):
        loss = dice_cross_entropy(net(inputs), targets)
        if not torch.isfinite(loss):
            raise SubjectError(f"the loss is {loss.item()} in epoch {number + 1}: lower the learning rate")
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        told.advance(len(inputs))


def _batches(
    train: Source, how: UNetRecipe, rng: np.random.Generator, device: torch.device
) -> Iterator[tuple[Tensor, Tensor]]:
    """One patch of each case, in random order; cases are read one at a time, and patches augmented on the device."""
    order = rng.permutation(len(train.ids))
    for start in range(0, len(order), how.batch_size):
        drawn = []
        for place in order[start : start + how.batch_size]:
            case = train.read(np.array([place]))
            cut = drawn_patch(case.inputs[0], case.known_targets[0], how.patch, rng, around=how.around_lesions)
            patch = cut[0].to(device), cut[1].to(device)
            drawn.append(patch if how.augmentation is None else how.augmentation(*patch, rng))
        yield torch.stack([image for image, _ in drawn]), torch.stack([mask for _, mask in drawn])


@torch.no_grad()
def _note(course: Course, net: nn.Module, validation: Source | None, how: UNetRecipe) -> None:
    """One more epoch is done; where there are validation cases, their mean loss, by a sliding window."""
    course.epochs += 1
    if validation is None:
        return
    net.eval()
    device, window = next(net.parameters()).device, SlidingWindow(how.patch)
    losses = []
    for place in range(len(validation.ids)):
        case = validation.read(np.array([place]))
        logits = window(net, case.inputs.to(device))
        losses.append(float(dice_cross_entropy(logits, case.known_targets.to(device))))
    course.losses.append(float(np.mean(losses)))
    if course.since_best == 0:
        course.best = _weights(net)


def _weights(net: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().cpu().contiguous().clone() for name, value in net.state_dict().items()}


def _save(folder: Path, course: Course, net: nn.Module, optimiser: torch.optim.Optimizer) -> None:
    """Replace what was kept of the epoch before, whole or not at all."""
    moments = {
        f"{number}.{name}": torch.as_tensor(value).cpu().contiguous()
        for number, state in optimiser.state_dict()["state"].items()
        for name, value in state.items()
    }
    with whole_folder(folder) as scratch:
        save_file(_weights(net), scratch / "weights.safetensors")
        save_file(moments, scratch / "moments.safetensors")
        if course.best is not None:
            save_file(course.best, scratch / "best.safetensors")
        entry = {"format": FORMAT, "version": VERSION, "epochs": course.epochs, "losses": course.losses}
        (scratch / _COURSE).write_text(json.dumps(entry), encoding="utf-8")
        seal(scratch)


def _load(folder: Path, net: nn.Module, optimiser: torch.optim.Optimizer) -> Course:
    """Put network and optimiser where they were; a new course where nothing was kept."""
    if not (folder / _COURSE).exists():
        return Course()
    check_sealed(folder, "delete that folder, and the training begins anew")
    entry = read_index(folder / _COURSE, FORMAT, VERSION, {})
    net.load_state_dict(load_file(folder / "weights.safetensors"))
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in load_file(folder / "moments.safetensors").items():
        number, _, name = key.partition(".")
        state.setdefault(int(number), {})[name] = value
    optimiser.load_state_dict({**optimiser.state_dict(), "state": state})
    best = folder / "best.safetensors"
    return Course(entry["epochs"], entry["losses"], load_file(best) if best.exists() else None)
