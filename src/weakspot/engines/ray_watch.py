"""Watches Ray's own processes: if they die, Ray would end the whole program without a message."""

import atexit
import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from weakspot.core.errors import RunError

_EVERY = 1.0
"""Seconds between two looks."""
_REFUSED = 2.0
"""Seconds within which a socket must answer."""
_CLUSTER = 30.0
"""Seconds that a cluster may be away, as when its head is restarted; Ray ends the program after a minute."""


class RayLostError(RunError):
    """Ray's own processes are gone; nothing can be asked of it any more."""

    end_at_once = True
    """The program must end without tidying up: Ray's own clean-up would crash it, and with another exit code."""


class RayWatch:
    """Looks now and then whether the two processes that a driver needs answer: the cluster's head and the node's own.

    ours: whether Ray was started by this process; what has died then is not started again by anybody.
    """

    def __init__(self, ray: Any, *, ours: bool):
        node: Any = import_module("ray._private.worker")._global_node
        self._places = {"gcs_server": _tcp(ray.get_runtime_context().gcs_address)}
        if node is not None:  # none where another machine speaks for this process
            self._places["raylet"] = _unix(str(node.raylet_socket_name))
        self._patience = 0.0 if ours else _CLUSTER
        self._looked = time.monotonic()
        self._away: dict[str, float] = {}

    def check(self) -> None:
        """Raise where one of them is gone."""
        now = time.monotonic()
        if now - self._looked < _EVERY:
            return
        self._looked = now
        for name, answers in self._places.items():
            if answers():
                self._away.pop(name, None)
            elif now - self._away.setdefault(name, now) >= self._patience:
                raise RayLostError(
                    f"Ray's own process {name} was killed or ran out of memory: what was done is "
                    "kept, and the same command resumes from there"
                )


def abandon() -> None:
    """Let go of a Ray that is gone: asked to shut down, it would wait for what is not there, or end the program."""
    worker: Any = import_module("ray._private.worker")
    atexit.unregister(worker.shutdown)
    node = worker._global_node
    started = [] if node is None else [held.process for kind in node.all_processes.values() for held in kind]
    for process in _descendants({one.pid for one in started if one.poll() is None}):
        with suppress(OSError):
            os.kill(process, signal.SIGKILL)


def _descendants(roots: set[int]) -> set[int]:
    """These processes and all that they started."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    family = set(roots)
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return family


def _tcp(address: str) -> Callable[[], bool]:
    host, _, port = address.rpartition(":")
    return lambda: _answers(socket.AF_UNSPEC, (host.strip("[]"), int(port)))


def _unix(path: str) -> Callable[[], bool]:
    name = path.removeprefix("unix:")
    return lambda: _answers(socket.AF_UNIX, name) if name.startswith(os.sep) else True


def _answers(family: int, address: Any) -> bool:
    try:
        if family == socket.AF_UNIX:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as tried:
                tried.settimeout(_REFUSED)
                tried.connect(address)
        else:
            socket.create_connection(address, timeout=_REFUSED).close()
    except OSError:
        return False
    return True
