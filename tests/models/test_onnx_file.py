"""ONNX files as black boxes, run by onnxruntime: the numbers of a plain reference, any batch, clear refusals."""

import pickle
import sys

import numpy as np
import pytest
import torch

from weakspot import Subject, examine
from weakspot.core.errors import ConfigError, SubjectError
from weakspot.core.threads import torch_threads
from weakspot.data.sources import ArraySource
from weakspot.looks import Rotate
from weakspot.models import OnnxModel
from weakspot.models.onnx_parts import digests, external_files
from weakspot.robustness import NeighbourAccuracy

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

WEIGHT = np.random.default_rng(0).normal(size=(12, 2)).astype(np.float32)
FLOAT, DOUBLE, BYTES = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.UINT8


def write(path, shape, *, kind=FLOAT, outputs=("scores",), inputs=("images",)):
    """flatten → product with WEIGHT; further outputs are the negative scores, further inputs are added to the first."""
    helper = onnx.helper
    nodes = [helper.make_node("Cast", [inputs[0]], ["cast"], to=FLOAT)]
    nodes += [helper.make_node("Flatten", ["cast"], ["flat"]), helper.make_node("MatMul", ["flat", "W"], [outputs[0]])]
    nodes += [helper.make_node("Neg", [outputs[0]], [name]) for name in outputs[1:]]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info(name, kind, shape) for name in inputs],
        [helper.make_tensor_value_info(name, FLOAT, (shape[0], 2)) for name in outputs],
        [onnx.numpy_helper.from_array(WEIGHT, "W")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), path)
    return path


def reference(images):
    return images.reshape(len(images), -1) @ torch.from_numpy(WEIGHT)


@pytest.fixture
def images():
    return torch.rand(5, 3, 2, 2, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("kind", [FLOAT, DOUBLE, onnx.TensorProto.FLOAT16])
def test_a_free_batch_size(tmp_path, images, kind):
    model = OnnxModel(write(tmp_path / "net.onnx", ["batch", 3, 2, 2], kind=kind))
    assert model.fixed_batch is None
    tolerance = 1e-2 if kind == onnx.TensorProto.FLOAT16 else 1e-5
    for count in (1, 5):
        torch.testing.assert_close(model(images[:count]), reference(images[:count]), atol=tolerance, rtol=0)
    assert model.notes == ("net.onnx is a black box: questions about layers cannot be asked",)


@pytest.mark.parametrize(("size", "how"), [(1, "one by one"), (2, "2 at a time")])
def test_a_fixed_batch_size_is_filled_up_and_said(tmp_path, images, size, how):
    model = OnnxModel(write(tmp_path / "net.onnx", [size, 3, 2, 2]))
    torch.testing.assert_close(model(images), reference(images))
    assert model.notes[1] == f"net.onnx has a fixed batch size: samples are run {how}, which is slower"


def test_channels_last(tmp_path):
    images = torch.rand(2, 3, 4, 1)
    path = write(tmp_path / "net.onnx", ["n", 4, 1, 3])
    torch.testing.assert_close(OnnxModel(path, channels="last")(images), reference(images.permute(0, 2, 3, 1)))
    with pytest.raises(SubjectError, match=r"shape 4×1×3 and gets 3×4×1: it wants the channels last; give arguments"):
        OnnxModel(path)(images)


def test_a_shape_that_does_not_fit(tmp_path, images):
    with pytest.raises(SubjectError, match="wants samples of shape 1×3×4 and gets 3×2×2: give the data that size"):
        OnnxModel(write(tmp_path / "net.onnx", ["n", 1, 3, 4]))(images)


def test_several_outputs_are_chosen_by_name(tmp_path, images):
    model = OnnxModel(write(tmp_path / "net.onnx", ["n", 3, 2, 2], outputs=("scores", "negative")))
    subject = Subject(model, output="negative", fingerprint=model.fingerprint())
    torch.testing.assert_close(subject.forward(images), -reference(images))
    with pytest.raises(SubjectError, match="a mapping with 'scores', 'negative', expected a tensor: say which"):
        Subject(model).forward(images)


def test_bytes_are_not_made_up(tmp_path, images):
    model = OnnxModel(write(tmp_path / "net.onnx", ["n", 3, 2, 2], kind=BYTES))
    with pytest.raises(SubjectError, match=r"wants tensor\(uint8\) and gets float32: give the subject a preprocess"):
        model(images)
    whole = (images * 255).to(torch.uint8)
    torch.testing.assert_close(model(whole), reference(whole.float()))


def test_it_is_examined_like_any_subject(tmp_path):
    source = ArraySource(np.random.default_rng(1).random((20, 3, 2, 2), dtype=np.float32), np.arange(20) % 2)
    model = OnnxModel(write(tmp_path / "net.onnx", ["n", 3, 2, 2]))
    black = Subject(model, classes=2, fingerprint=model.fingerprint())
    white = Subject(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 2, bias=False)), classes=2)
    with torch.no_grad():
        white.model[1].weight.copy_(torch.from_numpy(WEIGHT.T))
    probe = NeighbourAccuracy(variation=Rotate(90), looks=4)
    ours, theirs = (examine(subject, source, [probe])[0] for subject in (black, white))
    assert ours.table.equals(theirs.table)


