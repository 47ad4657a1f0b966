"""Freed memory is kept, and many files may be opened, in processes of weakspot's own, and nowhere else."""

import subprocess
import sys

import pytest

_FAULTS = """
import resource
import numpy as np
{first}
for _ in range(5):
    np.ones(1 << 22)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    np.ones(1 << 22)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(first):
    """Pages that twenty arrays of 32 MB took from the operating system, after five that were freed again."""
    command = [sys.executable, "-c", _FAULTS.format(first=first)]
    return int(subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout.split()[-1])


@pytest.mark.skipif(sys.platform != "linux", reason="a setting of the C library of GNU")
def test_freed_memory_is_kept_where_it_is_asked_for_and_not_by_importing_weakspot():
    keep = "from weakspot.core.own_process import keep_freed_memory\nassert keep_freed_memory()"
    assert faults(keep) < 1000 < faults("import weakspot.cli.main, weakspot.engines.worker")


@pytest.mark.skipif(sys.platform != "linux", reason="a setting of the C library of GNU")
def test_the_command_line_keeps_it():
    start = "import sys\nfrom weakspot.cli.main import run\nsys.argv = ['weakspot', 'version']\n"
    assert faults(start + "try:\n    run()\nexcept SystemExit:\n    print('', end='')\nsys.stdout.flush()") < 1000


def open_files(first):
    """The most files that a process may open after this, begun with 512 of at least 4,096."""
    script = f"""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (512, max(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
{first}
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    return int(told.stdout.split()[-1])


def test_the_command_line_may_open_many_files_and_importing_weakspot_changes_nothing():
    start = "import sys\nfrom weakspot.cli.main import run\nsys.argv = ['weakspot', 'version']\n"
    assert open_files(start + "try:\n    run()\nexcept SystemExit:\n    pass") >= 4096
    assert open_files("import weakspot.cli.main, weakspot.engines.worker") == 512
