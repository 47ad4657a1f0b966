"""A Run, a policy, and keys to sign with."""

import shutil
import subprocess

import pytest

from tests.evidence.samples import POLICY
from tests.gate.samples import causes, coverage, make_run, neighbours, pairs


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "run", neighbours(), pairs(), coverage(), causes([["s1", "s2"]]))


@pytest.fixture
def policy(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    return path


@pytest.fixture
def make_key(tmp_path):
    """Makes a key of that name, and a file of allowed signers with it alone."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not there: install OpenSSH to test signatures (apt-get install openssh-client)")

    def made(name):
        key, signers = tmp_path / name, tmp_path / f"{name}.signers"
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", key]
        subprocess.run(command, check=True, capture_output=True)
        signers.write_text(f"{name}@example.com {key.with_suffix('.pub').read_text()}")
        return key, signers

    return made
