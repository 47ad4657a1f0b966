"""The code behind a model: whatever answers depend on makes another fingerprint, and nothing else does."""

import importlib
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import fx, nn

from tests.core.helpers import Tally, numbered
from weakspot.core.code import CodeTrace
from weakspot.core.driver import examine
from weakspot.core.reach import version_of
from weakspot.core.subject import Subject

FILES = {
    "nets.py": '''
import logging
import torch
from pathlib import Path
from types import SimpleNamespace
from torch import nn

import config
from helpers import act
from pack import deep

log = logging.getLogger(__name__)
HERE = Path(__file__).parent
MEAN = [0.5, 0.25]
UNUSED = 1
RATE = 0.1
layer = 0


class Scaled:
    """Holds a number."""

    offset = 3

    def __init__(self, scale):
        self._scale = scale

    def __call__(self, x):
        return x * self._scale


class Base(nn.Module):
    bias = 1

    def step(self, x):
        return x + self.bias


class Net(Base):
    """A net."""

    def __init__(self, temperature=1.0, sizes=(1, 2)):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.temperature = temperature
        self.sizes = list(sizes)
        self.scaled = Scaled(2)
        with torch.no_grad():
            self.layer.weight.fill_(0.5)
            self.layer.bias.fill_(0.25)

    def forward(self, x):
        log.info("in %s", HERE)
        from lazy import late
        y = act(self.layer(x)) * config.GAIN + config.OFFSET
        return late(deep.er(self.step(self.scaled(y)))) / self.temperature

    def training_step(self, batch):
        return batch * RATE


def preprocess(x):
    try:
        x = x - MEAN[0]
    except ValueError:
        pass
    return short([part / 2 for part in x])


short = lambda x: x + MEAN[1]
''',
    "helpers.py": """
SCALE = 2.0
TABLE = {"a": (1, 2)}


def act(x):
    return inner(x) * SCALE


def inner(x, power=1):
    return x + TABLE["a"][0] ** power
""",
    "config.py": """
import torch

GAIN = 3
OFFSET = torch.ones(2)
""",
    "lazy.py": """
FACTOR = 1


def late(x):
    return x * FACTOR
""",
    "pack/__init__.py": "",
    "pack/deep.py": """
from . import deeper


def er(x):
    return deeper.est(x)
""",
    "pack/deeper.py": """
def est(x):
    return x
""",
}
MODULES = ("nets", "helpers", "config", "lazy", "pack", "pack.deep", "pack.deeper")


class Project:
    """A folder with the user's own modules."""

    def __init__(self, folder, monkeypatch):
        self.folder, self._patch = folder, monkeypatch
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        for name, text in FILES.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)

    def edit(self, file, old, new):
        text = (self.folder / file).read_text()
        assert old in text
        (self.folder / file).write_text(text.replace(old, new))

    def nets(self):
        """The module as a new process would load it."""
        for name in MODULES:
            self._patch.delitem(sys.modules, name, raising=False)
        self._patch.syspath_prepend(self.folder)
        importlib.invalidate_caches()
        return importlib.import_module("nets")

    def fingerprint(self, **arguments):
        nets = self.nets()
        return Subject(nets.Net(**arguments), preprocess=nets.preprocess).fingerprint()


@pytest.fixture
def project(tmp_path, monkeypatch):
    yield Project(tmp_path / "one", monkeypatch)
    monkeypatch.undo()
    for name in MODULES:
        sys.modules.pop(name, None)


PRINT = "from weakspot.core.subject import Subject; print(Subject({model}, preprocess={given}).fingerprint())"


