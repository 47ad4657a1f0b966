"""Two models of the embedded digits compared, held to a policy, and sealed as evidence.

python examples/gate.py [folder]
"""

import copy
import sys
from pathlib import Path

import torch

from weakspot import Plan, Run, Subject
from weakspot.compare import compare_runs
from weakspot.core.source import limited
from weakspot.data import digits
from weakspot.evidence import verify_bundle, write_bundle
from weakspot.gate.evaluation import judge
from weakspot.gate.policy import read_policy
from weakspot.report import write_report
from weakspot.robustness.room import steps

POLICY = """
rules:
  - {name: few weak inputs, finding: robustness.neighbour_accuracy, number: weak_share, at_most: 0.15, confidence: 0.95}
  - {name: not worse, finding: robustness.neighbour_accuracy, column: weak, worse_by_at_most: 0.05}
"""


def worse(net: torch.nn.Module) -> torch.nn.Module:
    """The same model with a little noise in its weights."""
    other = copy.deepcopy(net)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weights in other.parameters():
            weights.add_(0.4 * weights.std() * torch.randn(weights.shape, generator=generator))
    return other


def examined(net: torch.nn.Module, folder: Path) -> Run:
    subject = Subject(net, classes=digits.CLASSES, scores="logits", bounds=digits.BOUNDS)
    run = Run.create(folder)
    asked = steps({"neighbours": {"rotate": 15}, "looks": 10})
    Plan.of(asked).run(subject, {"test": limited(digits.test(), 300)}, run)
    return run


def main(folder: Path) -> None:
    before = examined(digits.model(), folder / "before")
    after = examined(worse(digits.model()), folder / "after")
    for one in compare_runs(before, after).shown():
        print(f"{one.name}: {one.before:.3f} before, {one.after:.3f} after, {one.verdict} ({one.how})")

    policy = folder / "policy.yaml"
    policy.write_text(POLICY, encoding="utf-8")
    verdict = judge(after, read_policy(policy), before)
    for judged in verdict.judged:
        print(f"{judged.rule.name}: {'passed' if judged.passed else 'failed'}, {judged.measured}")

    bundle = write_bundle(after, folder / "evidence", policy=policy, baseline=before)
    verified = verify_bundle(bundle.folder, seal=bundle.seal)
    print(f"evidence of {verified.files} files with {verified.claims} claims: {verified.state}")
    print(f"report: {write_report(after, folder / 'report.html')}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/gate"))
