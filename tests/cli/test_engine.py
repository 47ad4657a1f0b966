"""Who does the work, as the command line takes it; that Ray does it is in tests/engines and in the documentation."""

import json

import pytest


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--engine", "spark"], "engine is 'spark', expected 'local' or 'ray'"),
        (["--address", "10.0.0.1:6379"], "address is for the engine ray: add engine ray"),
        (["--engine-workers", "2"], "engine_workers is for the engine ray"),
        (["--gpus-per-worker", "0.5"], "gpus_per_worker is for the engine ray"),
        (["--engine", "ray", "--engine-workers", "0"], "engine_workers is 0: expected 1 or more"),
        (["--threads", "0"], "threads is 0: expected 1 or more"),
    ],
)
@pytest.mark.parametrize("command", ["examine", "coverage", "plan"])
def test_what_makes_no_sense_is_refused(weakspot, project, command, options, message):
    status, printed, said = weakspot(command, project.file, *options)
    assert (status, printed) == (2, "")
    assert message in said


def test_the_number_of_threads_is_noted_in_the_finding(weakspot, project):
    assert weakspot("coverage", project.file, "--limit", 8, "--threads", 2, "--quiet")[0] == 0
    (finding,) = [*project.run.glob("findings/coverage.neuron_coverage/finding.json")]
    assert json.loads(finding.read_text())["provenance"]["execution"]["threads"] == 2


def test_the_plan_tells_memory(weakspot, project):
    status, printed, _ = weakspot("plan", project.file, "--limit", 8, "--json")
    assert status == 0
    (cost, *_) = json.loads(printed)
    assert cost["workers"] == 1
    assert 50e6 < cost["driver_bytes"] < 20e9
    assert cost["worker_bytes"] is None
    assert "memory" in weakspot("plan", project.file, "--limit", 8)[1]