def in_a_process(script, cwd, **environment):
    """What a new process prints."""
    given = {**os.environ, **environment}
    ran = subprocess.run([sys.executable, "-c", script], cwd=cwd, env=given, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


CHANGES = {
    "forward": ("nets.py", "return late(deep", "return -late(deep"),
    "a method that it calls": ("nets.py", "return x + self.bias", "return x - self.bias"),
    "an attribute of the class": ("nets.py", "bias = 1", "bias = 2"),
    "a method that it does not call": ("nets.py", "return batch * RATE", "return batch / RATE"),
    "a class that it uses": ("nets.py", "return x * self._scale", "return x / self._scale"),
    "what an object of it holds": ("nets.py", "Scaled(2)", "Scaled(3)"),
    "an attribute of the object's class": ("nets.py", "offset = 3", "offset = 4"),
    "a default": ("nets.py", "temperature=1.0", "temperature=2.0"),
    "a list": ("nets.py", "sizes=(1, 2)", "sizes=(1, 3)"),
    "a function of another module": ("helpers.py", "return inner(x) * SCALE", "return inner(x) / SCALE"),
    "a function that this one calls": ("helpers.py", "return x + TABLE", "return x - TABLE"),
    "its default": ("helpers.py", "power=1", "power=2"),
    "a constant of another module": ("helpers.py", "SCALE = 2.0", "SCALE = 2.5"),
    "a mapping of another module": ("helpers.py", "(1, 2)", "(2, 2)"),
    "a constant by way of its module": ("config.py", "GAIN = 3", "GAIN = 4"),
    "a tensor by way of its module": ("config.py", "ones(2)", "zeros(2)"),
    "what is imported when it runs": ("lazy.py", "x * FACTOR", "x / FACTOR"),
    "a constant of what is imported when it runs": ("lazy.py", "FACTOR = 1", "FACTOR = 2"),
    "a module of a package": ("pack/deeper.py", "return x", "return -x"),
    "pre-processing": ("nets.py", "x = x - MEAN", "x = x + MEAN"),
    "a constant of pre-processing": ("nets.py", "MEAN = [0.5", "MEAN = [0.75"),
    "a function inside pre-processing": ("nets.py", "part / 2", "part / 3"),
    "what pre-processing catches": ("nets.py", "except ValueError", "except KeyError"),
    "a lambda": ("nets.py", "x + MEAN", "x - MEAN"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_whatever_answers_depend_on_is_another_model(project, what):
    before = project.fingerprint()
    project.edit(*CHANGES[what])
    assert project.fingerprint() != before


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("nets.py", "class Net(", "# a comment\n\n\nclass Net("),
        ("nets.py", "UNUSED = 1", "UNUSED = 2"),
        ("nets.py", "RATE = 0.1", "RATE = 0.2"),
        ("nets.py", "layer = 0", "layer = 1"),
        ("helpers.py", "\ndef act", "\ndef other(x):\n    return x\n\n\ndef act"),
        ("nets.py", '"""A net."""', '"""A better net."""'),
    ],
    ids=[
        "a comment",
        "a constant that is not used",
        "what only training needs",
        "like an attribute",
        "another function",
        "a docstring",
    ],
)
def test_what_answers_do_not_depend_on_is_the_same_model(project, file, old, new):
    before = project.fingerprint()
    project.edit(file, old, new)
    assert project.fingerprint() == before


def test_arguments_are_part_of_a_model(project):
    assert project.fingerprint() == project.fingerprint(temperature=1.0)
    assert len({project.fingerprint(), project.fingerprint(temperature=2.0), project.fingerprint(sizes=(4,))}) == 3


def test_a_moved_project_is_the_same_in_any_process(project, tmp_path, monkeypatch):
    moved = Project(tmp_path / "elsewhere" / "two", monkeypatch)
    found = {project.fingerprint(), moved.fingerprint()}
    for folder, seed in ((project.folder, "1"), (moved.folder, "2")):
        script = f"import nets; {PRINT.format(model='nets.Net()', given='nets.preprocess')}"
        found.add(in_a_process(script, cwd=folder, PYTHONHASHSEED=seed))
    assert len(found) == 1


def test_a_file_that_was_edited_since_it_was_loaded_does_not_count(project):
    """What runs is what was loaded: results of the old code must not bear the fingerprint of the new."""
    nets = project.nets()
    subject = Subject(nets.Net(), preprocess=nets.preprocess)
    before = subject.fingerprint()
    project.edit(*CHANGES["forward"])
    assert subject.fingerprint() == before


def test_sent_to_another_process_it_is_the_same_model(project):
    cloudpickle = pytest.importorskip("ray").cloudpickle
    nets = project.nets()
    subject = Subject(nets.Net(), preprocess=nets.preprocess)
    modules = [sys.modules[name] for name in MODULES if name in sys.modules]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        (project.folder / "sent").write_bytes(cloudpickle.dumps((subject.model, nets.preprocess)))
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)
    sent = f"import pickle; net, given = pickle.load(open('sent', 'rb')); {PRINT.format(model='net', given='given')}"
    assert in_a_process(sent, cwd=project.folder) == subject.fingerprint()


CELL = """
from torch import nn
FACTOR = {factor}
class Net(nn.Module):
    def forward(self, x):
        return {sign}x * FACTOR
"""


def cell(*, factor=1, sign=""):
    """A class as it is typed into a notebook whose source nobody kept."""
    names = {"__name__": "__main__"}
    exec(compile(CELL.format(factor=factor, sign=sign), "<stdin>", "exec"), names)
    return names["Net"]()


