"""A Ray that is not there, does not start, or dies: told in bounded time, and never by Ray's own sudden end."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from weakspot.core.errors import ConfigError
from weakspot.engines import ray_start, ray_watch
from weakspot.engines.ray_start import connect, own_token, start
from weakspot.engines.ray_watch import RayLostError, RayWatch


class NoRay:
    """Must not be asked."""

    def init(self, **_):
        pytest.fail("Ray itself would try for a quarter of an hour")


def closed_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("address", ["127.0.0.1:PORT", "[::1]:PORT", "ray://127.0.0.1:PORT", "nonsense", "", "host:"])
def test_a_cluster_that_is_not_there_is_told_at_once(address):
    with pytest.raises(ConfigError, match=r"no Ray cluster can be reached at .*give the address"):
        connect(NoRay(), address.replace("PORT", str(closed_port())))


@pytest.mark.timeout(120)
def test_a_port_that_answers_otherwise_than_ray_is_told(monkeypatch):
    monkeypatch.setattr(ray_start, "_KNOWN", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"at 127.0.0.1:{port}: .*does not answer as Ray does within 0.5 s"):
            connect(NoRay(), f"127.0.0.1:{port}")


@pytest.mark.parametrize("error", [RuntimeError("The current node timed out\nmore"), OSError("no room"), SystemExit(1)])
def test_a_ray_that_does_not_start_is_told(error):
    def fails(**_):
        raise error

    with pytest.raises(ConfigError, match=r"Ray cannot be started on this machine: .*use the engine local") as told:
        start(SimpleNamespace(init=fails), cpus=1, gpus=0)
    assert "\n" not in str(told.value)


def test_a_ray_of_our_own_has_a_token_of_its_own(monkeypatch):
    monkeypatch.setattr(ray_start, "_take_token", lambda: None)
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    tokens = []
    for _ in range(2):
        with own_token():
            assert os.environ["RAY_AUTH_MODE"] == "token"
            tokens.append(os.environ["RAY_AUTH_TOKEN"])
        assert "RAY_AUTH_MODE" not in os.environ
        assert "RAY_AUTH_TOKEN" not in os.environ
    assert len(set(tokens)) == 2
    assert min(map(len, tokens)) >= 32


@pytest.mark.parametrize("given", [{"RAY_AUTH_MODE": "disabled"}, {"RAY_AUTH_TOKEN": "mine"}])
def test_what_the_user_says_of_tokens_counts(monkeypatch, given):
    monkeypatch.setattr(ray_start, "_take_token", lambda: None)
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with own_token():
        assert {name: os.environ[name] for name in given} == given
        assert "RAY_AUTH_TOKEN" in given or "RAY_AUTH_TOKEN" not in os.environ


@pytest.fixture
def two_processes(monkeypatch, tmp_path):
    """What stands for Ray's two processes: sockets that answer."""
    head = socket.create_server(("127.0.0.1", 0))
    node = socket.socket(socket.AF_UNIX)
    node.bind(str(tmp_path / "raylet"))
    node.listen()
    host, port = head.getsockname()
    context = SimpleNamespace(gcs_address=f"{host}:{port}")
    worker = SimpleNamespace(_global_node=SimpleNamespace(raylet_socket_name=str(tmp_path / "raylet")))
    monkeypatch.setattr(ray_watch, "import_module", lambda _: worker)
    monkeypatch.setattr(ray_watch, "_EVERY", 0.0)
    with head, node:
        yield SimpleNamespace(get_runtime_context=lambda: context), {"gcs_server": head, "raylet": node}


@pytest.mark.parametrize("which", ["gcs_server", "raylet"])
def test_a_process_of_ray_that_is_gone_is_noticed(two_processes, which):
    ray, sockets = two_processes
    watch = RayWatch(ray, ours=True)
    watch.check()
    sockets[which].close()
    with pytest.raises(RayLostError, match=f"Ray's own process {which} was killed .*what was done is kept"):
        watch.check()


