"""A cluster of two nodes on this machine, each with a Ray of its own and room for one worker."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.engines.helpers import contents
from weakspot.core.run import MANIFEST

pytestmark = pytest.mark.slow

NOTED = """
import time
from pathlib import Path

import ray


def noted(images):
    '''What comes in. A worker notes its node, and whether it sees the Run, and waits until another node did, too.'''
    context = ray.get_runtime_context() if ray.is_initialized() else None
    if context is not None and context.get_actor_id():
        sees = "sees" if Path("RUN").exists() else "blind"
        Path("SEEN", f"{context.get_node_id()}-{sees}").touch()
        deadline = time.monotonic() + 60
        while len(list(Path("SEEN").iterdir())) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
    return images
"""
CONFIG = """
subject:
  {model: "weakspot.data.digits:model", preprocess: "noted_nodes:noted", classes: 10, scores: logits, device: cpu}
data: {train: "weakspot.data.digits:train", test: "weakspot.data.digits:test"}
ask:
  coverage: {criteria: [nc, kmnc, idc], kmnc: {sections: 20}, baseline: false, agreement: false}
  robustness: {looks: 6}
  classes: {}
"""


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


@contextmanager
def node(*arguments, around=()):
    """A node of a cluster, for as long as it is needed; the command `around` it is begun first."""
    ray = [sys.executable, "-m", "ray.scripts.scripts", "start", "--node-ip-address=127.0.0.1", "--num-cpus=1"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    begun = subprocess.Popen([*around, *ray, "--block", *arguments], start_new_session=True, env=environment, **quiet)
    try:
        yield
    finally:
        os.killpg(begun.pid, signal.SIGTERM)
        begun.wait(60)


@contextmanager
def cluster(*, hidden=None):
    """The address of two nodes, of which the second does not see the folder `hidden`."""
    port, around = free_port(), ()
    if hidden is not None:
        around = ("unshare", "--mount", "sh", "-c", f'mount -t tmpfs none {hidden} && exec "$@"', "sh")
    address = f"127.0.0.1:{port}"
    with node("--head", f"--port={port}", "--include-dashboard=false"):
        wait_until(lambda: reached(port))
        with node(f"--address={address}", around=around):
            wait_until(lambda: nodes_of(address) == 2)
            yield address


def reached(port):
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def nodes_of(address):
    """How many nodes a cluster has, asked by a process of its own."""
    code = (
        "from weakspot.engines.ray_start import connect, ray_module; ray = ray_module(alone=True); "
        f"connect(ray, {address!r}); print(sum(node['Alive'] for node in ray.nodes()))"
    )
    asked = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return int(asked.stdout or 0)


def wait_until(holds, seconds=60):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)


@pytest.fixture
def project(tmp_path):
    """A file that asks for three rooms, and what is noted of the nodes that were used."""
    (tmp_path / "seen").mkdir()
    code = NOTED.replace("SEEN", str(tmp_path / "seen")).replace("RUN", str(tmp_path / "runs" / "nodes" / MANIFEST))
    (tmp_path / "noted_nodes.py").write_text(code)
    (tmp_path / "weakspot.yaml").write_text(textwrap.dedent(CONFIG))
    return tmp_path


def examined(project, name, *options):
    """Every byte of the Run that the command makes."""
    command = [str(Path(sys.executable).with_name("weakspot")), "examine", "weakspot.yaml", "--run", f"runs/{name}"]
    size = ["--limit", "64", "--shard-size", "8", "--batch-size", "8", "--threads", "1", "--quiet"]
    subprocess.run([*command, *size, *options], cwd=project, check=True, timeout=300)
    return contents(project / "runs" / name)


def seen(project):
    return [path.name.partition("-")[::2] for path in (project / "seen").iterdir()]


def test_on_two_nodes_the_bytes_are_those_of_one_process(project):
    local = examined(project, "local")
    assert sum(name.endswith("finding.json") for name in local) >= 9
    assert seen(project) == []
    with cluster() as address:
        there = examined(project, "nodes", "--engine", "ray", "--address", address, "--engine-workers", "2")
    assert there == local
    assert [how for _, how in seen(project)] == ["sees", "sees"]
    assert len({node for node, _ in seen(project)}) == 2


@pytest.mark.skipif(
    shutil.which("unshare") is None or os.geteuid() != 0, reason="only root can hide a folder from a process"
)
def test_what_is_made_where_the_run_is_not_seen_is_fetched(project):
    (project / "runs").mkdir()
    local = examined(project, "local")
    with cluster(hidden=project / "runs") as address:
        there = examined(project, "nodes", "--engine", "ray", "--address", address, "--engine-workers", "2")
    assert there == local
    assert sorted(how for _, how in seen(project)) == ["blind", "sees"]
    assert len({node for node, _ in seen(project)}) == 2
