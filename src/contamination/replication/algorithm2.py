"""Algorithm 2: does a judge find replicas? (section 3.2, and the human rule of section 4)

A partition is labelled contaminated with at least one exact match or at least
two near-exact matches among its instances.
"""

from __future__ import annotations

from collections.abc import Sequence

from contamination.judging import EXACT, NEAR_EXACT

MARK_EXACT, MARK_NEAR_EXACT, MARK_NONE = "✓", "✓✓", "×"
MIN_EXACT, MIN_NEAR_EXACT = 1, 2


def partition_mark(verdicts: Sequence[str]) -> str:
    """Table 2's mark: ✓ for an exact match, ✓✓ for two near-exact ones, × for neither.

    Where both hold the paper prints one mark; ✓✓ stands where near-exact
    matches decide alone.
    """
    verdicts = list(verdicts)
    if verdicts.count(EXACT) >= MIN_EXACT:
        return MARK_EXACT
    if verdicts.count(NEAR_EXACT) >= MIN_NEAR_EXACT:
        return MARK_NEAR_EXACT
    return MARK_NONE


def is_contaminated(verdicts: Sequence[str]) -> bool:
    """Algorithm 2's decision for one partition."""
    return partition_mark(verdicts) != MARK_NONE
