"""Weights from files: what fits is loaded, what does not is named, and nothing is executed."""

import os
import pickle
from zipfile import ZIP_DEFLATED

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from tests.models.evil_archives import members_of, zipped
from weakspot.core.errors import ConfigError
from weakspot.models import load_weights, read_weights


@pytest.fixture
def trained():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


@pytest.fixture
def fresh():
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def test_safetensors(trained, fresh, tmp_path):
    save_file(trained.state_dict(), tmp_path / "w.safetensors")
    assert load_weights(fresh, tmp_path / "w.safetensors") == ()
    assert same(trained, fresh)


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".th", ".tar", ".bin", ".ckpt"])
def test_a_state_dict(trained, fresh, tmp_path, suffix):
    torch.save(trained.state_dict(), tmp_path / f"w{suffix}")
    assert load_weights(fresh, str(tmp_path / f"w{suffix}")) == ()
    assert same(trained, fresh)


@pytest.mark.parametrize("name", ["state_dict", "model", "model_state_dict"])
def test_a_checkpoint_with_one_state_dict_is_opened_and_that_is_said(trained, fresh, tmp_path, name):
    torch.save({"epoch": 3, name: trained.state_dict(), "loss": 0.5}, tmp_path / "c.pt")
    assert load_weights(fresh, tmp_path / "c.pt") == (f"the weights are those under '{name}' in c.pt",)
    assert same(trained, fresh)


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "model.", "module.model.", "model._orig_mod."])
def test_a_prefix_that_all_names_bear_is_left_out_and_that_is_said(trained, fresh, tmp_path, prefix):
    torch.save({prefix + name: value for name, value in trained.state_dict().items()}, tmp_path / "w.pt")
    assert load_weights(fresh, tmp_path / "w.pt") == (f"the names of the weights began with '{prefix}': left out",)
    assert same(trained, fresh)


def test_what_a_training_program_keeps_beside_the_model_is_left_out_and_named(trained, fresh, tmp_path):
    weights = {f"model.{name}": value for name, value in trained.state_dict().items()}
    torch.save({"state_dict": {**weights, "loss.weight": torch.ones(3)}}, tmp_path / "w.ckpt")
    (_, left, others) = load_weights(fresh, tmp_path / "w.ckpt")
    assert "began with 'model.'" in left
    assert others == "1 tensors of the file are not the model's and are left out (loss.weight)"
    assert same(trained, fresh)


def test_a_tensor_too_many_without_a_prefix_is_refused(trained, fresh, tmp_path):
    torch.save({**trained.state_dict(), "loss.weight": torch.ones(3)}, tmp_path / "w.pt")
    with pytest.raises(ConfigError, match=r"1 unexpected \(loss.weight\)"):
        load_weights(fresh, tmp_path / "w.pt")


@pytest.mark.parametrize("prefix", ["", "module."])
def test_counters_that_older_files_lack_begin_at_zero(prefix, tmp_path):
    """As torch's own strict loading has it."""
    old, new = (nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2)) for _ in range(2))
    old[1].running_mean += 3
    kept = {prefix + name: value for name, value in old.state_dict().items() if "num_batches" not in name}
    torch.save(kept, tmp_path / "w.pt")
    said = load_weights(new, tmp_path / "w.pt")
    assert said[-1] == "the weights lack 1 × num_batches_tracked, which no prediction uses: they begin at 0"
    assert same(old, new)
    del kept[prefix + "1.running_mean"]
    torch.save(kept, tmp_path / "w.pt")
    with pytest.raises(ConfigError, match=r"1 missing \(1.running_mean\)" if not prefix else "missing"):
        load_weights(new, tmp_path / "w.pt")


def test_a_prefix_is_kept_where_the_model_has_it(tmp_path):
    net = nn.ModuleDict({"module": nn.Linear(2, 2)})
    torch.save(net.state_dict(), tmp_path / "w.pt")
    assert load_weights(net, tmp_path / "w.pt") == ()


def test_several_state_dicts_must_be_told_apart(trained, fresh, tmp_path):
    torch.save({"model": fresh.state_dict(), "ema": trained.state_dict()}, tmp_path / "c.pt")
    with pytest.raises(ConfigError, match="hold 'model', 'ema': say which with weights_entry: model, ema"):
        load_weights(fresh, tmp_path / "c.pt")
    assert load_weights(fresh, tmp_path / "c.pt", entry="ema") == ("the weights are those under 'ema' in c.pt",)
    assert same(trained, fresh)
    with pytest.raises(ConfigError, match="no state dict 'emma'; they hold: model, ema"):
        load_weights(fresh, tmp_path / "c.pt", entry="emma")


def test_one_state_dict_under_an_unusual_name_is_not_taken_silently(trained, fresh, tmp_path):
    torch.save({"optimiser": trained.state_dict(), "step": 1}, tmp_path / "c.pt")
    with pytest.raises(ConfigError, match="say which with weights_entry: optimiser"):
        load_weights(fresh, tmp_path / "c.pt")