def test_code_without_a_file():
    same = {Subject(cell()).fingerprint() for _ in range(2)}
    others = {Subject(net).fingerprint() for net in (cell(factor=2), cell(sign="-"))}
    assert len(same) == 1 and len(others) == 2 and not same & others
    assert Subject(cell()).identity().unknown == ()


def changed(**attributes):
    """A net with these attributes set from outside."""
    net = cell()
    for name, value in attributes.items():
        setattr(net, name, value)
    return net


def hooked(function):
    net = cell()
    net.register_forward_hook(function)
    return net


def linear(weight):
    net = nn.Linear(1, 1)
    nn.init.constant_(net.weight, weight)
    nn.init.zeros_(net.bias)
    return net


class Loose(nn.Module):
    """Keeps modules and functions where torch does not look."""

    def __init__(self, *parts):
        super().__init__()
        self._parts = parts

    def forward(self, x):
        for part in self._parts:
            x = part(x)
        return x


class Chain(list):
    """A list that can be called."""

    def __call__(self, x):
        for part in self:
            x = part(x)
        return x


def double(x):
    return x * 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda: changed(size=1), lambda: changed(size=2)),
        (lambda: changed(mean=torch.ones(2)), lambda: changed(mean=torch.zeros(2))),
        (lambda: changed(mean=np.ones(2)), lambda: changed(mean=np.zeros(2))),
        (lambda: changed(kind=torch.float16), lambda: changed(kind=torch.float32)),
        (lambda: changed(settings={"a": [1, {"b": 2}]}), lambda: changed(settings={"a": [1, {"b": 3}]})),
        (lambda: changed(words=list(map(str, range(2000)))), lambda: changed(words=list(map(str, range(1, 2001))))),
        (lambda: changed(settings=SimpleNamespace(a=1)), lambda: changed(settings=SimpleNamespace(a=2))),
        (lambda: Loose(Chain([torch.relu])), lambda: Loose(Chain([torch.sin]))),
        (lambda: changed(forward=lambda x: x), lambda: changed(forward=lambda x: -x)),
        (lambda: hooked(lambda module, given, out: out), lambda: hooked(lambda module, given, out: -out)),
        (lambda: Loose(linear(1)), lambda: Loose(linear(2))),
        (lambda: Loose(torch.relu, double), lambda: Loose(double, torch.relu)),
        (lambda: Loose(partial(torch.add, other=1)), lambda: Loose(partial(torch.add, other=2))),
        (lambda: fx.symbolic_trace(Loose(torch.sin)), lambda: fx.symbolic_trace(Loose(torch.cos))),
        (lambda: torch.compile(cell(), backend="eager"), lambda: torch.compile(cell(sign="-"), backend="eager")),
        (lambda: torch.compile(cell(), backend="eager"), cell),
    ],
    ids=[
        *(
            "a number",
            "a tensor",
            "an array",
            "a type",
            "settings",
            "a long list",
            "a namespace",
            "a list of its own",
            "another forward",
            "a hook",
        ),
        *("a hidden module", "the order of functions", "a partial", "a graph", "a compiled net", "compiled or not"),
    ],
)
def test_what_a_model_holds_is_part_of_it(one, other):
    assert Subject(one()).fingerprint() == Subject(one()).fingerprint() != Subject(other()).fingerprint()


def test_where_a_model_lies_is_no_part_of_it():
    assert Subject(changed(device=torch.device("cpu"))).fingerprint() == (
        Subject(changed(device=torch.device("cuda", 1))).fingerprint()
    )


class LeavesBehind(nn.Module):
    """Keeps what it saw last, as many nets do."""

    def __init__(self):
        super().__init__()
        self.layer, self.last, self.calls = nn.Linear(3, 2), None, 0

    def forward(self, x):
        self.last, self.calls, self.first = self.layer(x), self.calls + 1, x
        return self.last


def test_what_a_forward_leaves_behind_does_not_make_another_model():
    net = LeavesBehind()
    before = Subject(net).fingerprint()
    examine(Subject(net), numbered(4), [Tally()])
    assert Subject(net).fingerprint() == before
    assert (net.last, net.calls, hasattr(net, "first")) == (None, 0, False)


TRAINER = """
from torch import nn
__version__ = "{version}"

class Module(nn.Module):
    def __init__(self, **hparams):
        super().__init__()
        self._trainer, self._hparams = None, hparams

    @property
    def hparams(self):
        return self._hparams
"""
LIT = """
import trainer_kit
STEPS = {steps}

class Lit(trainer_kit.Module):
    def forward(self, x):
        return x * self.hparams["scale"]

    def training_step(self, batch):
        return self.trainer.log(batch, STEPS)
"""


