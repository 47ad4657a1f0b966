"""What is refused in an archive of torch.export, what is left out, and that torch gets what was checked."""

import io
import json
import sys
import zipfile

import pytest
import torch
from torch import nn
from torch.export import Dim, export, save

from tests.models.evil_archives import Touches, members_of, places, zipped
from tests.models.nets import net
from weakspot.core.errors import ConfigError
from weakspot.models import load_exported
from weakspot.models.archive_check import plain_archive

pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")
GRAPH, WEIGHTS = "models/model.json", "data/weights/model_weights_config.json"
RUNS_CODE = r"could run code .*refused, nothing was executed"


@pytest.fixture(scope="module")
def honest():
    made = io.BytesIO()
    save(export(net(), (torch.zeros(3, 3, 9, 9),), dynamic_shapes=({0: Dim("batch")},)), made)
    return members_of(made.getvalue())


@pytest.fixture
def marked(tmp_path):
    """Where evil archives of these tests leave something, if they can."""
    yield tmp_path / "mark"
    assert not (tmp_path / "mark").exists()


@pytest.fixture
def written(tmp_path):
    def write(members, **options):
        (tmp_path / "evil.pt2").write_bytes(zipped(members, **options))
        return tmp_path / "evil.pt2"

    return write


def with_graph(honest, change):
    graph = json.loads(honest[GRAPH])
    change(graph)
    return {**honest, GRAPH: json.dumps(graph).encode()}


def with_all(honest, key, value):
    """The graph with all that stands under a key replaced."""

    def change(graph):
        found = places(graph, key)
        assert found
        for place in found:
            place[key] = value

    return with_graph(honest, change)


def signature_of(graph):
    return graph["graph_module"]["module_call_graph"][0]["signature"]


def test_a_copy_that_is_not_altered_loads(honest, written):
    """So that what the next tests see refused is refused for what was altered."""
    model, images = load_exported(written(honest.items())), torch.rand(2, 3, 9, 9)
    assert isinstance(model, nn.Module)
    with torch.no_grad():
        assert torch.equal(model(images), net()(images))


@pytest.mark.parametrize("place", [0, 5, None])
@pytest.mark.parametrize("code", ["__import__('os').mkdir({!r})", "__import__('os').system('mkdir ' + {!r})"])
def test_a_graph_that_stands_twice_is_refused(honest, written, marked, place, code):
    """Which of the two torch takes depends on where they stand; with the honest one at the end it takes the other."""
    members = [*with_all(honest, "expr_str", code.format(str(marked))).items()]
    members.insert(len(members) if place is None else place, (GRAPH, honest[GRAPH]))
    file = written(members)
    with pytest.raises(ConfigError, match=r"not an archive of torch.export.save: it holds 'models/model.json' twice"):
        load_exported(file)


def test_two_folders_are_refused(honest, written):
    file = written([*((f"a/{name}", content) for name, content in honest.items()), ("b/extra/x", b"")], root="")
    with pytest.raises(ConfigError, match="holds 2 folders, and torch writes one"):
        load_exported(file)


def test_compressed_members_are_refused(honest, written):
    file = written({**honest, "extra/large": b"\0" * 2**20}.items(), compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(ConfigError, match="is compressed or encrypted, which torch never does"):
        load_exported(file)


def test_a_member_with_two_names_is_refused(honest, tmp_path):
    content = bytearray(zipped((name.replace("model.json", "modex.json"), part) for name, part in honest.items()))
    place = content.rfind(b"models/modex.json")
    content[place : place + 17] = b"models/model.json"
    (tmp_path / "evil.pt2").write_bytes(content)
    with pytest.raises(
        ConfigError, match=r"not an archive of torch.export.save: File name in directory .* and header .* differ"
    ):
        load_exported(tmp_path / "evil.pt2")


@pytest.mark.parametrize(
    "member",
    ["../../evil", "/tmp/evil", "data/constants/opaque_obj_0", "data/constants/custom_obj_0", "data/weights/model.pt",
     "data/aotinductor/model/evil.so", "models/other.json", "version"],
)  # fmt: skip
def test_other_members_are_refused(honest, written, marked, member):
    import pickle

    with pytest.raises(ConfigError, match=rf"holds '{member}'.*refused"):
        load_exported(written([*honest.items(), (member, pickle.dumps(Touches(marked)))]))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("expr_str", "__import__('os').mkdir('MARK')"),
        ("expr_str", "exec(chr(112))"),
        ("expr_str", "Symbol.__subclasses__()"),
        ("expr_str", "Pow(Integer(9), Integer(99999999))"),
        ("name", "images=__import__('os').mkdir('MARK')"),
        ("name", "images\n__import__('os').mkdir('MARK')"),
        ("parameter_name", "a\"), __import__('os').mkdir('MARK'), (\""),
        ("parameter_name", "__class__.weight"),
        ("buffer_name", "a'b"),
        ("fqn", 'a"b'),
        ("forward_arg_names", ["images=__import__('os').mkdir('MARK')"]),
        ("as_int", "__import__('os').mkdir('MARK')"),
        ("verifiers", ["__import__('os')"]),
        ("arg", {"as_operator": "torch.os.system"}),
        ("arg", {"as_custom_obj": {"name": "a", "class_fqn": "__torch__.Evil"}}),
        ("metadata", {"nn_module_stack": "L__self__,,x.Y;a,a\"), __import__('os'), (\",x.Z"}),
        ("new_entry", "text"),
    ],
)
def test_text_that_could_become_code_is_refused(honest, written, marked, key, value):
    evil = json.loads(json.dumps(value).replace("MARK", str(marked)))
    members = (
        with_graph(honest, lambda graph: graph.update({key: evil}))
        if key == "new_entry"
        else with_all(honest, key, evil)
    )
    with pytest.raises(ConfigError, match=RUNS_CODE):
        load_exported(written(members.items()))


