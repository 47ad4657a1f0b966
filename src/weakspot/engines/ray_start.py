"""Starts Ray, or connects to a cluster; a local one can be reached from this machine only."""

import logging
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from typing import Any

from weakspot.core.environment import environment
from weakspot.core.errors import ConfigError

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS": "0",
}
_ALONE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Ray's own switch for machines that form no cluster: with 0 it listens on the loopback address only."""
_MODE, _TOKEN, _TOKEN_FILE = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
"""How Ray is told to ask for a token, and which."""
_REACHED = 5.0
"""Seconds within which the port of a cluster must answer."""
_KNOWN = 30.0
"""Seconds within which it must show that it is Ray."""
_ASK = "import sys; from ray._raylet import GcsClient; GcsClient(address=sys.argv[1])"


def ray_module(*, alone: bool) -> Any:
    """Ray, told what it must know before it is loaded; `alone` for one that listens on this machine only."""
    os.environ.update({name: value for name, value in _QUIET.items() if name not in os.environ})
    try:
        with environment(_ALONE, "0" if alone else "1"):
            ray = import_module("ray")
    except ImportError as error:
        raise ConfigError("the engine ray needs Ray: pip install 'weakspot[ray]'") from error
    if not ray.is_initialized():
        constants: Any = import_module("ray._private.ray_constants")
        constants.ENABLE_RAY_CLUSTER = not alone  # it may have been loaded before, for something else
    return ray


@contextmanager
def hushed() -> Iterator[None]:
    """Keep Ray's remarks on workers that died off the standard output: they are reported where it matters."""
    inner: Any = import_module("ray._private.worker")
    before = inner.print_to_stdstream
    inner.print_to_stdstream = lambda *_, **__: None
    try:
        yield
    finally:
        inner.print_to_stdstream = before


def refuse_another(ray: Any, address: str | None) -> None:
    """A process knows one cluster at a time: refuse any but the one that it is connected to."""
    there = ray.get_runtime_context().gcs_address
    if address not in (None, "auto") and address != there:
        raise ConfigError(
            f"this process is connected to Ray at {there} already, and {address} was asked for: leave the address out "
            "to use what is there, or call ray.shutdown() before"
        )


def connect(ray: Any, address: str) -> None:
    """Join a cluster that is there; one that does not answer is refused in bounded time."""
    try:
        _check_reached(_resolved(address))
        ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False, configure_logging=True)
    except Exception as error:  # Ray raises many kinds, among them ConnectionError, ValueError and RuntimeError
        reason = _first_line(error)
        raise ConfigError(
            f"no Ray cluster can be reached at {address}: {reason}; give the address that `ray start --head` printed "
            "and, where the cluster asks for one, its token in RAY_AUTH_TOKEN; or no address, to start Ray here"
        ) from error


def _resolved(address: str) -> str:
    """Where the cluster of this machine is, if that is meant."""
    if address != "auto":
        return address
    services: Any = import_module("ray._private.services")
    bootstrap = services.canonicalize_bootstrap_address(address)
    if bootstrap is None:
        raise ConnectionError("no Ray cluster runs on this machine")
    return str(bootstrap)


def _check_reached(address: str) -> None:
    """Ray itself would try for a quarter of an hour, so it is asked by a process that can be ended."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdecimal():
        raise ValueError("expected HOST:PORT")
    socket.create_connection((host.strip("[]"), int(port)), timeout=_REACHED).close()
    if address.startswith("ray://"):
        return
    try:
        asked = subprocess.run(
            [sys.executable, "-c", _ASK, address], capture_output=True, text=True, timeout=_KNOWN, check=False
        )
    except subprocess.TimeoutExpired:
        raise ConnectionError(f"it does not answer as Ray does within {_KNOWN:g} s") from None
    if asked.returncode:
        raise ConnectionError((asked.stderr.strip().splitlines() or ["it is not Ray"])[-1])


@contextmanager
def own_token() -> Iterator[None]:
    """A Ray that is started here asks for a token, by default a new one: others on this machine must not use it."""
    with ExitStack() as stack:
        if _MODE not in os.environ:
            stack.enter_context(environment(_MODE, "token"))
            if _TOKEN not in os.environ and _TOKEN_FILE not in os.environ:
                stack.enter_context(environment(_TOKEN, secrets.token_hex(32)))
        _take_token()
        yield
    _take_token()


def _take_token() -> None:
    """Let a Ray that is loaded already look at the environment again; older ones know of no token."""
    with suppress(ImportError, AttributeError):
        raylet: Any = import_module("ray._raylet")
        raylet.Config.initialize("")
        raylet.AuthenticationTokenLoader.instance().reset_cache()


def start(ray: Any, *, cpus: int, gpus: int | None) -> None:
    """Start Ray on this machine, for this process: it ends with it, and listens on the loopback address only."""
    try:
        with environment(_ALONE, "0"):
            ray.init(
                address="local",
                num_cpus=cpus,
                num_gpus=gpus,
                include_dashboard=False,
                configure_logging=True,
                logging_level=logging.ERROR,
                log_to_driver=False,
            )
    except (Exception, SystemExit) as error:  # as above; some failures of its processes end the program
        raise ConfigError(
            f"Ray cannot be started on this machine: {_first_line(error)}; use the engine local, or start Ray yourself "
            "with `ray start --head` and give its address"
        ) from error
    where = ray.util.get_node_ip_address()
    if not where.startswith("127.") and where != "::1":
        ray.shutdown()
        raise ConfigError(
            f"Ray would listen on {where}, where others can reach it: set {_ALONE}=0, or start Ray yourself and give "
            "its address"
        )


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip()}".partition("\n")[0][:300]
