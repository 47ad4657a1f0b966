"""Commands that judge Runs without their models: `gate`, `compare` and `evidence`. None of them loads torch."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weakspot.cli.arguments import Json, Quiet, RunFolder
from weakspot.cli.room_commands import question

if TYPE_CHECKING:
    from weakspot.compare import Difference
    from weakspot.compare.flips import AnswerChanges
    from weakspot.core.run import Run
    from weakspot.gate.evaluation import Verdict

PolicyFile = Annotated[Path, typer.Argument(help="The file with the rules, usually policy.yaml.")]
PolicyOption = Annotated[
    Path | None, typer.Option("--policy", help="A file with rules: each becomes a claim, met or not.")
]
Baseline = Annotated[Path | None, typer.Option(help="The Run to compare with, instead of the policy's own.")]

evidence = typer.Typer(cls=question("write"))


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command()(gate)
    app.command()(compare)
    app.command()(history)
    app.add_typer(
        evidence, name="evidence", help="Write a Run as evidence for a safety case, and check that nothing was changed."
    )


def gate(
    run: RunFolder,
    policy: PolicyFile,
    baseline: Baseline = None,
    junit: Annotated[Path | None, typer.Option(help="Write the verdict as JUnit XML to this file.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the verdict as Markdown to this file.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Check a Run against the rules of a policy; exit code 1 if any does not hold."""
    from weakspot.cli.error_attribution import reading
    from weakspot.cli.printing import printable
    from weakspot.core.run import Run
    from weakspot.gate import output

    with reading(run, baseline):
        verdict = verdict_of(Run.open(run), policy, baseline)
    for target, text in ((junit, output.as_junit), (markdown, output.as_markdown)):
        if target is not None:
            _write(target, text(verdict))
    if as_json:
        typer.echo(json.dumps(output.as_json(verdict), indent=1))
    elif not quiet:
        typer.echo("\n".join(map(printable, output.as_lines(verdict))))
    return 0 if verdict.passed else 1


def compare(
    before: Annotated[Path, typer.Argument(help="The folder of a Run.")],
    after: Annotated[Path, typer.Argument(help="The folder of another Run.")],
    confidence: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    every: Annotated[bool, typer.Option("--all", help="Print every number and every input that changed.")] = False,
    as_json: Json = False,
) -> None:
    """Compare two Runs, of two models or of one before and after retraining; input by input where possible."""
    from weakspot.cli.comparison import print_comparison
    from weakspot.cli.error_attribution import reading
    from weakspot.compare import compare_runs
    from weakspot.core.errors import ConfigError
    from weakspot.core.run import Run

    if not 0 < confidence < 1:
        raise ConfigError(f"--confidence is {confidence}, expected a number between 0 and 1, as 0.95")
    with reading(before, after):
        comparison = compare_runs(Run.open(before), Run.open(after), confidence=confidence)
    if as_json:
        typer.echo(
            json.dumps(
                {
                    "differences": list(map(_entry, comparison.differences)),
                    "main": list(map(_entry, comparison.main)),
                    "inputs": _flips_entry(comparison.flips),
                    "notes": comparison.notes,
                },
                indent=1,
            )
        )
    else:
        print_comparison(comparison, every=every)


@evidence.command()
def write(
    run: RunFolder,
    output: Annotated[Path | None, typer.Option(help="The folder to write; by default evidence in the Run.")] = None,
    policy: PolicyOption = None,
    baseline: Baseline = None,
    sign: Annotated[
        Path | None, typer.Option("--sign", help="Sign the bundle with this SSH key; needs ssh-keygen.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Write what a Run shows as claims, with digests, thresholds, assumptions and limits, in Markdown and JSON."""
    from weakspot.cli.error_attribution import reading
    from weakspot.core.run import Run
    from weakspot.evidence import write_bundle

    with reading(run, baseline):
        compared = None if baseline is None else Run.open(baseline)
        bundle = write_bundle(Run.open(run), output or run / "evidence", policy=policy, baseline=compared, key=sign)
    if not quiet:
        signed = ", signed" if bundle.signed else ""
        typer.echo(f"evidence: {bundle.folder}, {bundle.files} files{signed}\nseal: {bundle.seal}")


@evidence.command()
def verify(
    bundle: Annotated[Path, typer.Argument(help="The folder that `weakspot evidence write` wrote.")],
    run: Annotated[Path | None, typer.Option(help="Where the Run lies now, if it was moved.")] = None,
    baseline: Annotated[Path | None, typer.Option(help="Where the baseline lies now, if it was moved.")] = None,
    seal: Annotated[str | None, typer.Option(help="The seal that was printed when the bundle was written.")] = None,
    signers: Annotated[
        Path | None, typer.Option(help="Who may sign: a file of allowed signers, as for ssh-keygen.")
    ] = None,
    signer: Annotated[str | None, typer.Option(help="Who must have signed it; by default any of --signers.")] = None,
    quiet: Quiet = False,
) -> None:
    """Check that no file of a bundle or its Run was changed, and that every claim follows from the Findings."""
    from weakspot.cli.printing import printable
    from weakspot.evidence import verify_bundle

    verification = verify_bundle(bundle, run=run, baseline=baseline, seal=seal, signers=signers, signer=signer)
    if not quiet:
        typer.echo(
            printable(f"{verification.state}: {verification.files} files, {verification.claims} claims derived again")
        )
        if verification.signed and verification.signer is None:
            typer.echo("a signature is there and was not checked: say with --signers who may have signed")
        typer.echo(f"seal: {verification.seal}")


def verdict_of(run: "Run", policy: Path, baseline: Path | None) -> "Verdict":
    from weakspot.core.run import Run
    from weakspot.gate.evaluation import judge
    from weakspot.gate.policy import read_policy

    return judge(run, read_policy(policy), None if baseline is None else Run.open(baseline))


def _write(target: Path, text: str) -> None:
    from weakspot.core.files import make_folder, write_text, writing

    with writing(target):
        make_folder(target.parent)
    write_text(target, text)


def _entry(one: "Difference") -> dict[str, object]:
    return {**vars(one), "verdict": one.verdict}


def _flips_entry(flips: "AnswerChanges | None") -> dict[str, object] | None:
    if flips is None:
        return None
    groups = [{**vars(one), "verdict": one.verdict} for one in flips.groups]
    return {**vars(flips), "groups": groups}


def history(
    runs: Annotated[list[Path], typer.Argument(help="The folders of two Runs or more.", metavar="RUNS...")],
    policy: Annotated[
        Path | None, typer.Option("--policy", help="A file with rules that each Run is checked against.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List Runs in the order in which they were written: their main numbers, what was fixed and broken, the gate."""
    from weakspot.cli.error_attribution import reading
    from weakspot.cli.history import history_entries, print_history
    from weakspot.compare.history import history as read_history
    from weakspot.core.run import Run

    with reading(*runs):
        made = read_history([Run.open(run) for run in runs])
        verdicts = [None if policy is None else verdict_of(one.run, policy, None) for one in made]
    if as_json:
        typer.echo(json.dumps(history_entries(made, verdicts), indent=1))
    else:
        print_history(made, verdicts)
