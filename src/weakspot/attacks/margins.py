"""Losses of classes that compare logits: margin and difference of logits ratio (Croce and Hein 2020, `croce2020`)."""

from torch import Tensor, inf

from weakspot.attacks.losses import Loss

_SMALL = 1e-12


def margin(logits: Tensor, classes: Tensor) -> Tensor:
    """z_y − max_{i≠y} z_i, positive where the class is predicted; shape (samples,)."""
    own = logits.gather(1, classes[:, None])
    return (own - logits.scatter(1, classes[:, None], -inf).amax(1, keepdim=True))[:, 0]


def difference_of_logits(logits: Tensor, classes: Tensor) -> Tensor:
    """DLR = −(z_y − max_{i≠y} z_i) / (z_π1 − z_π3), π the classes in order; not divided where there are two classes."""
    ordered = logits.sort(1, descending=True).values
    spread = ordered[:, 0] - ordered[:, 2] + _SMALL if logits.shape[1] > 2 else 1.0
    return -margin(logits, classes) / spread


def toward(targets: Tensor) -> Loss:
    """Targeted DLR = −(z_y − z_t) / (z_π1 − (z_π3 + z_π4)/2): how far class t is ahead of class y.

    With three classes z_π3 stands for the mean of both, with two nothing is divided.
    """

    def loss(logits: Tensor, classes: Tensor) -> Tensor:
        ordered, count = logits.sort(1, descending=True).values, logits.shape[1]
        spread = ordered[:, 0] - ordered[:, 2 : min(count, 4)].mean(1) + _SMALL if count > 2 else 1.0
        own, other = (logits.gather(1, chosen[:, None])[:, 0] for chosen in (classes, targets))
        return -(own - other) / spread

    return loss
