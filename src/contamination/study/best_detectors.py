"""Which detectors are best for each access to a model: compared in pairs, and as one table."""

from __future__ import annotations

import pandas as pd

from contamination.core.tables import copies_text
from contamination.core.verdicts import INCONCLUSIVE, NOT_SUPPORTED, SUPPORTED
from contamination.study.conditions import PARAPHRASE
from contamination.study.crossed import interval_left_out, mean_left_out
from contamination.study.interface import ACCESSES
from contamination.study.pretraining_findings import FORMS, of_auc
from contamination.study.pretraining_results import DIFFERENCES, of_pool
from contamination.study.pretraining_scores import StudyScores, display_name
from contamination.study.row_pools import ROWS
from contamination.study.shift import NONE

UNTESTED = "untested"
BEST_LABELS = {"n_detectors": "detectors", "misled_by": "misled by a difference in"}


def differences_to_best(study: StudyScores, detections: pd.DataFrame) -> pd.DataFrame:
    """How far the best supported detector is above each other supported one; no verdict.

    Paired: the same models and rows, on the benchmarks that both were asked on. The protocol does
    not ask for this comparison, so it is exploratory, and its intervals are not corrected.

    Args:
        detections: the table of ``detection``.

    Returns:
        a row for each access that allows further detectors, number of copies and other detector:
        access, copies, best (the supported detector with the highest AUC that the access allows),
        detector, benchmarks, n_models, difference (of AUCs), ci_low, ci_high.
    """
    names = {display_name(name): name for name in study.detectors}
    rows = []
    for place, access in enumerate(ACCESSES):
        if not detections["access"].eq(access).any():
            continue  # no further detector: as with less access
        is_allowed = detections["access"].isin(ACCESSES[: place + 1])
        seen = detections[is_allowed & detections["verdict"].eq(SUPPORTED)]
        for copies, of_dose in seen.groupby("copies"):
            best = of_dose.loc[of_dose["auc"].idxmax()]
            for other in of_dose.drop(index=best.name).itertuples():
                known = best["benchmarks"].split(", ")
                both = [name for name in other.benchmarks.split(", ") if name in known]
                aucs = [
                    mean_left_out([of_pool(study, names[one], ROWS, copies, b)[0] for b in both])
                    for one in (best["detector"], other.detector)
                ]
                estimate = interval_left_out(aucs[0].minus(aucs[1]), DIFFERENCES)
                rows.append(
                    {
                        "access": access,
                        "copies": copies,
                        "best": best["detector"],
                        "detector": other.detector,
                        "benchmarks": ", ".join(both),
                        "n_models": len(study.base_seeds),
                        "difference": estimate.value,
                        "ci_low": estimate.low,
                        "ci_high": estimate.high,
                    }
                )
    return pd.DataFrame(rows)


def best_by_access(
    detection: pd.DataFrame,
    indirect: pd.DataFrame,
    shift: pd.DataFrame,
    differences: pd.DataFrame,
) -> pd.DataFrame:
    """For each access to a model the best detectors, what they miss and what misleads them.

    More access includes less; an access that allows no further detector says so. Named are the
    supported detector with the highest AUC and all supported ones that are not shown to be worse:
    the interval of the paired difference holds zero. Where none is supported, the highest AUC
    stands in their place.

    Args:
        detection, indirect: of ``pretraining_results``.
        shift: of ``shift.false_verdicts``.
        differences: of :func:`differences_to_best`.

    Returns:
        access, n_detectors (that this access allows), a column for each number of copies; misses:
        at which copies, verbatim or of a paraphrase, the named detectors are not supported or
        inconclusive; misled_by: which differences between two unseen sets make them call one of
        the sets seen (supported for at least one benchmark).
    """
    rows: list[dict] = []
    for place, access in enumerate(ACCESSES):
        allowed = detection[detection["access"].isin(ACCESSES[: place + 1])]
        row = {"access": access, "n_detectors": allowed["detector"].nunique()}
        if rows and row["n_detectors"] == rows[-1]["n_detectors"]:
            first, *others = list(rows[-1])[2:]
            same = f"as with {ACCESSES[place - 1]}: none of these detectors needs the {access}"
            rows.append(row | {first: same} | dict.fromkeys(others, ""))
            continue
        named: list[str] = []
        for copies in sorted(detection["copies"].unique()):
            of_dose = allowed[allowed["copies"].eq(copies)]
            near = differences[differences["access"].eq(access) & differences["copies"].eq(copies)]
            best = _not_worse(of_dose, near)
            named += [name for name in best["detector"] if name not in named]
            row[copies_text(copies)] = _best_text(best, of_dose)
        paraphrase = indirect[indirect["exposure"].eq(PARAPHRASE)]
        asked = [allowed.assign(form=""), paraphrase.assign(form=f" {FORMS[PARAPHRASE]}")]
        row["misses"] = _misses(pd.concat(asked), named)
        rows.append(row | {"misled_by": _misled(shift, named)})
    return pd.DataFrame(rows)


def _not_worse(of_dose: pd.DataFrame, differences: pd.DataFrame) -> pd.DataFrame:
    """Supported detectors, best first, without those that are shown to be worse than the best."""
    seen = of_dose[of_dose["verdict"].eq(SUPPORTED)]
    seen = seen.sort_values("auc", ascending=False, kind="stable")
    worse = differences.loc[differences["ci_low"].gt(0), "detector"]
    return seen[~seen["detector"].isin(worse)]


def _best_text(best: pd.DataFrame, of_dose: pd.DataFrame) -> str:
    if len(best):
        at_best = " at best" if len(best) > 1 else ""
        return f"{', '.join(best['detector'])}: AUC {of_auc(best.iloc[0])}{at_best}"
    if of_dose.empty:
        return UNTESTED
    first = of_dose.loc[of_dose["auc"].idxmax()]
    return f"none; highest AUC {of_auc(first)} ({first['detector']})"


def _who(names: list[str], named: list[str]) -> str:
    return "all of them" if len(names) == len(named) > 1 else ", ".join(names)


def _misses(asked: pd.DataFrame, named: list[str]) -> str:
    """Where detectors that are best somewhere are not supported, by form and dose."""
    if not named:
        return "every dose"
    parts = []
    own = asked[asked["detector"].isin(named)]
    for (form, copies), rows in own.groupby(["form", "copies"]):
        for word in (NOT_SUPPORTED, INCONCLUSIVE):
            names = rows.loc[rows["verdict"].eq(word), "detector"].tolist()
            if names:
                parts.append(f"{copies_text(copies)}{form}, {word}: {_who(names, named)}")
    return "; ".join(parts) or "no dose"


def _misled(shift: pd.DataFrame, named: list[str]) -> str:
    """Differences between unseen sets by which detectors that are best somewhere are misled."""
    if not named:
        return ""
    asked = shift[shift["shift"].ne(NONE) & shift["verdict"].ne("")]
    parts = []
    for kind, rows in asked[asked["verdict"].eq(SUPPORTED)].groupby("shift", sort=False):
        names = [name for name in named if name in set(rows["detector"])]
        if names:
            parts.append(f"{kind}: {_who(names, named)}")
    missing = [name for name in named if name not in set(asked["detector"])]
    parts = parts or ["none of those tried"]
    return "; ".join([*parts, *([f"{UNTESTED}: {', '.join(missing)}"] if missing else [])])
