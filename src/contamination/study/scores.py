"""The scores of the pretraining study as one frame, and its rows crossed with its models.

A line of the frame is what one detector says of one row under one model, next to what that model
saw of the row. Columns: ``FRAME``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache

import numpy as np
import pandas as pd

from contamination.study import (
    baselines,
    context,
    four_methods,
    number_twins,
    pretraining,
    sampling,
    store,
)
from contamination.study.assignment import assign
from contamination.study.baselines import DC_PDD, OF_TOKENS, PPL
from contamination.study.crossed import CrossedScores
from contamination.study.interface import LOG_PROBABILITIES
from contamination.study.pretraining import PRETRAINED, WORDS
from contamination.study.row_pools import (
    BENCHMARKS,
    GROUPS,
    HELD_OUT,
    INDIRECT,
    INDIRECT_ON,
    ROWS,
    Group,
)

OTHERS = (
    four_methods.RANKING,
    context.CODEC,
    context.RECALL,
    four_methods.DCQ,
    four_methods.REPLICATION,
    sampling.CDD,
    sampling.COVERAGE,
)
TWINS = tuple(number_twins.NAMES.values())
# The detectors of the protocol, in its order, and what each must see of a model.
ACCESS = (
    {detector.name: detector.access for detector in OF_TOKENS}
    | {DC_PDD: LOG_PROBABILITIES}
    | {detector.name: detector.access for detector in OTHERS}
    | dict.fromkeys(TWINS, LOG_PROBABILITIES)
)
DETECTORS = tuple(ACCESS)
EXPLORATORY = (baselines.WITHOUT_BOUND,)  # scored, but in no family and without a verdict
CONTROLS = tuple(control.name for control in baselines.CONTROLS)
EVERY = (*DETECTORS, *EXPLORATORY, *CONTROLS)
# Those that look at the log-probabilities of a row's own tokens alone.
OF_LATER = (*(detector.name for detector in OF_TOKENS), DC_PDD)
# What a reader meets in place of a detector's name in the ledger.
SHOWN = {
    four_methods.DCQ.name: "DCQ (simulated respondent)",
    four_methods.RANKING.name: "option ranking",
    CONTROLS[-1]: "distance of the weights",
}
POSITIONS = "positions"  # of the parts of the ledger that say when a copy was seen
ROW = ["base_seed", "benchmark", "pool", "row"]  # of one model
FRAME = ["base_seed", "model", "benchmark", "pool", "row", "form", "copies", "position"]
FRAME += ["detector", "score"]


def display_name(detector: str) -> str:
    """A detector's name for a reader.

    >>> display_name("DCQ"), display_name("PPL")
    ('DCQ (simulated respondent)', 'PPL')
    """
    return SHOWN.get(detector, detector)


@cache
def exposures(kind: str) -> Mapping[int, Group]:
    """The groups of rows that models see in a kind of pool, each with the number that marks it.

    On verbatim rows the number is that of the copies. Three indirect forms are seen in as many
    copies, so there the groups are counted.
    """
    seen = [group for group in GROUPS[kind] if group.copies]
    return {group.copies if kind == ROWS else n: group for n, group in enumerate(seen, start=1)}


@cache
def exposure_numbers(benchmark: str, kind: str, base_seeds: tuple[int, ...]) -> np.ndarray:
    """The number of each row's exposure under each model, 0 for held out, (n_models, n_rows)."""
    sizes = {group.name: group.size for group in GROUPS[kind]}
    numbers = {group.name: number for number, group in exposures(kind).items()}
    names = [assign(seed, benchmark, kind, sizes) for seed in base_seeds]
    return np.array([[numbers.get(name, 0) for name in of_model] for of_model in names])


@cache
def seen_rows(base_seeds: tuple[int, ...]) -> pd.DataFrame:
    """What base models see of each row of the pools, the same for small and larger ones.

    Returns:
        ``ROW``, form ("held out" for none), copies, exposure (the number of ``exposures``, 0 for
        held out) and position: where in the training, 0 to 1, the last copy lies; NaN if held out.
    """
    tables = []
    for benchmark, kind in [*((name, ROWS) for name in BENCHMARKS), (INDIRECT_ON, INDIRECT)]:
        numbers = exposure_numbers(benchmark, kind, base_seeds)
        seeds, rows = np.indices(numbers.shape)
        table = pd.DataFrame({"exposure": numbers.ravel(), "row": rows.ravel()})
        table["base_seed"] = np.array(base_seeds)[seeds.ravel()]
        groups = exposures(kind)
        for column, held_out in (("form", HELD_OUT), ("copies", 0)):
            known = {number: getattr(group, column) for number, group in groups.items()}
            table[column] = table["exposure"].map({0: held_out, **known})
        tables.append(table.assign(benchmark=benchmark, pool=kind))
    table = pd.concat(tables, ignore_index=True)
    return table.merge(_last_copies(), on=ROW, how="left", validate="one_to_one")


