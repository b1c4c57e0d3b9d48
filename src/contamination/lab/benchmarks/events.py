"""Dated event articles of two eras, whose words drift apart by a stated strength."""

from __future__ import annotations

from contamination.lab.benchmarks.reading import read_json, values_of
from contamination.lab.grammar import Benchmark, Template

DEFAULT_DRIFT = 0.3


def event_articles(drift: float = DEFAULT_DRIFT) -> Benchmark:
    """Event articles of an older and a newer era, told apart by their words alone.

    Args:
        drift: probability, 0 to 1, that a slot which can show the era does: that
            the year is written out, and that each of four words is one of its
            era's own. At 0 the two eras share one distribution.

    Returns:
        A benchmark with the columns ``text`` and ``era`` (older, newer). A text
        has about 80 words.

    Raises:
        ValueError: if the drift is not in [0, 1].
    """
    if not 0 <= drift <= 1:
        raise ValueError(f"drift must be in [0, 1], got {drift}")
    content, templates = read_json("benchmarks/events"), []
    drifting = content["drifting"]
    for era, listed in content["eras"].items():
        sets = {slot: (of["any time"], of[era]) for slot, of in drifting.items()}
        sets["date"] = content["undated"], [f"in {year}" for year in values_of(listed)]
        values = {slot: common + own for slot, (common, own) in sets.items()}
        weights = {
            slot: [(1 - drift) / len(common)] * len(common) + [drift / len(own)] * len(own)
            for slot, (common, own) in sets.items()
        }
        for name, text in content["texts"].items():
            templates.append(
                Template(
                    name=f"{era}_{name}",
                    fields={"text": text, "era": "{era}"},
                    facts={"era": (era,), "n": tuple(range(2, 90)), "date": values["date"]},
                    wording=content["common"]
                    | {slot: values[slot] for slot in content["drifting"]},
                    weights=weights,
                )
            )
    return Benchmark(
        name="event_articles",
        task=f"dated event articles, as WikiMIA, drift {drift}",
        templates=tuple(templates),
    )