def lightning(folder, monkeypatch, *, version="1.0+cpu", steps=1, scale=2):
    """A net that is trained by an installed package, as Lightning's are."""
    site = folder / "site-packages"
    site.mkdir(parents=True, exist_ok=True)
    (site / "trainer_kit.py").write_text(TRAINER.format(version=version))
    (folder / "lit.py").write_text(LIT.format(steps=steps))
    for name in ("trainer_kit", "lit"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.syspath_prepend(site)
    version_of.cache_clear()
    return importlib.import_module("lit").Lit(scale=scale)


def test_of_a_net_that_a_package_trains_only_what_it_answers_with_counts(tmp_path, monkeypatch):
    def fingerprint(**options):
        return Subject(lightning(tmp_path, monkeypatch, **options)).fingerprint()

    net = lightning(tmp_path, monkeypatch)
    net._trainer = {"epoch": 3, "logger": open}
    same = [Subject(net).fingerprint(), fingerprint(), fingerprint(steps=5), fingerprint(version="1.0+cu126")]
    others = [fingerprint(scale=3), fingerprint(version="1.1")]
    for name in ("trainer_kit", "lit"):
        sys.modules.pop(name, None)
    version_of.cache_clear()
    assert len(set(same)) == 1 and len({same[0], *others}) == 3


def recorded(value):
    return (lambda x: (value, x)[1]), "preprocess"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (Path(__file__).open, None),
        (torch.Generator(), "preprocess: parts of a torch._C.Generator"),
        (torch.empty(2, device="meta"), "preprocess: a torch.Tensor whose values cannot be read"),
        (Path(__file__), f"preprocess: what lies at the path {Path(__file__).name}"),
        (object(), None),
    ],
    ids=["a method", "a generator", "a tensor without values", "a file's name", "an object without content"],
)
def test_what_cannot_be_looked_at_is_told(value, told):
    subject = Subject(nn.Identity(), preprocess=recorded(value)[0])
    assert told is None or told in subject.identity().unknown
    assert subject.describe().get("not_fingerprinted", []) == list(subject.identity().unknown)


def test_an_open_file_is_told(tmp_path):
    with (tmp_path / "stats.txt").open("w") as file:
        noted = Subject(nn.Identity(), preprocess=recorded(file)[0]).describe()
    assert noted["not_fingerprinted"] == ["preprocess: an open file"]


def test_a_black_box_is_told_to_be_known_by_its_name_alone():
    noted = Subject(lambda x: x, fingerprint="box 1").describe()
    assert noted["not_fingerprinted"] == ["model: all of it, known by the name that it was given alone"]


def test_a_module_that_cannot_be_imported_is_told(tmp_path, monkeypatch):
    def preprocess(x):
        import broken_module
        import no_such_module

        return broken_module.there(no_such_module.there(x))

    (tmp_path / "broken_module.py").write_text("raise KeyError")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    unknown = Subject(nn.Identity(), preprocess=preprocess).identity().unknown
    assert unknown == ("broken_module: a module that cannot be imported (KeyError)",)


def test_a_package_that_is_imported_when_the_model_runs_counts_before_it_is_loaded(tmp_path, monkeypatch):
    def preprocess(x):
        from late_kit import late

        return late(x)

    site = tmp_path / "site-packages"
    site.mkdir()
    (site / "late_kit.py").write_text("__version__ = '1'\ndef late(x): return x")
    (site / "late_kit-1.dist-info").mkdir()
    (site / "late_kit-1.dist-info" / "METADATA").write_text("Name: late-kit\nVersion: 1\n")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(site)
    subject = Subject(nn.Identity(), preprocess=preprocess)
    before = subject.fingerprint()
    assert "late_kit" not in sys.modules, "nothing that is installed is loaded for it"
    importlib.import_module("late_kit")
    assert subject.fingerprint() == before
    monkeypatch.delitem(sys.modules, "late_kit")
    assert subject.identity().unknown == ()


def test_values_that_hold_themselves_and_very_many_come_to_an_end():
    loop = [1]
    loop.append(loop)
    deep = []
    for _ in range(500):
        deep = [deep]
    trace = CodeTrace()
    assert trace.digest(trace.of([loop, deep], "x")) and trace.unknown == {"x: more than can be looked at"}


def test_only_versions_of_packages_count_and_not_their_builds():
    assert version_of("torch") == torch.__version__.partition("+")[0]
    assert version_of("yaml") and version_of("weakspot")
    assert version_of("no_such_package") is None
