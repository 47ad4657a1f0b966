"""The typical images that the Finding of error slices names for each cause: torch-free."""

from collections.abc import Collection


def example_ids(text: str, known: Collection[str]) -> list[str]:
    """The ids in a list with commas between them, as far as they are known; an id may hold commas itself.

    >>> example_ids("a, b, 1, c", {"a", "b, 1", "c"})
    ['a', 'b, 1', 'c']
    """
    parts, ids, start = text.split(", "), [], 0
    while start < len(parts):
        ends = range(len(parts), start, -1)
        end = next((end for end in ends if ", ".join(parts[start:end]) in known), None)
        if end is not None:
            ids.append(", ".join(parts[start:end]))
        start = start + 1 if end is None else end
    return ids
