"""Printed and recomputed cells side by side.

``matches`` means equal at the printed decimals. A difference has one reason,
from the closed list ``Reason``.
"""

from __future__ import annotations

import re
from decimal import Decimal
from enum import StrEnum
from typing import Any

import pandas as pd

from contamination.data.published import printed_cells

HOSTED_MODEL = "text-davinci-003"  # scored by Shi et al. (books), since withdrawn
HALFWAY = Decimal("0.5")  # between two printed values
CELL_KEYS = ["paper", "table", "model", "dataset", "split", "row", "metric"]


class Reason(StrEnum):
    """Why a printed cell and our number stand as they stand; the closed list."""

    NONE = ""
    TIE = "rounding tie: the value lies halfway, either printed neighbour is right"
    ROUNDED_INPUTS = "the paper computed it from rounded percentages"
    NOT_RELEASED = "inputs not released"
    NEEDS_MODELS = "needs the paper's own models and training runs"
    BOTH_MARKS = "exact and near-exact matches both apply, the paper prints one mark"
    QUOTED = "quoted by the paper from another source, not measured"
    EXCHANGED = "the paper prints the row's two scores in each other's place"
    DIFFERS = "released figures give another value"


def distance_in_units(recomputed: float | str, printed: str) -> Decimal:
    """Distance between a number and a printed one, in units of the last printed decimal.

    Of text 0 where the two are equal, else infinity.

    >>> distance_in_units(0.435, "0.43")
    Decimal('0.5')
    """
    if isinstance(recomputed, str) or not re.fullmatch(r"[-+]?\d+(\.\d+)?", printed):
        return Decimal(0 if str(recomputed) == printed else "inf")
    target = Decimal(printed)
    unit = Decimal(1).scaleb(int(target.as_tuple().exponent))
    # Twelve decimals are far below any printed unit and shed binary noise,
    # so that 0.435 is halfway and not a hair below.
    value = round(Decimal(repr(float(recomputed))), 12)
    return (abs(value - target) / unit).normalize()


def matches_printed(recomputed: float | str, printed: str) -> bool:
    """Whether a value rounds to what is printed; text must be equal.

    Exactly halfway, both neighbours are a right rounding and both match.
    """
    return bool(distance_in_units(recomputed, printed) <= HALFWAY)


def published_vs_recomputed(recomputed: pd.DataFrame) -> pd.DataFrame:
    """Every number that the four papers print, next to the recomputed one; dashes are left out.

    Args:
        recomputed: ``CELL_KEYS`` (spelled as in ``published.printed_cells``), ``recomputed``
            (number or text) and ``note`` (a ``Reason``, empty unless one was found); ValueError
            for a cell that is not printed anywhere.

    Returns:
        One row per printed cell: the key columns, published, recomputed, matches (empty where
        nothing could be recomputed) and note.
    """
    printed = printed_cells().rename(columns={"value": "published"})
    printed = printed[printed["published"].ne("")]  # DICE prints six dashes
    merged = printed.merge(
        recomputed, on=CELL_KEYS, how="outer", validate="one_to_one", indicator=True, sort=False
    )
    strays = merged[merged["_merge"] == "right_only"]
    if len(strays):
        raise ValueError(f"no printed cell for {strays.iloc[0][CELL_KEYS].to_dict()}")
    merged = printed[CELL_KEYS].merge(merged, on=CELL_KEYS, how="left")
    verdicts = [_verdict(cell) for cell in merged.itertuples()]
    merged["matches"], merged["note"] = zip(*verdicts, strict=True)
    return merged[[*CELL_KEYS, "published", "recomputed", "matches", "note"]]


def _verdict(cell: Any) -> tuple[bool | None, Reason | str]:
    if cell.metric == "reported_pct":
        return None, Reason.QUOTED
    if pd.isna(cell.recomputed):
        # A hosted model is nobody's to train again; what it said was not released.
        is_own = cell.paper in ("Min-k% Prob", "DICE") and cell.model != HOSTED_MODEL
        return None, Reason.NEEDS_MODELS if is_own else Reason.NOT_RELEASED
    if matches_printed(cell.recomputed, cell.published):
        is_halfway = distance_in_units(cell.recomputed, cell.published) == HALFWAY
        return True, Reason.TIE if is_halfway else Reason.NONE
    return False, cell.note if isinstance(cell.note, str) and cell.note else Reason.DIFFERS


def match_summary(cells: pd.DataFrame) -> pd.DataFrame:
    """Per paper and table: n_printed cells, n_recomputed, n_matching, n_ties, n_differing."""
    grouped = cells.assign(
        n_printed=1,
        n_recomputed=cells["matches"].notna(),
        n_matching=cells["matches"].eq(True),
        n_ties=cells["note"].eq(Reason.TIE),
        n_differing=cells["matches"].eq(False),
    ).groupby(["paper", "table"], sort=False)
    counts = ["n_printed", "n_recomputed", "n_matching", "n_ties", "n_differing"]
    return grouped[counts].sum().astype(int).reset_index()
