"""Signatures, by the real ssh-keygen: who signed is checked, and a bundle that was forged whole does not pass."""

import shutil
import subprocess

import pytest

from tests.gate.samples import neighbours
from weakspot.cli.verdict_commands import verify, write
from weakspot.core.errors import ConfigError, RunError
from weakspot.evidence import verify_bundle, write_bundle


@pytest.fixture
def signed(run, policy, make_key):
    key, signers = make_key("alice")
    write_bundle(run, run.folder / "evidence", policy=policy, key=key)
    return run.folder / "evidence", signers


def test_a_signature_says_who_stands_for_a_bundle(signed):
    folder, signers = signed
    found = verify_bundle(folder, signers=signers)
    assert found.state == "authentic, signed by alice@example.com"
    assert verify_bundle(folder, signers=signers, signer="alice@example.com") == found


def test_without_signers_a_signature_shows_nothing(signed, capsys):
    folder, _ = signed
    found = verify_bundle(folder)
    assert (found.signed, found.signer, found.state) == (True, None, "consistent, not authenticated")
    verify(folder)
    assert "a signature is there and was not checked: say with --signers" in capsys.readouterr().out


def test_it_is_checked_with_plain_tools_too(signed):
    folder, signers = signed
    command = ["ssh-keygen", "-Y", "verify", "-f", signers, "-I", "alice@example.com", "-n", "weakspot-evidence"]
    sums = (folder / "SHA256SUMS").read_bytes()
    subprocess.run([*command, "-s", folder / "SHA256SUMS.sig"], input=sums, check=True, capture_output=True)


def test_one_who_forges_everything_has_no_key(run, policy, signed, make_key):
    folder, signers = signed
    signature = (folder / "SHA256SUMS.sig").read_bytes()
    run.save(neighbours(value=0.01, low=0.0, high=0.02))
    write_bundle(run, folder, policy=policy)
    with pytest.raises(RunError, match=r"is not signed: it holds no SHA256SUMS\.sig"):
        verify_bundle(folder, signers=signers)
    (folder / "SHA256SUMS.sig").write_bytes(signature)  # of the bundle before
    with pytest.raises(RunError, match=r"is not a signature of alice@example\.com for this bundle: "):
        verify_bundle(folder, signers=signers)
    own, _ = make_key("mallory")
    write_bundle(run, folder, policy=policy, key=own)
    with pytest.raises(RunError, match=r"is not by anyone whom .*alice\.signers allows"):
        verify_bundle(folder, signers=signers)
    with pytest.raises(RunError, match=r"is not a signature of alice@example\.com"):
        verify_bundle(folder, signers=signers, signer="alice@example.com")


def test_another_signer_than_asked_for_is_refused(signed, make_key):
    folder, signers = signed
    _, bob = make_key("bob")
    signers.write_text(signers.read_text() + bob.read_text())
    assert verify_bundle(folder, signers=signers).signer == "alice@example.com"
    with pytest.raises(RunError, match=r"is not a signature of bob@example\.com"):
        verify_bundle(folder, signers=signers, signer="bob@example.com")


def test_a_signature_for_something_else_is_none(signed, tmp_path):
    folder, signers = signed
    (folder / "SHA256SUMS.sig").unlink()
    command = ["ssh-keygen", "-q", "-Y", "sign", "-f", tmp_path / "alice", "-n", "file", folder / "SHA256SUMS"]
    subprocess.run(command, check=True, capture_output=True)
    with pytest.raises(RunError, match=r"is not a signature of alice@example\.com"):
        verify_bundle(folder, signers=signers)


@pytest.mark.parametrize("content", [b"", b"no signature\n", b"-----BEGIN SSH SIGNATURE-----\nAAAA\n"])
def test_a_damaged_signature_is_none(signed, content):
    folder, signers = signed
    (folder / "SHA256SUMS.sig").write_bytes(content)
    with pytest.raises(RunError, match=r"SHA256SUMS\.sig is not by anyone whom"):
        verify_bundle(folder, signers=signers)


@pytest.mark.usefixtures("make_key")
def test_what_cannot_be_signed_leaves_nothing(run, tmp_path):
    (tmp_path / "no_key").write_text("x")
    for key, said in ((tmp_path / "gone", "there is no key"), (tmp_path / "no_key", "cannot sign with")):
        with pytest.raises(ConfigError, match=said):
            write_bundle(run, run.folder / "evidence", key=key)
    assert not (run.folder / "evidence").exists()


def test_a_signer_is_known_by_a_key(signed, tmp_path):
    folder, _ = signed
    with pytest.raises(ConfigError, match="give the file of allowed signers"):
        verify_bundle(folder, signer="alice@example.com")
    with pytest.raises(ConfigError, match="expected allowed signers"):
        verify_bundle(folder, signers=tmp_path / "none")


def test_without_the_tool_it_is_said_what_to_install(run, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    (tmp_path / "key").write_text("x")
    with pytest.raises(ConfigError, match="ssh-keygen is missing, and signatures need it: install OpenSSH"):
        write_bundle(run, run.folder / "evidence", key=tmp_path / "key")
    assert not (run.folder / "evidence").exists()


def test_the_commands(run, make_key, capsys):
    key, signers = make_key("alice")
    write(run.folder, sign=key)
    assert ", signed\nseal: " in capsys.readouterr().out
    verify(run.folder / "evidence", signers=signers)
    assert capsys.readouterr().out.startswith("authentic, signed by alice@example.com: ")


def test_a_signature_of_sigstore_may_lie_beside(run):
    write_bundle(run, run.folder / "evidence")
    (run.folder / "evidence/SHA256SUMS.sigstore.json").write_text("{}")
    assert verify_bundle(run.folder / "evidence").state == "consistent, not authenticated"
