"""Values on their way from a GPU: what is written, when, and in which order; without one, a stand-in is late."""

import numpy as np
import pytest
import torch

from weakspot.core import rows
from weakspot.core.async_copy import AsyncCopy
from weakspot.core.rows import RowTable, RowWriter


class Late(AsyncCopy):
    """Comes only when it is waited for."""

    def __init__(self, values):
        super().__init__({name: np.array(part) for name, part in values.items()})
        self._true = {name: part.copy() for name, part in self.arrays.items()}
        for part in self.arrays.values():
            part[:] = 0

    @property
    def copied(self):
        return True

    def here(self):
        return False

    def wait(self):
        return self._true


def test_what_lies_here_is_not_copied():
    values, tensor = np.arange(3), torch.arange(3)
    fetched = AsyncCopy({"a": values, "b": tensor, "c": [1, 2, 3]})
    assert np.shares_memory(fetched.wait()["a"], values) and np.shares_memory(fetched.wait()["b"], tensor.numpy())
    assert fetched.here() and not fetched.copied and fetched.arrays["c"].tolist() == [1, 2, 3]


def test_half_precision_numpy_does_not_know_comes_as_float32():
    fetched = AsyncCopy({"a": torch.tensor([1.5], dtype=torch.bfloat16)})
    assert fetched.arrays["a"].dtype == np.float32 and fetched.wait()["a"].tolist() == [1.5]


def test_rows_that_come_late_are_written_in_order_and_wait_for_few(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "AsyncCopy", Late)
    writer = RowWriter(tmp_path, "kept")
    for place in range(7):
        writer.append(np.array([place]), {"value": np.array([10 * place])})
    assert len(writer._fetched) == rows._ON_THEIR_WAY
    writer.finish()
    table = RowTable("kept", [tmp_path], tmp_path / "scratch", [str(n) for n in range(7)])
    assert table["value"].tolist() == [0, 10, 20, 30, 40, 50, 60] and table["sample"].tolist() == list(range(7))


def test_rows_that_their_probe_may_change_are_written_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "AsyncCopy", Late)
    writer = RowWriter(tmp_path, "kept")
    writer.append(np.array([0]), {"value": np.array([1])})
    monkeypatch.setattr(rows, "AsyncCopy", AsyncCopy)
    own = np.array([2])
    writer.append(np.array([1]), {"value": own})
    own[:] = 9
    writer.finish()
    assert RowTable("kept", [tmp_path], tmp_path / "scratch", ["0", "1"])["value"].tolist() == [1, 2]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_values_of_a_gpu_come_with_copies_of_the_others():
    own = np.arange(4)
    fetched = AsyncCopy({"gpu": torch.arange(4, device="cuda"), "cpu": own})
    own[:] = 7
    assert fetched.copied
    assert {name: part.tolist() for name, part in fetched.wait().items()} == {"gpu": [0, 1, 2, 3], "cpu": [0, 1, 2, 3]}
