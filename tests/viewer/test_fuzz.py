"""The HTTP surface, fuzzed from its own description: whatever comes, an answer that the description names."""

import json
import shutil
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.viewer.runs import client_of
from weakspot.core.run import Run
from weakspot.viewer.app import create_app

NASTY = st.sampled_from(
    [
        "",
        "0",
        "-1",
        "1e9",
        "٣",
        "..",
        "../..",
        "%00",
        "\x00",
        "nan",
        "null",
        "true",
        "a:is:b",
        "x" * 5000,
        "<script>",
        "😀",
        "'",
    ]
)


@pytest.fixture(scope="module")
def client(small_run, retrained_run, tmp_path_factory):
    """On a copy: labels are written."""
    return client_of(shutil.copytree(small_run, tmp_path_factory.mktemp("fuzzed") / "run"), retrained_run)


def operations():
    """Every operation of the API with its description."""
    described = create_app([], token="x", hosts=[]).openapi()
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            yield pytest.param(path, method, operation, described, id=f"{method} {path}")


def values(schema, described):
    """Values that a schema allows, and such as no schema allows."""
    if "$ref" in schema:
        schema = described["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return st.one_of([values(one, described) for one in schema[several]])
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum", [schema.get("const")]))
    kinds = {
        "integer": lambda: st.integers(schema.get("minimum", -(2**70)), min(schema.get("maximum", 2**70), 2**70)),
        "number": lambda: st.floats(allow_nan=False),
        "boolean": st.booleans,
        "string": lambda: st.text(max_size=min(20, schema.get("maxLength", 20))),
        "array": lambda: st.lists(values(schema.get("items", {}), described), max_size=4),
        "null": st.none,
        "object": lambda: objects(schema, described),
    }
    return kinds[schema["type"]]() if schema.get("type") in kinds else st.text(max_size=10)


def objects(schema, described):
    """Mappings with the properties that are described, or with any."""
    known = {name: values(own, described) for name, own in schema.get("properties", {}).items()}
    if known:
        return st.fixed_dictionaries(known)
    more = schema.get("additionalProperties")
    return st.dictionaries(
        st.text(max_size=8), values(more, described) if isinstance(more, dict) else st.none(), max_size=3
    )


def bodies(operation, described):
    """What may be sent, what may not, and what is no JSON at all."""
    if "requestBody" not in operation:
        return st.none()
    kind, content = next(iter(operation["requestBody"]["content"].items()))
    allowed = values(content.get("schema", {}), described).map(lambda value: json.dumps(value).encode())
    anything = st.recursive(st.none() | st.integers() | st.text(max_size=5), st.lists, max_leaves=5)
    odd = anything.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=50)
    return st.tuples(st.sampled_from([kind, "application/json", "text/plain"]), allowed | odd)


@st.composite
def requests(draw, path, operation, described):
    """An address with its query, and a body."""
    query = []
    for parameter in operation.get("parameters", []):
        value = draw(values(parameter["schema"], described) | NASTY)
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", quote(str(value), safe="") or "%20")
        elif value is not None and draw(st.booleans() | st.just(parameter.get("required", False))):
            query += [(parameter["name"], one) for one in (value if isinstance(value, list) else [value])]
    return path, [(name, str(value)) for name, value in query], draw(bodies(operation, described))


@pytest.mark.parametrize(("path", "method", "operation", "described"), list(operations()))
def test_every_answer_is_one_of_those_described(client, path, method, operation, described, capfd):
    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(requests(path, operation, described))
    def try_one(request):
        address, query, sent = request
        headers, body = ({}, None) if sent is None else ({"Content-Type": sent[0]}, sent[1])
        answer = client.request(method, address, params=query, content=body, headers=headers)
        told = operation["responses"].get(str(answer.status_code))
        assert told is not None, (answer.status_code, answer.text[:200])
        kind = answer.headers["content-type"].partition(";")[0]
        assert kind in told.get("content", {kind: 0}), kind
        if answer.status_code >= 400:
            assert set(answer.json()) >= {"error"}
            assert "Traceback" not in answer.text

    try_one()
    assert capfd.readouterr().err == ""


def test_what_is_described_is_there():
    paths = {parameter.id for parameter in operations()}
    assert {"get /api/run", "get /api/samples", "post /api/samples.csv", "put /api/label", "get /api/lesions"} <= paths
    assert len(paths) > 30


@pytest.mark.parametrize(
    "method", ["HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "X" * 300]
)
def test_other_methods_are_refused(client, method):
    for path in ("/", "/samples", "/api/run", "/api/nothing", "/static/page.css"):
        answer = client.request(method, path)
        assert answer.status_code in ((200, 404, 405) if method == "HEAD" else (404, 405))


def test_a_defect_of_the_viewer_is_told_to_the_terminal_alone(tmp_path, capsys, monkeypatch):
    client = client_of(Run.create(tmp_path / "run").folder)
    monkeypatch.setattr("weakspot.viewer.overview.described", lambda reader: 1 / 0)
    answer = client.get("/api/run")
    assert answer.status_code == 500
    assert answer.json() == {"error": "the viewer failed, which is a defect of weakspot: its terminal shows the error"}
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert answer.headers["x-content-type-options"] == "nosniff"
    monkeypatch.undo()
    assert client.get("/api/run").status_code == 200, "and it goes on"
