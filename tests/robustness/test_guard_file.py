"""A guard in files: it says the same with PyTorch alone, and as ONNX with its model; damaged files are refused."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from weakspot.core.errors import ConfigError
from weakspot.robustness import GuardError, export_guard, guarded_model, load_guard, prediction_guard

ALONE = """
import sys
sys.modules["weakspot"] = sys.modules["safetensors"] = sys.modules["numpy"] = None  # any import of them fails
import torch
from guard_runtime import drift_alarm, load_guard
guard = load_guard("guard.safetensors")
inputs = torch.load("inputs.pt")
answer = guard(inputs["inputs"], inputs["outputs"], inputs["features"])
torch.save([answer.wrong_probability, answer.familiarity, answer.verdict, answer.prediction_set], "said.pt")
print(drift_alarm(guard).add([0.5, 0.5]))
"""


@pytest.fixture
def exported(guard_run, tmp_path):
    export_guard(prediction_guard(guard_run), tmp_path / "guard")
    return tmp_path / "guard"


def test_it_says_the_same_with_pytorch_alone(guard_run, shaky, guard_data, exported):
    guarded = guarded_model(guard_run, shaky)
    inputs = guard_data["test"].read(np.arange(40)).inputs
    answer = guarded(inputs)
    taken = []
    layer = dict(guarded.model.named_modules())[guarded.guard.about["layer"]["name"]]
    hook = layer.register_forward_pre_hook(lambda module, given: taken.append(given[0].detach()))
    with torch.no_grad():
        outputs = shaky.model(inputs)
    hook.remove()
    torch.save({"inputs": inputs, "outputs": outputs, "features": taken[0]}, exported / "inputs.pt")
    subprocess.run([sys.executable, "-c", ALONE], cwd=exported, capture_output=True, text=True, timeout=120, check=True)
    said = torch.load(exported / "said.pt")
    expected = [answer.wrong_probability, answer.familiarity, answer.verdict, answer.prediction_set]
    for own, other in zip(said, expected, strict=True):
        np.testing.assert_allclose(own.double(), other.detach().double(), atol=1e-9)


def test_the_json_beside_it_says_what_it_promises(exported):
    about = json.loads((exported / "guard.json").read_text())
    assert about["promise"] == {"aim": "recall", "value": 0.8, "coverage": 0.9}
    assert about["input_shape"] == [1, 8, 8]


def test_an_existing_folder_is_left_alone(guard_run, exported):
    with pytest.raises(ConfigError, match="exists already"):
        export_guard(prediction_guard(guard_run), exported)


@pytest.mark.parametrize("damage", [b"", b"\xff" * 40, "cut", "place", "format"])
def test_a_damaged_file_is_refused(exported, damage):
    path = exported / "guard.safetensors"
    content = path.read_bytes()
    if damage == "cut":
        content = content[:-8]
    elif damage == "place":
        content = content.replace(b'"data_offsets":[0,', b'"data_offsets":[9,')
    elif damage == "format":
        content = content.replace(b"weakspot.guard.1", b"weakspot.guard.9")
    else:
        content = damage
    path.write_bytes(content)
    with pytest.raises(GuardError, match=r"holds no guard|expected weakspot\.guard\.1"):
        load_guard(path)


def test_model_and_guard_as_one_onnx_file(guard_run, shaky, guard_data, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    guarded = guarded_model(guard_run, shaky)
    written = export_guard(prediction_guard(guard_run), tmp_path / "guard", guarded=guarded)
    inputs = guard_data["test"].read(np.arange(33)).inputs  # other than the number that it was traced with
    session = onnxruntime.InferenceSession(str(written[-1]), providers=["CPUExecutionProvider"])
    said = dict(
        zip(
            [output.name for output in session.get_outputs()],
            session.run(None, {"inputs": inputs.numpy()}),
            strict=True,
        )
    )
    answer = guarded(inputs)
    np.testing.assert_allclose(said["wrong_probability"], answer.wrong_probability.detach(), atol=1e-4)
    assert (said["prediction"] == answer.prediction.numpy()).all()
    assert (said["verdict"] == answer.verdict.numpy()).mean() > 0.95