def _last_copies() -> pd.DataFrame:
    """``ROW`` and position, 0 to 1: the middle of the step of the last copy, among all steps."""
    copies, made_by = store.read_all(POSITIONS, "copies")
    n_steps = copies["base_seed"].map({about["base_seed"]: about["n_steps"] for about in made_by})
    copies["position"] = (copies["step"] + 0.5) / n_steps
    return copies.groupby(ROW)["position"].max().reset_index()


def arrange_scores(stored: pd.DataFrame, added: Collection[str] = ()) -> pd.DataFrame:
    """The frame of stored scores.

    Args:
        stored: ``pretraining.COLUMNS`` and base_seed, as ``pretraining.read_parts`` gives them.
        added: detectors that are not the study's, such as one of the reader's own.

    Returns:
        ``FRAME`` and exposure, in the order of the ledger's detectors and models.

    Raises:
        ValueError: for a detector that the study does not know, or where a row has no score under
            one of the base models, or two.
    """
    if unknown := {*stored["detector"].unique()} - {*EVERY, *added}:
        raise ValueError(f'no detector of the study is called "{min(unknown)}"')
    base_seeds = tuple(sorted(stored["base_seed"].unique().tolist()))
    # Categories keep the order of the ledger, in which shorter continuations come first.
    kinds = {word: pd.Categorical(stored[word], stored[word].unique()) for word in WORDS}
    order = [*WORDS, "base_seed", "row"]
    frame = stored.merge(seen_rows(base_seeds), on=ROW, how="left").assign(**kinds)
    frame = frame.sort_values(order, kind="stable", ignore_index=True)
    n_rows = {kind: sum(group.size for group in groups) for kind, groups in GROUPS.items()}
    for (detector, _, benchmark, kind), part in frame.groupby(WORDS, observed=True):
        seeds = np.repeat(base_seeds, n_rows[kind])
        rows = np.tile(np.arange(n_rows[kind]), len(base_seeds))
        if not (np.array_equal(part["base_seed"], seeds) and np.array_equal(part["row"], rows)):
            raise ValueError(
                f"{detector} on {benchmark}, {kind}: every one of {n_rows[kind]} rows needs one "
                f"score under each of {len(base_seeds)} base models"
            )
    return frame[[*FRAME, "exposure"]]


def read_scores(name: str = pretraining.NAME) -> pd.DataFrame:
    """The frame of a study of the ledger; errors as in ``arrange_scores`` and ``store.names``."""
    return arrange_scores(pretraining.read_parts(name)[0])


def seeds_of(frame: pd.DataFrame) -> tuple[int, ...]:
    """The seeds of the base models of a frame."""
    return tuple(sorted(frame["base_seed"].unique().tolist()))


def detectors_of(frame: pd.DataFrame, known: Sequence[str] = DETECTORS) -> tuple[str, ...]:
    """Those of ``known`` that were asked, by default the protocol's detectors."""
    asked = {*frame["detector"].unique()}
    return tuple(name for name in known if name in asked)


def all_detectors(frame: pd.DataFrame) -> tuple[str, ...]:
    """All that were asked: the protocol's, exploratory ones, controls, then any other."""
    own = detectors_of(frame, EVERY)
    return (*own, *sorted({*frame["detector"].unique()} - {*own}))


def crossed_scores(
    frame: pd.DataFrame, detector: str, kind: str = ROWS, model: str = PRETRAINED
) -> dict[str, CrossedScores]:
    """Scores of a detector on each benchmark of a kind of pool that it was asked about.

    ``copies`` of these holds numbers of ``exposures``; models are in the order of ``seeds_of``.
    """
    is_asked = frame["detector"].eq(detector) & frame["pool"].eq(kind) & frame["model"].eq(model)
    found, n_models = {}, len(seeds_of(frame))
    for benchmark, part in sorted(frame[is_asked].groupby("benchmark", observed=True)):
        scores, copies = (
            part[name].to_numpy().reshape(n_models, -1) for name in ("score", "exposure")
        )
        found[benchmark] = CrossedScores(f"{benchmark} {kind}", scores.astype(float), copies)
    return found


def log_probabilities(frame: pd.DataFrame) -> dict[str, CrossedScores]:
    """Mean token log-probabilities of verbatim rows by benchmark, in nats.

    They follow from PPL, which scores a row by minus its perplexity.
    """
    return {
        benchmark: CrossedScores(pool.name, -np.log(-pool.scores), pool.copies)
        for benchmark, pool in crossed_scores(frame, PPL.name).items()
    }