def with_external(path, location, *, where="initializer"):
    """A file whose weights lie in another, named as one likes: as initializer, or inside a node or a branch."""
    helper, model = onnx.helper, onnx.load(write(path, ["n", 3, 2, 2]))
    graph, tensor = model.graph, onnx.numpy_helper.from_array(WEIGHT, "W")
    onnx.external_data_helper.set_external_data(tensor, location)
    (path.parent / location).parent.mkdir(parents=True, exist_ok=True)
    (path.parent / location).write_bytes(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    del graph.initializer[:]
    if where == "initializer":
        graph.initializer.append(tensor)
    else:
        constant = helper.make_node("Constant", [], ["W"])
        constant.attribute.append(helper.make_attribute("value", tensor))
        inner = helper.make_graph([constant], "inner", [], [helper.make_tensor_value_info("W", FLOAT, WEIGHT.shape)])
        branch = helper.make_node("If", ["yes"], ["W"], then_branch=inner, else_branch=inner)
        graph.node.insert(0, constant if where == "node" else branch)
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("location", ["net.onnx.data", "anything", "weights/of the net.bin"])
@pytest.mark.parametrize("where", ["initializer", "node", "branch"])
def test_the_fingerprint_knows_the_files_that_hold_weights(tmp_path, location, where):
    path = with_external(tmp_path / "net.onnx", location, where=where)
    assert external_files(path) == [location]
    before = digests(path)
    (tmp_path / location).write_bytes((-WEIGHT).tobytes())
    (tmp_path / "no part of it.data").write_bytes(b"x")
    after = digests(path)
    assert len(after) == 2 and after[0] == before[0] and after[1] != before[1]


def test_other_weights_beside_the_file_are_another_model(tmp_path, images):
    path = with_external(tmp_path / "net.onnx", "weights")
    first = OnnxModel(path)
    torch.testing.assert_close(first(images), reference(images))
    before = first.fingerprint()
    (tmp_path / "weights").write_bytes((-WEIGHT).tobytes())
    torch.testing.assert_close(OnnxModel(path)(images), -reference(images))
    assert OnnxModel(path).fingerprint() != before


def test_what_is_no_onnx_file_has_no_parts(tmp_path):
    path = write(tmp_path / "net.onnx", ["n", 3, 2, 2])
    assert external_files(path) == []
    whole = path.read_bytes()
    for odd in (whole[:-3], b"\x0f", b"\xff" * 4):
        path.write_bytes(odd)
        with pytest.raises(ConfigError, match="is not an ONNX file"):
            external_files(path)
    path.write_bytes(b"\x18\x00\x00\x00ORTM" + b"\xff" * 8)
    assert external_files(path) == []


def test_how_the_channels_are_given_is_part_of_the_fingerprint(tmp_path):
    path = write(tmp_path / "net.onnx", ["n", 3, 2, 2])
    assert OnnxModel(path).fingerprint() != OnnxModel(path, channels="last").fingerprint()


def test_several_inputs_are_refused(tmp_path):
    path = write(tmp_path / "net.onnx", ["n", 3, 2, 2], inputs=("images", "more"))
    with pytest.raises(ConfigError, match=r"has 2 inputs \(images, more\): export the model with one"):
        OnnxModel(path)


def test_what_cannot_be_read(tmp_path):
    with pytest.raises(ConfigError, match="there is no such file"):
        OnnxModel(tmp_path / "none.onnx")
    (tmp_path / "bad.onnx").write_bytes(b"nothing")
    with pytest.raises(ConfigError, match="is not an ONNX file that onnxruntime can run"):
        OnnxModel(tmp_path / "bad.onnx")
    with pytest.raises(ConfigError, match="channels is 'middle'"):
        OnnxModel(tmp_path / "bad.onnx", channels="middle")


def test_a_gpu_that_onnxruntime_cannot_use(tmp_path):
    import onnxruntime

    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("this onnxruntime can use a GPU")
    with pytest.raises(ConfigError, match="no CUDA: pip install onnxruntime-gpu"):
        OnnxModel(write(tmp_path / "net.onnx", ["n", 3, 2, 2]), device="cuda:0")


def test_without_onnxruntime_it_is_said_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ConfigError, match=r"needs onnxruntime: pip install 'weakspot\[onnx\]'"):
        OnnxModel(tmp_path / "net.onnx")


def test_another_process_opens_the_file_again(tmp_path, images):
    model = OnnxModel(write(tmp_path / "net.onnx", ["batch", 2, 2, 3]), channels="last")
    there = pickle.loads(pickle.dumps(model))
    assert there.fingerprint() == model.fingerprint()
    assert torch.equal(there(images), model(images))


def test_it_computes_with_as_many_threads_as_torch_does_at_the_time(tmp_path, images):
    model = OnnxModel(write(tmp_path / "net.onnx", ["batch", 3, 2, 2]))
    before = model._session
    model(images)
    assert model._session is before
    with torch_threads(2):
        model(images)
        assert model._session.get_session_options().intra_op_num_threads == 2
