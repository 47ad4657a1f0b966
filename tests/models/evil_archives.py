"""Archives of torch.export that try to run code or to write files: an honest one, altered in many ways."""

import io
import json
import pickle
import warnings
import zipfile
from pathlib import Path
from random import Random

EXPRESSIONS = (
    "{code}",
    "Add(Symbol('s34', positive=True, integer=True), {code})",
    "Symbol('s34', positive=True, integer=True) + {code}",
    "Integer(2) if {code} else Integer(3)",
    "(lambda: {code})()",
    "[{code} for s0 in (1,)][0]",
    "exec({text!r})",
    "eval({text!r})",
    "S({text!r})",
    "sympify({text!r})",
    "parse_expr({text!r})",
    "Symbol({text!r})",
    "lambdify((), {text!r})()",
    "Function({text!r})(1)",
    "Integer(1).__class__.__base__.__subclasses__()",
    "Symbol('s34', positive={code})",
)
ENDLESS = (
    "Pow(Integer(9), Integer(999999999999))",
    "Pow(Pow(Pow(Pow(Integer(9), Integer(8)), Integer(8)), Integer(8)), Integer(99))",
    "9 ** 9 ** 9 ** 9",
    "floor(Pow(Integer(2), Float('1e99')))",
    "Float('1.5', precision=0)",
    "Float('1.5', precision=-9)",
    "Float('1.5', precision={code})",
    "Add(Integer(1), PowByNatural(Integer(9), Integer(999999999999)))",
)
"""Numbers that fill the memory, or are never found."""
TARGETS = (
    "torch.os.system", "torch.os.mkdir", "torch.os.makedirs", "torch.load", "torch.save", "torch.hub.load",
    "torch.ops.load_library", "torch.jit.load", "torch.compile", "torch.utils.cpp_extension.load_inline",
    "torch.ops.aten.save.default", "torch.ops.aten.warn.default", "torch.ops.aten._print.default",
    "torch.ops.aten.set_.source_Tensor", "torch.ops.aten.resize_.default", "torch.ops.aten.manual_seed.default",
    "torch.ops.aten.add.overloads", "torch.ops.aten.relu.default.__globals__", "torch.ops.aten.relu.default._op",
    "torch.ops.higher_order.while_loop", "torch.ops.higher_order.executorch_call_delegate",
    "torch.ops.prim.Print.default", "torch.ops.profiler._record_function_enter.default", "torch.manual_seed",
    "torch.set_num_threads", "_operator.call", "_operator.methodcaller", "_operator.attrgetter", "_operator.pow",
    "math.__loader__.load_module", "#extension:op", "torch.ops.aten.__class__",
    "torch.fx.graph_module._exec_with_source",
)  # fmt: skip
MEMBERS = (
    "../../evil", "/tmp/evil", "data/aotinductor/model/evil.so", "data/aotinductor/model/evil.wrapper.so",
    "data/constants/opaque_obj_0", "data/constants/custom_obj_0", "data/weights/model.pt", "data/constants/model.pt",
    "models/other.json", "data/executorch/evil.pte", "version", "serialized_exported_program.json", "extra/../../evil",
    "data/weights/weight_0/", "models/", "code/__torch__.py", "data.pkl", "constants.pkl",
)  # fmt: skip


class Touches:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self._path = path

    def __reduce__(self):
        return exec, (f"__import__('os').mkdir({str(self._path)!r})",)


