"""Bundles as somebody with an editor would change them."""

import hashlib
import json

from weakspot.evidence.bundle import SIGNATURES, SUMS, sums_of
from weakspot.evidence.statement import read_statement

POLICY = """rules:
- {name: few weak inputs, finding: robustness.neighbours, number: weak_share, at_most: 0.15, confidence: 0.95}
- {finding: classes.pairs, column: average_bias, at_most: 0.2}
- {finding: coverage.neurons, number: coverage, at_least: 0.5}
- {finding: lesions.gone, number: auc, exists: true}
"""


def sealed_again(folder):
    """Write `SHA256SUMS` anew, so that it fits what the bundle says now."""
    path = folder / "evidence.json"
    own = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.name not in (SUMS, *SIGNATURES)
    }
    (folder / SUMS).write_bytes(sums_of(own, read_statement(path.read_bytes(), path)))


def forge(folder, change):
    """Change the statement and write the sums anew."""
    path = folder / "evidence.json"
    statement = json.loads(path.read_text())
    change(statement)
    path.write_text(json.dumps(statement, indent=1, ensure_ascii=False) + "\n")
    sealed_again(folder)
