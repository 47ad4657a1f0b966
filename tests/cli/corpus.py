"""Bad configurations and options, by where they are wrong. MODULE stands for the project's own module."""
# ruff: noqa: E501

SUBJECT_WRONG = {
    "model": ["3", "null", "[a]", "{a: 1}", "''", "':'", "'a:'", "':b'", "nowhere:net", "MODULE:nothing", "MODULE:NUMBER",
              "MODULE", "none.pt2", "none.onnx", "data.npz", "broken.pt2", "broken.onnx", "'a b:c'", "MODULE:net.x"],
    "arguments": ["3", "x", "[1]", "{hiden: 3}", "{1: 2}", "{hidden: x}", "{hidden: -1}", "null"],
    "weights": ["3", "[a]", "none.pt", "none.safetensors", "data.npz", "evil.pt", "other.pt", "empty.pt", "."],
    "weights_entry": ["3", "[a]"],
    "task": ["3", "detection", "clasification", "[classification]", "null", "''"],
    "classes": ["true", "2.5", "0", "-3", "[]", "[a, a]", "[a, 1]", "{a: 1}", "none.txt", "empty.txt", "twice.txt", ".",
                "3", "[a, b, c]", "data.npz"],
    "scores": ["3", "logit", "probability", "true", "[logits]"],
    "bounds": ["3", "x", "[1]", "[1, 2, 3]", "[1, 0]", "[0, 0]", "[a, b]", "[0, .nan]", "[0, .inf]", "[true, 2]", "{a: 1}"],
    "output": ["2.5", "[1]", "logits", "7", "true", "{a: 1}"],
    "preprocess": ["3", "x", "nowhere:f", "MODULE:nothing", "MODULE:NUMBER", "[1]", "{meen: 1}", "{mean: x}", "{std: 0}",
                   "{scale: 0}", "{mean: []}", "{bgr: 1}", "{mean: [1, 2]}", "{scale: .nan}", "MODULE:fails"],
    "device": ["3", "toaster", "''", "[cpu]", "cuda:99"],
    "box": ["3", "x", "[0]", "[a]", "[2.5]", "[-1, 4]", "{a: 1}"],
    "window": ["3", "x", "[0]", "[a]", "[2.5]", "[-1, 4]", "{a: 1}"], "window_overlap": ["x", "[1]", "true"],
    "cuda_graphs": ["1", "x", "[true]"],
    "fingerprint": ["3", "[a]"],
    "modle": ["x"], "weight": ["x"], "Task": ["classification"],
}  # fmt: skip
DATA_WRONG = [
    "3", "null", "true", "[a]", "''", "nowhere", "none.npz", "none.npy", "none.csv", "none.zip", "none-ubyte", "none.idx.gz",
    "broken.npz", "broken.npy", "broken.csv", "broken.zip", "broken-ubyte", "empty_folder", "MODULE:nothing", "nowhere:f",
    "MODULE:NUMBER", "MODULE:scaled", "MODULE:gives_text", "MODULE:fails_at_once", "{}", "{paht: data.npz}", "{path: 3}",
    "{path: data.npz, inputs: x}", "{path: data.npz, targets: x}", "{path: data.npz, targets: [y_test]}",
    "{path: data.npz, channels: middle}", "{path: data.npz, size: [1, 1]}", "{path: data.npz, mode: RGB}",
    "{path: data.npz, kind: folder}", "{path: data.npz, kind: parquet}", "{path: data.npz, kind: 3}",
    "{path: data.npz, metadata: none.csv}", "{path: data.npz, metadata: broken.csv}", "{path: data.npz, metadata: 3}",
    "{path: data.npz, metadata: few.csv}", "{path: data.npz, metadata: few.csv, metadata_id: no}",
    "{path: empty_folder, size: 3}", "{path: empty_folder, size: [0, 1]}", "{path: empty_folder, size: [1]}",
    "{path: empty_folder, size: [1, -1]}", "{path: empty_folder, size: [1.5, 2]}", "{path: empty_folder, mode: CMYK}",
    "{path: empty_folder, arguments: {a: 1}}", "{path: 'MODULE:gives_text', arguments: {a: 1}}", "{path: data.npz, x: 1}",
    "{path: empty_folder, kind: nifti}", "{path: data.npz, kind: nifti}", "{path: data.npz, spacing: [1, 1, 1]}",
    "{path: empty_folder, kind: nifti, spacing: 1}", "{path: empty_folder, kind: nifti, spacing: [a]}",
    "{path: empty_folder, kind: nifti, cases: none.txt}", "{path: empty_folder, kind: nifti, orientation: LPS}",
    "{path: few.csv, path_column: no}", "{path: few.csv, root: nowhere}", "{path: few.csv, targets: no}",
    "{path: few.csv, delimiter: 3}", "{path: 'a\\0b'}", "{path: " + "x" * 5000 + "}", "{path: '../../../../nowhere'}",
]  # fmt: skip
ASK_WRONG = {
    "coverage": [
        "3", "x", "[nc]", "{criteria: 3}", "{criteria: [nx]}", "{criteria: [3]}", "{criteria: [[nc]]}",
        "{treshold: 1}", "{nc: 5}", "{nc: x}", "{nc: [1]}", "{nc: {threshold: high}}", "{nc: {threshold: true}}",
        "{nc: {threshold: null}}", "{nc: {threshold: [0.5]}}", "{nc: {threshold: .nan}}", "{nc: {threshold: .inf}}",
        "{nc: {threshold: 1" + "0" * 400 + "}}", "{nc: {tresh: 1}}", "{nc: {layers: 3}}", "{nc: {layers: [1, 2]}}",
        "{nc: {layers: {a: b}}}", "{nc: {1: 2}}", "{nc: {null: 2}}", "{kmnc: {sections: 0}}", "{kmnc: {sections: -1}}",
        "{kmnc: {sections: 2.5}}", "{kmnc: {sections: many}}", "{kmnc: {sections: true}}", "{kmnc: {sections: 9" + "9" * 30 + "}}",
        "{kmnc: {ranges: x}}", "{kmnc: {ranges: {a: 1}}}", "{idc: {neurons: 0}}", "{idc: {neurons: x}}", "{idc: {clusters: x}}",
        "{idc: {method: magic}}", "{idc: {where: nowhere}}", "{idc: {method: 3}}", "{idc: {importance: x}}", "{true: 1}",
    ],
    "robustness": [
        "3", "[1]", "{looks: 2.5}", "{looks: 0}", "{looks: -1}", "{looks: many}", "{looks: true}", "{looks: null}",
        "{threshold: 0}", "{threshold: -1}", "{threshold: x}", "{threshold: .nan}", "{early_stopping: 1}", "{cutoff: 0.5}",
        "{early_stopping: x}", "{select: pool}", "{select: {}}", "{select: {from: 3}}", "{select: {from: a, budget: x}}",
        "{seed: x}", "{seed: 1.5}", "{neighbours: 3}", "{neighbours: {}}", "{neighbours: {spin: 3}}", "{neighbours: {rotate: x}}",
        "{neighbours: {rotate: .nan}}", "{neighbours: {rotate: .inf}}", "{neighbours: [rotate]}",
        "{neighbours: {1: 2}}", "{variation: rotate}", "{variation: 3}", "{lokos: 3}", "{neighbours: {rotate: [1, 2, 3]}}",
    ],
    "classes": [
        "3", "x", "{threshold: x}", "{threshold: true}", "{layers: 3}", "{side: left}", "{side: 3}", "{cutoff: nonsense}",
        "{normalise: 1}", "{least_images: 1}", "{least_images: x}", "{most_frequent: x}", "{most_frequent: 2.5}",
        "{named: 3}", "{named: ab}", "{named: [[a, b, c]]}", "{replicates: 1}", "{replicates: -1}", "{replicates: x}",
        "{pictures: x}", "{thumbnail: x}", "{seed: x}", "{label: test}", "{select: {from: nowhere}}",
        "{select: {from: 3}}", "{select: test}", "{select: {from: test, budget: 0}}", "{budget: 3}", "{trehsold: 1}", "{near: nonsense}",
    ],
    "lesions": [
        "3", "{looks: 0}", "{looks: x}", "{foreground: -1}", "{foreground: []}", "{threshold: x}", "{threshold: 2}",
        "{smallest: 0}", "{dilation: -1}", "{least_iou: 0}", "{log_epsilon: 0}", "{seed: x}", "{}", "{splits: test}",
        "{splits: 3}", "{fit: train}", "{fit: 3}", "{epochs: 3}", "{fit: nowhere}", "{fit: test, folds: 1}",
        "{fit: test, method: best}", "{fit: test, readout: x}", "{fit: test, last_rate: 1}", "{trained_on: 3}",
        "{trained_on: nowhere.txt}", "{fit: test, patient: 3}", "{look: 3}",
    ],
    "neuron_coverage": ["3", "{threshold: high}", "{treshold: 1}", "{split: 3}", "{split: nowhere}", "{split: [test]}"],
    "k_multisection": ["{ranges: x}", "{sections: x}", "{ranges: null}"],
    "MODULE:Mine": ["{times: x}", "{times: 1.5}", "{time: 1}", "3"],
    "MODULE:Needy": ["{}", "null", "{must: x}"],
    "MODULE:net": ["{}"], "MODULE:nothing": ["{}"], "nowhere:Probe": ["{}"], "coverrage": ["{}"], "''": ["{}"],
    "neuron_coverag": ["{}"], "3": ["{}"], "null": ["{}"], "[a]": ["{}"],
}  # fmt: skip
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)
TEXTS = [
    "", "   ", "# nothing", "just text", "3", "[1, 2]", "subject", "subject:", "subject: 3", "subject: {}", "data: {}",
    "subject: [", "subject: {model: 'a:b'", "a: b: c", "\tsubject: 1", "subject: !!python/object/apply:os.mkdir [x]",
    "subject: !!python/name:os.system", "- subject", "subject: &a {model: *a}", "subject: *nowhere", "? [a]\n: b", "\x00", "\x07",
    "subject: {model: 'a:b'}\nsubject: {model: 'a:b'}", "%YAML 9.9\n---\na: b", "---\na: 1\n---\nb: 2", "a: " + "[" * 2000,
    "{" * 500, "a: 2020-99-99", "a: 0x", "a: " + "9" * 5000, BOMB, "subject: {model: 'a:b'}\ndata: {../x: data.npz}",
    "subject: {model: 'a:b'}\ndata: {'a/b': data.npz}", "subject: {model: 'a:b'}\ndata: {true: data.npz}",
    "subject: {model: 'a:b'}\ndata: {'': data.npz}", "subject: {model: 'a:b'}\ndata: {'a\\nb': data.npz}", "'",
]  # fmt: skip
RUN_WRONG = ["3", "[a]", "{a: 1}", "true"]
SET_WRONG = [
    "nonsense", "=3", "", "looks=[", "looks=x", "looks=2.5", "looks=0", "looks=true", "looks=", "lokos=3", "threshold=.nan",
    "threshold=2", "neighbours=3", "neighbours={rotate: x}", "neighbours={spin: 1}", "seed=x", "early_stopping=3",
    "variation=x",     "looks=!!python/name:os.system", "looks={a: 1}", "a=&x [*x]", "looks=9" + "9" * 40, "neighbours={rotate: .inf}",
]  # fmt: skip
OPTIONS_WRONG = [
    ["--limit", "0"], ["--limit", "-5"], ["--limit", "x"], ["--limit", "1.5"], ["--limit", ""], ["--batch-size", "0"],
    ["--batch-size", "-1"], ["--batch-size", "x"], ["--shard-size", "0"], ["--shard-size", "x"], ["--workers", "-1"],
    ["--workers", "x"], ["--device", "toaster"], ["--device", ""], ["--device", "cuda:99"], ["--probe", "nothing"],
    ["--probe", "a:b"], ["--probe", ":"], ["--probe", ""], ["--run"], ["--nonsense"], ["more"], ["--limit"],
]  # fmt: skip


