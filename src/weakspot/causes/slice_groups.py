"""The root causes of a Run as groups in which another Run may be compared with it: torch-free."""

from weakspot.core.finding import Finding


def cause_groups(slices: Finding) -> dict[str, dict[str, str]]:
    """The rule that holds for each image, of the half that no rule was found on.

    The other half would only get better: rules were sought where the first model was wrong.
    """
    needed = ("image_id", "image_slice", "image_found_on")
    if slices.table is None or any(name not in slices.arrays for name in needed):
        return {}
    ids, rule, found_on = (slices.arrays[name] for name in needed)
    texts = dict(zip(slices.table["slice"].to_pylist(), slices.table["rule"].to_pylist(), strict=True))
    together = zip(ids.tolist(), rule.tolist(), found_on.tolist(), strict=True)
    groups = {name: texts.get(number, "no root cause") for name, number, used in together if not used}
    return {"root cause": groups} if texts else {}