def members_of(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {info.filename.partition("/")[2]: archive.read(info) for info in archive.infolist()}


def zipped(members, *, root="model", compression=zipfile.ZIP_STORED) -> bytes:
    """An archive of (name, content); a name may stand twice."""
    made = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(made, "w", compression) as archive:
        warnings.simplefilter("ignore")  # that a name stands twice
        for name, content in members:
            info = zipfile.ZipInfo(f"{root}/{name}" if root else name)
            info.compress_type = compression
            archive.writestr(info, content)
    return made.getvalue()


def places(content, key):
    """All mappings of a graph that hold a key."""
    found, waiting = [], [content]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            found += [part] if key in part else []
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return found


class Evil:
    """Draws one file after the other; what they try is to leave something in the folder `marks`."""

    def __init__(self, marks: Path, seed: int):
        self.marks, self.random, self.number = marks, Random(seed), 0

    @classmethod
    def kinds(cls) -> list[str]:
        return sorted(name.removeprefix("with_") for name in dir(cls) if name.startswith("with_"))

    def drawn(self, kinds, count: int):
        """(kind, suffix, content), every kind as often as the others."""
        for number in range(count):
            self.number, kind = number, kinds[number % len(kinds)]
            yield kind, *self.file(kind)

    def file(self, kind: str):
        """Suffix and content."""
        return getattr(self, f"with_{kind}")()

    @property
    def mark(self) -> Path:
        return self.marks / f"mark{self.number}"


class EvilArchives(Evil):
    """Altered archives."""

    def __init__(self, honest: bytes, marks: Path, seed: int):
        super().__init__(marks, seed)
        self.members = members_of(honest)

    def file(self, kind: str):
        return ".pt2", super().file(kind)

    @property
    def code(self) -> str:
        calls = ("__import__('os').mkdir({0!r})", "__import__('os').system({1!r})", "open({0!r}, 'w').close()")
        return self.random.choice(calls).format(str(self.mark), f"mkdir {self.mark}")

    def graph(self):
        return json.loads(self.members["models/model.json"])

    def with_graph(self, graph=None) -> bytes:
        """The honest archive with another graph; by itself one with any of its values replaced."""
        if graph is None:
            graph = self.graph()
            for _ in range(self.random.randint(1, 4)):
                self.replace_any(graph)
        return zipped({**self.members, "models/model.json": json.dumps(graph).encode()}.items())

    def replace_any(self, content):
        while isinstance(content, dict | list) and content:
            key = self.random.choice(sorted(content) if isinstance(content, dict) else range(len(content)))
            if not isinstance(content[key], dict | list) or self.random.random() < 0.05:
                values = (
                    self.code,
                    "",
                    -1,
                    2**70,
                    None,
                    [],
                    {},
                    True,
                    1e308,
                    [self.code],
                    {"as_expr": {"expr_str": self.code}},
                )
                content[key] = self.random.choice(values)
                return
            content = content[key]

    def evil_sizes(self, expressions=EXPRESSIONS):
        graph = self.graph()
        found = places(graph, "expr_str")
        chosen = found if self.random.random() < 0.5 else [self.random.choice(found)]
        expression = self.random.choice(expressions).format(code=self.code, text=self.code)
        for place in chosen:
            place["expr_str"] = expression
        return graph

    def with_sizes(self):
        return self.with_graph(self.evil_sizes())

    def with_endless_sizes(self):
        return self.with_graph(self.evil_sizes(ENDLESS))

    def with_a_graph_twice(self):
        """Which of the two torch takes depends on where they stand."""
        name = "models/model.json"
        members = list({**self.members, name: json.dumps(self.evil_sizes()).encode()}.items())
        place = self.random.choice((len(members), self.random.randint(0, len(members))))
        return zipped([*members[:place], (name, self.members[name]), *members[place:]])

    def with_two_roots(self):
        evil = zipped({**self.members, "models/model.json": json.dumps(self.evil_sizes()).encode()}.items(), root="a")
        made = io.BytesIO(evil)
        with zipfile.ZipFile(made, "a") as archive:
            for name, content in self.members.items():
                archive.writestr(f"b/{name}", content)
        return made.getvalue()

    def with_another_operator(self):
        graph = self.graph()
        node = self.random.choice(graph["graph_module"]["graph"]["nodes"])
        node["target"] = self.random.choice(TARGETS)
        node["inputs"] = [{"name": "", "arg": {"as_string": str(self.mark)}, "kind": 1}]
        return self.with_graph(graph)

    def with_a_file_from_an_operator(self):
        """`aten.from_file` makes the file that it is to map."""
        graph = self.graph()
        node = next(node for node in graph["graph_module"]["graph"]["nodes"] if "mean" in node["target"])
        given = {"filename": {"as_string": str(self.mark)}, "shared": {"as_bool": True}, "size": {"as_int": 4}}
        node["target"] = "torch.ops.aten.from_file.default"
        node["inputs"] = [{"name": name, "arg": value, "kind": 1} for name, value in given.items()]
        return self.with_graph(graph)

    def with_an_operator_as_argument(self):
        graph = self.graph()
        argument = self.random.choice(places(graph["graph_module"]["graph"]["nodes"], "arg"))
        argument["arg"] = {"as_operator": self.random.choice(TARGETS)}
        return self.with_graph(graph)

    def renamed(self, names):
        name = self.random.choice(names)
        evil = self.random.choice(
            (
                f"{name}: {self.code}",
                f"{name}={self.code}",
                f"{name}=0):\n    pass\n{self.code}\ndef f(x",
                f'{name}"), {self.code}, ("',
                f"{name};{self.code}",
            )
        )
        text = json.dumps({kind: content.decode() for kind, content in self.members.items() if kind.endswith(".json")})
        text = text.replace(json.dumps(json.dumps(name))[1:-1], json.dumps(json.dumps(evil))[1:-1])
        return zipped({**self.members, **{kind: part.encode() for kind, part in json.loads(text).items()}}.items())

    def with_code_in_names_of_values(self):
        """The last input may have a default: what computes it is run when the function is compiled."""
        names = sorted(self.graph()["graph_module"]["graph"]["tensor_values"])
        return self.renamed(self.random.choice((names, ["images"])))

    def with_code_in_names_of_weights(self):
        return self.renamed(sorted(json.loads(self.members["data/weights/model_weights_config.json"])["config"]))

    def with_code_in_names_of_modules(self):
        graph = self.graph()
        for node in graph["graph_module"]["graph"]["nodes"]:
            stack = f'L__self__,,x.Y;L__self__a,a"), {self.code}, (",x.Z'
            node["metadata"] = {"nn_module_stack": stack, "source_fn_stack": f"a,{self.random.choice(TARGETS)}"}
        graph["graph_module"]["module_call_graph"][-1]["fqn"] = f'a"), {self.code}, ("'
        return self.with_graph(graph)

    def with_imports(self):
        """Descriptions of inputs and outputs name modules, which torch imports: `evil_module` leaves a mark."""
        graph = self.graph()
        signature = graph["graph_module"]["module_call_graph"][0]["signature"]
        leaf = {"type": None, "context": None, "children_spec": []}
        enum = [{"__enum__": True, "fqn": "evil_module:A", "name": "B"}]
        factory = {"default_factory_module": "evil_module", "default_factory_name": "A", "dict_context": ["x"]}
        tree = self.random.choice(
            (
                {"type": "builtins.dict", "context": json.dumps(enum), "children_spec": [leaf]},
                {"type": "collections.defaultdict", "context": factory, "children_spec": [leaf]},
                {"type": "builtins.tuple", "context": json.dumps(enum), "children_spec": [leaf]},
            )
        )
        signature[self.random.choice(("in_spec", "out_spec"))] = json.dumps([1, tree])
        return self.with_graph(graph)

    def with_code_to_guard_inputs(self):
        graph = self.graph()
        signature = graph["graph_module"]["module_call_graph"][0]["signature"]
        place, key, value = self.random.choice(
            (
                (graph, "guards_code", [self.code]),
                (graph, "verifiers", [self.code]),
                (signature, "forward_arg_names", [f"images={self.code}"]),
            )
        )
        place[key] = value
        return self.with_graph(graph)

    def pickled(self):
        import torch

        made = io.BytesIO()
        torch.save((Touches(self.mark),), made)
        return self.random.choice((made.getvalue(), pickle.dumps(Touches(self.mark))))

    def with_pickled_samples(self):
        return zipped({**self.members, "data/sample_inputs/model.pt": self.pickled()}.items())

    def with_pickled_weights(self):
        kind, file = self.random.choice(
            (("weights", "weight_0"), ("constants", "tensor_0"), ("constants", "opaque_obj_0"))
        )
        name = f"data/{kind}/model_{kind}_config.json"
        config = json.loads(self.members[name])
        config["config"]["evil"] = {"path_name": file, "is_param": False, "use_pickle": True, "tensor_meta": None}
        changed = {name: json.dumps(config).encode(), f"data/{kind}/{file}": self.pickled()}
        return zipped({**self.members, **changed}.items())

    def with_tensors_out_of_bounds(self):
        name = "data/weights/model_weights_config.json"
        config = json.loads(self.members[name])
        about = self.random.choice(list(config["config"].values()))["tensor_meta"]
        for key in ("sizes", "strides"):
            about[key] = [{"as_int": self.random.choice((2**20, 2**40, 2**62, -1))} for _ in about[key]]
        about["storage_offset"] = {"as_int": self.random.choice((0, -8, 2**40, 2**63))}
        return zipped({**self.members, name: json.dumps(config).encode()}.items())

    def with_other_members(self):
        return zipped([*self.members.items(), (self.random.choice(MEMBERS), self.pickled())])

    def with_members_outside(self):
        return zipped([*((f"model/{name}", part) for name, part in self.members.items()), ("/tmp/evil", b"")], root="")

    def with_compressed_members(self):
        large = self.random.choice(("models/model.json", "extra/large", "data/weights/weight_0"))
        return zipped({**self.members, large: b" " * 2**22}.items(), compression=zipfile.ZIP_DEFLATED)

    def with_two_names_of_a_member(self):
        """The name before the content differs from the one in the list at the end of the zip."""
        evil = {**self.members, "models/model.json": json.dumps(self.evil_sizes()).encode()}
        content = bytearray(zipped({**evil, "models/modex.json": self.members["models/model.json"]}.items()))
        here = content.rfind(b"models/modex.json") if self.random.random() < 0.5 else content.find(b"models/modex.json")
        content[here : here + 17] = b"models/model.json"
        return bytes(content)

    def with_another_zip_before(self):
        evil = zipped({**self.members, "models/model.json": json.dumps(self.evil_sizes()).encode()}.items())
        parts = [evil, zipped(self.members.items())]
        self.random.shuffle(parts)
        return b"".join(parts)

    def with_other_bytes(self):
        content = bytearray(zipped(self.members.items()))
        for _ in range(self.random.randint(1, 20)):
            content[self.random.randrange(len(content))] = self.random.randrange(256)
        return bytes(content)

    def with_its_end_cut_off(self):
        content = zipped(self.members.items())
        return content[: self.random.randrange(len(content))]
