"""Signatures by `ssh-keygen -Y`: the keys that people have already, checked without a network."""

import shutil
import subprocess
from pathlib import Path

from weakspot.core.errors import ConfigError, RunError

TOOL = "ssh-keygen"
NAMESPACE = "weakspot-evidence"
"""What a signature is for, so that one for something else is not taken for it."""


def sign(file: Path, key: Path) -> Path:
    """Sign a file with a private key, or with a public one whose private half an agent holds: the file with `.sig`."""
    if not key.is_file():
        raise ConfigError(
            f"there is no key {key}: expected the file of a private key, as `{TOOL} -t ed25519` makes one"
        )
    done = _called("sign", "-f", str(key.absolute()), "-n", NAMESPACE, file.name, folder=file.parent)
    made = file.with_name(f"{file.name}.sig")
    if done.returncode or not made.is_file():
        raise ConfigError(f"cannot sign with {key}: {_said(done)}")
    return made


def check_signature(content: bytes, signature: Path, signers: Path, signer: str | None = None) -> str:
    """Who signed this content: one of `signers`, a file of allowed signers as `ssh-keygen` reads it, or an error.

    signer: who must have signed it; by default any that the file allows.
    """
    if not signers.is_file():
        raise ConfigError(f"there is no file {signers}: expected allowed signers, a line `name key` each")
    allowed, made = str(signers.absolute()), str(signature.absolute())
    if signer is None:
        principals = _called("find-principals", "-s", made, "-f", allowed)
        if principals.returncode or not principals.stdout.strip():
            raise RunError(f"{signature} is not by anyone whom {signers} allows: {_said(principals)}")
        signer = principals.stdout.decode(errors="replace").splitlines()[0].strip()
    done = _called("verify", "-f", allowed, "-I", signer, "-n", NAMESPACE, "-s", made, content=content)
    if done.returncode:
        raise RunError(f"{signature} is not a signature of {signer} for this bundle: {_said(done)}")
    return signer


def _called(
    action: str, *arguments: str, folder: Path | None = None, content: bytes = b""
) -> "subprocess.CompletedProcess[bytes]":
    tool = shutil.which(TOOL)
    if tool is None:
        raise ConfigError(f"{TOOL} is missing, and signatures need it: install OpenSSH 8.2 or newer")
    return subprocess.run([tool, "-Y", action, *arguments], cwd=folder, input=content, capture_output=True, check=False)


def _said(done: "subprocess.CompletedProcess[bytes]") -> str:
    lines = (done.stderr or done.stdout).decode(errors="replace").split("\n")
    return "; ".join(line.strip() for line in lines if line.strip()) or f"{TOOL} ended with {done.returncode}"
