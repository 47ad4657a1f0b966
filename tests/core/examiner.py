"""A warm process that forks examinations for a test to kill: loading torch for each would take most of the time.

Reads one order per line, a JSON object; answers with the exit status of the child when it is over.
"""

import json
import os
import signal
import sys
import time
from contextlib import nullcontext
from pathlib import Path

from tests.core.helpers import After, Counting, Keep, numbered
from weakspot.core.engine import LocalEngine
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.plan import Plan
from weakspot.core.run import Run
from weakspot.core.source import limited
from weakspot.core.step import Step
from weakspot.core.subject import Subject
from weakspot.data import digits
from weakspot.registry import steps_for


def demo(order):
    """All questions of coverage and robustness to the embedded net."""
    plan = Plan.of(steps_for({"coverage": {"kmnc": {"sections": 20}}, "robustness": {"looks": 12}}))
    data = {"train": limited(digits.train(), 240), "test": limited(digits.test(), 240)}
    subject = Subject(NET, classes=10, scores="logits")
    how = ExecutionOptions(batch_size=8, shard_size=16, workers=1, threads=1)
    with engine(order) as doing:
        plan.run(subject, data, Run.create(order["folder"]), execution=how, engine=doing)


def engine(order):
    """This process, or two workers of a Ray that is there."""
    if "address" not in order:
        return nullcontext(LocalEngine())
    from weakspot.engines import RayEngine

    return RayEngine(order["address"], workers=order.get("workers", 2))


def tiny(order):
    """A few samples, and Findings that replace others."""
    plan = Plan.of([Step.of(After, weight=order["weight"]), Step.of(Keep)])
    data = {"train": numbered(4), "test": numbered(4, prefix="t")}
    plan.run(Subject(Counting()), data, Run.create(order["folder"]), execution=ExecutionOptions(2, 2, 0))


CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir"}


def die_before_change(number, folder):
    """End without a word before the so-many-th change to the disk."""
    left = [number]

    def watch(event, args):
        writes = event == "open" and isinstance(args[0], str) and args[0].startswith(folder) and args[2] & os.O_CREAT
        if event in CHANGES or writes:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def wait_for_shards(folder, count, child):
    """Until so many shards are finished, or the child is over."""
    while sum(1 for _ in Path(folder).glob("work/*/shard-*")) < count:
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return
        time.sleep(0.005)


def work(order):
    if "die_at" in order:
        die_before_change(order["die_at"], str(Path(order["folder"]).parent))
    {"demo": demo, "tiny": tiny}[order["what"]](order)


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    NET = digits.model()
    print("ready", flush=True)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                work(json.loads(line))
                status = 0
            finally:
                os._exit(status)
        order = json.loads(line)
        if {"kill_after", "kill_at"} & order.keys():
            time.sleep(order.get("kill_after", 0))
            wait_for_shards(order["folder"], order.get("kill_at", 0), child)
            os.kill(child, order.get("signal", signal.SIGKILL))  # not waited for yet, so its number is still its own
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