@pytest.mark.parametrize(
    "target",
    ["torch.os.system", "torch.ops.load_library", "torch.ops.aten.relu.default.__globals__", "_operator.call",
     "torch.ops.aten.relu.overloads", "torch.ops.aten.save.default", "torch.ops.aten.rand.default",
     "torch.ops.higher_order.while_loop"],
)  # fmt: skip
def test_other_operators_are_refused_by_name(honest, written, target):
    with pytest.raises(ConfigError) as caught:
        load_exported(written(with_all(honest, "target", target).items()))
    assert f"calls {target}, which is not among the operators that weakspot runs from a file: refused" in str(
        caught.value
    )
    assert "load it as a Python class with its weights" in str(caught.value)


def test_an_operator_that_writes_a_file_is_refused(honest, written, marked):
    def change(graph):
        node = next(node for node in graph["graph_module"]["graph"]["nodes"] if "mean" in node["target"])
        given = {"filename": {"as_string": str(marked)}, "shared": {"as_bool": True}, "size": {"as_int": 4}}
        node["target"] = "torch.ops.aten.from_file.default"
        node["inputs"] = [{"name": name, "arg": value, "kind": 1} for name, value in given.items()]

    with pytest.raises(
        ConfigError, match=r"calls torch\.ops\.aten\.from_file\.default, .*refused, nothing was executed"
    ):
        load_exported(written(with_graph(honest, change).items()))


LEAF = {"type": None, "context": None, "children_spec": []}


@pytest.mark.parametrize("side", ["in_spec", "out_spec"])
@pytest.mark.parametrize(
    "tree",
    [
        {"type": "builtins.dict", "children_spec": [LEAF],
         "context": '[{"__enum__": true, "fqn": "EVIL:A", "name": "B"}]'},
        {"type": "collections.defaultdict", "children_spec": [LEAF],
         "context": {"default_factory_module": "EVIL", "default_factory_name": "A", "dict_context": ["x"]}},
        {"type": "builtins.dict", "context": '["a\\"b"]', "children_spec": [LEAF]},
        "text",
    ],
)  # fmt: skip
def test_descriptions_of_inputs_and_outputs_import_nothing(honest, written, marked, tmp_path, monkeypatch, side, tree):
    module = f"evil_{tmp_path.name}"
    (tmp_path / f"{module}.py").write_text(f"import os\nos.mkdir({str(marked)!r})\n")
    monkeypatch.syspath_prepend(tmp_path)
    text = json.dumps([1, tree]).replace("EVIL", module)
    with pytest.raises(ConfigError, match=RUNS_CODE):
        load_exported(written(with_graph(honest, lambda graph: signature_of(graph).update({side: text})).items()))
    assert module not in sys.modules


def test_an_output_class_of_a_library_is_given_as_a_dict(honest, written):
    tree = {"type": "library.outputs.ClassifierOutput", "context": '["logits"]', "children_spec": [LEAF]}
    members = with_graph(honest, lambda graph: signature_of(graph).update({"out_spec": json.dumps([1, tree])}))
    given = load_exported(written(members.items()))(torch.zeros(2, 3, 9, 9))
    assert list(given) == ["logits"] and given["logits"].shape == (2, 10)