def test_what_does_not_fit_is_named(trained, tmp_path):
    state = trained.state_dict()
    state["0.weight"] = state["0.weight"][:2]
    state["9.weight"] = state.pop("2.weight")
    torch.save(state, tmp_path / "w.pt")
    before = {name: value.clone() for name, value in trained.state_dict().items()}
    with pytest.raises(ConfigError) as caught:
        load_weights(trained, tmp_path / "w.pt")
    assert str(caught.value).endswith(
        "do not fit the model: 1 missing (2.weight); 1 unexpected (9.weight); 1 of another shape (0.weight is 2×3 and "
        "should be 4×3)"
    )
    assert all(torch.equal(value, before[name]) for name, value in trained.state_dict().items())


def test_a_long_list_of_what_does_not_fit_is_cut(tmp_path):
    torch.save({f"layer{number}": torch.zeros(1) for number in range(40)}, tmp_path / "w.pt")
    with pytest.raises(ConfigError, match=r"40 unexpected \(layer0, layer1, layer2 …\)"):
        load_weights(nn.Linear(1, 1), tmp_path / "w.pt")


class Malicious:
    """Touches a file when it is unpickled."""

    def __init__(self, path):
        self._path = path

    def __reduce__(self):
        return os.mkdir, (str(self._path),)


@pytest.mark.parametrize(
    "wrap", [lambda bad: bad, lambda bad: {"state_dict": bad}, lambda bad: {"w": torch.zeros(1), "x": bad}]
)
def test_a_checkpoint_that_would_run_code_is_refused_and_nothing_is_executed(tmp_path, wrap):
    target = tmp_path / "touched"
    torch.save(wrap(Malicious(target)), tmp_path / "evil.pt")
    with pytest.raises(ConfigError, match=r"could run code.*refused, nothing was executed.*save_file"):
        read_weights(tmp_path / "evil.pt")
    assert not target.exists()


def test_a_plain_pickle_that_would_run_code_is_refused_too(tmp_path):
    target = tmp_path / "touched"
    (tmp_path / "evil.pth").write_bytes(pickle.dumps(Malicious(target)))
    with pytest.raises(ConfigError, match=r"weights .*evil.pth"):
        read_weights(tmp_path / "evil.pth")
    assert not target.exists()


def test_a_whole_pickled_model_is_refused(trained, tmp_path):
    torch.save(trained, tmp_path / "whole.pt")
    with pytest.raises(ConfigError, match="hold more than tensors"):
        read_weights(tmp_path / "whole.pt")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("w.safetensors", b"nothing", "cannot read weights .*expected a safetensors file, or a state dict"),
        ("w.txt", b"nothing", "expected a safetensors file, or a state dict named .bin, .ckpt, .pt, .pth"),
        ("w.pt", b"", "cannot read weights"),
        ("w.pt", b"PK\3\4garbage", "cannot read weights"),
        ("w.pt", b"\x80\x02garbage", "weights .*w.pt"),
        ("w.pt", b"storages" + b"\0" * 600, "it does not begin as torch.save begins a file"),
    ],
)
def test_files_that_are_no_weights(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError, match=message):
        read_weights(tmp_path / name)


def test_compressed_members_and_names_that_stand_twice_are_refused(trained, tmp_path):
    torch.save(trained.state_dict(), tmp_path / "w.pt")
    members = members_of((tmp_path / "w.pt").read_bytes())
    (tmp_path / "w.pt").write_bytes(zipped({**members, "data/9": b"\0" * 2**20}.items(), compression=ZIP_DEFLATED))
    with pytest.raises(ConfigError, match="is compressed or encrypted, which torch never does"):
        read_weights(tmp_path / "w.pt")
    (tmp_path / "w.pt").write_bytes(zipped([*members.items(), ("data.pkl", b"")]))
    with pytest.raises(ConfigError, match=r"it holds 'data.pkl' twice"):
        read_weights(tmp_path / "w.pt")
    (tmp_path / "w.pt").write_bytes(zipped(members.items()))
    assert read_weights(tmp_path / "w.pt").tensors.keys() == trained.state_dict().keys()


def test_a_state_dict_without_a_zip_still_loads(trained, fresh, tmp_path):
    torch.save(trained.state_dict(), tmp_path / "w.pt", _use_new_zipfile_serialization=False)
    load_weights(fresh, tmp_path / "w.pt")
    assert same(trained, fresh)


def test_a_state_dict_cut_short(trained, tmp_path):
    torch.save(trained.state_dict(), tmp_path / "w.pt")
    (tmp_path / "w.pt").write_bytes((tmp_path / "w.pt").read_bytes()[:-200])
    with pytest.raises(ConfigError, match="cannot read weights"):
        read_weights(tmp_path / "w.pt")


@pytest.mark.parametrize(
    ("stored", "message"), [([1, 2], "hold a list"), ({}, "hold nothing"), ({"a": 1}, "none of them")]
)
def test_what_holds_no_tensors(tmp_path, stored, message):
    torch.save(stored, tmp_path / "w.pt")
    with pytest.raises(ConfigError, match=message):
        read_weights(tmp_path / "w.pt")


def test_no_file(tmp_path):
    with pytest.raises(ConfigError, match="there is no such file"):
        read_weights(tmp_path / "none.pt")