def subject_cases():
    return [
        (f"subject.{key}: {value}", with_subject(key, value))
        for key, values in SUBJECT_WRONG.items()
        for value in values
    ]


def with_subject(key, value):
    pairs = {"model": "'MODULE:net'", "scores": "logits", key: value}
    inner = ", ".join(f"{name}: {text}" for name, text in pairs.items())
    return f"subject: {{{inner}}}\ndata: {{train: data.npz, test: data.npz}}\nask: {{neuron_coverage: }}\n"


def with_data(value, split):
    return (
        f"subject: {{model: 'MODULE:net'}}\ndata:\n  {split}: {value}\nask: {{neuron_coverage: {{split: {split}}}}}\n"
    )


def with_ask(name, value):
    start = "subject: {model: 'MODULE:net', scores: logits}\ndata: {train: data.npz, test: data.npz}\nask:\n  "
    return f"{start}{name if ':' not in name else repr(name)}: {value}\n"


def nested_cases():
    """Wrong values for every option of every criterion and probe, of a kind that none of them takes."""
    options = {
        "neuron_coverage": ["threshold", "layers"], "k_multisection": ["sections", "layers", "ranges"],
        "activation_ranges": ["layers"],
        "neighbour_accuracy": ["variation", "looks", "threshold", "early_stopping", "seed"],
        "class_pairs": ["threshold", "layers", "side", "normalise", "least_images", "replicates", "pictures", "seed"],
        "lesions": ["looks", "foreground", "threshold", "smallest", "trained_on", "fit", "patient", "seed"],
        "neuron_importance": ["layers", "method", "where"],
    }  # fmt: skip
    values = ["{a: {b: c}}", "[[1]]", "2020-01-01", "{}", "[null]", "!!binary YWJj"]
    return [
        (f"{probe}.{option}: {value}", with_ask(probe, f"{{{option}: {value}}}"))
        for probe, names in options.items() for option in names for value in values
    ]  # fmt: skip


CASES = [
    *subject_cases(),
    *((f"data.{split}: {value[:60]}", with_data(value, split)) for value in DATA_WRONG for split in ("test", "extra")),
    *((f"ask.{name}: {value[:60]}", with_ask(name, value)) for name, values in ASK_WRONG.items() for value in values),
    *nested_cases(),
    *((f"text: {text[:40]!r}", text) for text in TEXTS),
    *((f"run: {value}", with_ask("neuron_coverage", "") + f"run: {value}\n") for value in RUN_WRONG),
]
