"""What the first page shows: the Runs, the questions with their answers, and every Finding's numbers."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from weakspot.core.finding import Finding
from weakspot.formatting import label, show_estimate, split_label
from weakspot.report.headlines import answer, by_room
from weakspot.report.view_models import SentencePart
from weakspot.viewer.behind import flags_of
from weakspot.viewer.library import Chosen, Library
from weakspot.viewer.pages import shown_pages
from weakspot.viewer.reading import RunReader
from weakspot.viewer.responses import as_json, finite
from weakspot.viewer.splits import asked, class_names, outdated, sampled_splits, split_names

router = APIRouter(prefix="/api")
_MOST_CLASSES = 10_000


@router.get("/run")
def overview(request: Request, run: Chosen) -> Response:
    """The Runs that are shown; of the chosen one its pages, answers and Findings."""
    library: Library = request.app.state.library
    heads = run.heads()
    return as_json(
        {
            "runs": [described(reader) for reader in library.readers],
            "pages": [
                {"page": page.name, "path": page.path, "title": page.title, "about": page.about}
                for page in shown_pages(library, run)
            ],
            "answers": answers(run, heads),
            "findings": [summarised(run, head) for head in heads.values()],
        }
    )


def described(run: RunReader) -> dict[str, Any]:
    """A Run in a few words, with what is wrong in it."""
    manifest = run.manifest()
    subject, damaged = manifest["subject"], run.damaged()
    old = {name: words for name, head in run.heads().items() if (words := outdated(manifest, head))}
    return {
        "name": run.name,
        "subject": {
            "model": _word(subject.get("model")),
            "task": _word(subject.get("task")),
            "classes": class_names(manifest)[:_MOST_CLASSES],
            "fingerprint": _word(subject.get("fingerprint")),
        },
        "splits": {
            name: {
                "label": split_label(name),
                "samples": _count(entry.get("samples")),
                "skipped": _size(entry.get("skipped")),
            }
            for name, entry in manifest["data"].items()
        },
        "sampled": sampled_splits(run),
        "damaged": [{"finding": name, "error": words} for name, words in {**damaged, **old}.items()],
    }


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _size(value: Any) -> int:
    return len(value) if isinstance(value, dict) else 0


def answers(run: RunReader, heads: dict[str, Finding]) -> list[dict[str, Any]]:
    """Each question that was asked with its answer in a sentence, as parts that lead to a Finding."""
    manifest = run.manifest()
    wanted = set(asked(manifest))
    current = [head for name, head in heads.items() if name in wanted and not outdated(manifest, head)]
    return [
        {
            "room": room,
            "question": answered.question,
            "sentence": [_part(part, heads) for part in answered.sentence],
        }
        for room, of_room in by_room(current).items()
        for answered in [answer(room, of_room)]
    ]


def _part(part: SentencePart, heads: dict[str, Finding]) -> dict[str, Any]:
    """A piece of a sentence, with the Finding of its number, and whether that number is of samples."""
    finding = part.link.partition("-")[2] or None
    behind = finding is not None and bool(part.number) and bool(flags_of(heads[finding], part.number))
    return {"text": part.text, "finding": finding, "behind": f"{finding}/{part.number}" if behind else None}


def summarised(run: RunReader, head: Finding) -> dict[str, Any]:
    """A Finding's numbers with their intervals, as they are and as people read them."""
    return {
        "name": head.name,
        "title": label(head.name),
        "about": head.about,
        "splits": split_names(run.manifest(), head),
        "pictures": len(head.media),
        "summary": [[name, _numbers(head, name)] for name in head.summary],
    }


def _numbers(head: Finding, name: str) -> dict[str, Any]:
    estimate = head.summary[name]
    shown = show_estimate(name, estimate, head.outputs.number(name))
    return {
        "value": finite(estimate.value),
        "low": finite(estimate.low),
        "high": finite(estimate.high),
        "confidence": finite(estimate.confidence),
        "about": shown.about,
        "label": shown.label,
        "behind": f"{head.name}/{name}" if flags_of(head, name) else None,
        "shown": shown.value,
        "interval": shown.interval,
    }
