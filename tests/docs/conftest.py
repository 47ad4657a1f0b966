"""One warm process for all pages and examples of a test process."""

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

WARM = Path(__file__).with_name("warm.py")


class Warm:
    """Hands over to a warm process: `command` before the words of a call, `folder` with a `weakspot` that does it."""

    def __init__(self, folder):
        self.folder, path = folder, str(folder / "socket")
        self.command = [sys.executable, "-IS", str(WARM), path]
        shim = folder / "weakspot"
        shim.write_text(f'#!/bin/sh\nexec {shlex.join(self.command)} weakspot "$@"\n')
        shim.chmod(0o755)
        self._process = subprocess.Popen([sys.executable, WARM, path], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout.readline() == "ready\n"

    def close(self):
        self._process.kill()
        self._process.stdout.close()
        self._process.wait()


@pytest.fixture(scope="session")
def warm():
    with tempfile.TemporaryDirectory(prefix="warm-", dir="/tmp") as folder:  # the path of a socket must be short
        made = Warm(Path(folder))
        yield made
        made.close()