def test_pickled_weights_are_refused(honest, written, marked):
    config = json.loads(honest[WEIGHTS])
    config["config"]["fc.bias"]["use_pickle"] = True
    made = io.BytesIO()
    torch.save(Touches(marked), made)
    file = config["config"]["fc.bias"]["path_name"]
    evil = {**honest, WEIGHTS: json.dumps(config).encode(), f"data/weights/{file}": made.getvalue()}
    with pytest.raises(ConfigError, match=r"holds 'fc.bias' as pickled values.*refused"):
        load_exported(written(evil.items()))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sizes", [2**40]),
        ("sizes", [-1]),
        ("strides", [2**62]),
        ("storage_offset", 2**40),
        ("storage_offset", -4),
        ("sizes", ["2"]),
    ],
)
def test_weights_that_reach_out_of_their_file_are_refused(honest, written, key, value):
    config = json.loads(honest[WEIGHTS])
    about = config["config"]["fc.bias"]["tensor_meta"]
    about[key] = [{"as_int": part} for part in value] if isinstance(value, list) else {"as_int": value}
    with pytest.raises(ConfigError, match=r"too small|a tensor has a size of"):
        load_exported(written({**honest, WEIGHTS: json.dumps(config).encode()}.items()))


def test_samples_guards_and_notes_that_would_run_code_are_left_out(honest, written, marked):
    def change(graph):
        graph["guards_code"] = [f"__import__('os').mkdir({str(marked)!r})"]
        for node in graph["graph_module"]["graph"]["nodes"]:
            node["metadata"] |= {"source_fn_stack": "a,torch.os.system", "custom": "{}", "stack_trace": "secret"}

    made = io.BytesIO()
    torch.save((Touches(marked),), made)
    file = written(
        {**with_graph(honest, change), "data/sample_inputs/model.pt": made.getvalue(), "extra/x": b"secret"}.items()
    )
    members = members_of(plain_archive(file).getvalue())
    assert members["data/sample_inputs/model.pt"] == b""
    assert "extra/x" not in members
    assert not any(word in members[GRAPH] for word in (b"secret", b"mkdir", b"torch.os", b"source_fn_stack"))
    assert load_exported(file)(torch.zeros(2, 3, 9, 9)).shape == (2, 10)


def test_torch_gets_what_was_checked_and_not_the_file(honest, written, monkeypatch):
    file, given = written(honest.items()), []
    monkeypatch.setattr(torch.export, "load", lambda archive: given.append(archive) or 1 / 0)
    with pytest.raises(ConfigError, match=r"cannot read the model .*ZeroDivisionError"):
        load_exported(file)
    file.write_bytes(b"another file by now")
    seen = members_of(given[0].getvalue())
    assert seen["data/weights/weight_0"] == honest["data/weights/weight_0"]
    assert json.loads(seen[GRAPH])["range_constraints"] == json.loads(honest[GRAPH])["range_constraints"]


@pytest.mark.parametrize(
    ("member", "content", "message"),
    [
        ("byteorder", b"big", "another byteorder than little"),
        ("archive_version", b"9", "another archive_version than 0"),
        (GRAPH, b"[]", "its graph is no mapping"),
        (GRAPH, b"{" * 9, "could run code|not an archive"),
        (GRAPH, b"[" * 200_000, "not an archive"),
        (WEIGHTS, b"{}", "lists no weights"),
    ],
)
def test_damaged_members(honest, written, member, content, message):
    with pytest.raises(ConfigError, match=message):
        load_exported(written({**honest, member: content}.items()))


@pytest.mark.parametrize("missing", [GRAPH, WEIGHTS, "data/weights/weight_0", "byteorder"])
def test_missing_members(honest, written, missing):
    with pytest.raises(ConfigError, match=f"holds no '{missing}'|is missing or too small"):
        load_exported(written([item for item in honest.items() if item[0] != missing]))


@pytest.mark.parametrize("content", [b"", b"nothing", b"PK\3\4"])
def test_what_is_no_archive(tmp_path, content):
    (tmp_path / "x.pt2").write_bytes(content)
    with pytest.raises(ConfigError, match=r"is not an archive of torch.export.save"):
        load_exported(tmp_path / "x.pt2")


def test_another_zip_is_no_archive(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.pt2", "w") as archive:
        archive.writestr("a/b", "c")
    with pytest.raises(ConfigError, match="or is one of an old torch: export the model again"):
        load_exported(tmp_path / "x.pt2")