def test_a_cluster_may_be_away_for_a_while(two_processes, monkeypatch):
    ray, sockets = two_processes
    now = [100.0]
    monkeypatch.setattr(ray_watch.time, "monotonic", lambda: now[0])
    watch = RayWatch(ray, ours=False)
    sockets["gcs_server"].close()
    for seconds in (0, 10, 15):
        now[0] += seconds
        watch.check()
    now[0] += 10
    with pytest.raises(RayLostError):
        watch.check()


MODULE = """
import time

import torch
from torch import nn


class Slow(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, inputs):
        time.sleep(0.3)
        return self.fc(inputs)


def net():
    torch.manual_seed(0)
    return Slow()


def data():
    from weakspot.data.sources import ArraySource

    return ArraySource(torch.linspace(0, 1, 900).reshape(300, 3), torch.arange(300) % 2)
"""
CONFIG = "subject: {model: 'slow_net:net', scores: logits}\ndata: {test: 'slow_net:data'}\nask: {neuron_coverage: }\n"
CALL = "from weakspot.cli.main import run; run()"
QUICK = ["--engine-workers", "1", "--batch-size", "2", "--shard-size", "4", "--quiet"]


@pytest.fixture
def project(tmp_path):
    (tmp_path / "slow_net.py").write_text(textwrap.dedent(MODULE))
    (tmp_path / "weakspot.yaml").write_text(CONFIG)
    return tmp_path


def children(process):
    """The processes that one started, by what they are called."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(path.read_text().rpartition(")")[2].split()[1]) == process:
                name = (path.parent / "cmdline").read_bytes().split(b"\0")[0]
                found[Path(os.fsdecode(name)).name] = int(path.parent.name)
        except (OSError, ValueError, IndexError):
            continue
    return found


@pytest.mark.slow
@pytest.mark.parametrize("which", ["raylet", "gcs_server"])
def test_where_ray_is_killed_the_command_ends_with_a_message_and_what_was_done_is_kept(project, which):
    command = [sys.executable, "-c", CALL, "examine", "weakspot.yaml", "--engine", "ray", *QUICK]
    with subprocess.Popen(command, cwd=project, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 200
        while not any(project.glob("runs/weakspot/work/*/shard-000002")):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        started = children(process.pid)
        os.kill(started[which], signal.SIGKILL)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 2, told
    assert f"weakspot: Ray's own process {which} is gone" in told.splitlines()[-1]
    assert "Traceback" not in told
    assert any(project.glob("runs/weakspot/work/*/shard-000002"))
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{number}/exe").exists() for number in started.values()):
        assert time.monotonic() < deadline, "nothing of Ray is left behind"
        time.sleep(0.1)


ASK = """
import os, subprocess, sys
from weakspot.engines import RayEngine
from weakspot.engines.ray_start import _ASK

with RayEngine(workers=1) as engine:
    engine._connect(gpus=0)
    address = engine._ray.get_runtime_context().gcs_address
    token = os.environ["RAY_AUTH_TOKEN"]
    seen = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert token not in seen, "everybody can see it"
    for name in ("mine", "other", None):
        given = {key: value for key, value in os.environ.items() if key != "RAY_AUTH_TOKEN"}
        given["HOME"] = sys.argv[1]
        if name is None:
            del given["RAY_AUTH_MODE"]
        else:
            given["RAY_AUTH_TOKEN"] = token if name == "mine" else "f" * 64
        asked = subprocess.run([sys.executable, "-c", _ASK, address], env=given, capture_output=True, timeout=100)
        print(name, asked.returncode == 0)
"""


@pytest.mark.slow
def test_others_on_the_machine_cannot_use_a_ray_that_was_started_here(tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
    told = subprocess.run(
        [sys.executable, "-c", ASK, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert told.stdout.split() == ["mine", "True", "other", "False", "None", "False"], told.stderr[-2000:]
