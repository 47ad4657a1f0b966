"""Ray, begun quietly: a cluster that is there, or one on this machine alone that nobody else can reach."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
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
    """Keep Ray's remarks on workers that died off the standard output: it is told where it matters."""
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
    """Join a cluster that is there."""
    try:
        ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False, configure_logging=True)
    except Exception as error:  # Ray raises many kinds, among them ConnectionError, ValueError and RuntimeError
        reason = str(error).strip().partition("\n")[0]
        raise ConfigError(
            f"no Ray cluster can be reached at {address}: {reason}; give the address that `ray start --head` printed "
            "and, where the cluster asks for one, its token in RAY_AUTH_TOKEN; or no address, to start Ray here"
        ) from error


def start(ray: Any, *, cpus: int, gpus: int | None) -> None:
    """Start Ray on this machine, for this process: it ends with it, and listens on the loopback address only."""
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
    where = ray.util.get_node_ip_address()
    if not where.startswith("127.") and where != "::1":
        ray.shutdown()
        raise ConfigError(
            f"Ray would listen on {where}, where others can reach it: set {_ALONE}=0, or start Ray yourself and give "
            "its address"
        )
