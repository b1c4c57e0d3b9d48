"""The five verdicts, the rules that lead to them, and the claim of every verdict column.

A column ``verdict`` answers one claim, which is registered here with the smallest effect that
would matter. A row that makes no claim is blank. Tables of controls have a column ``holds``
(did the control come out as it must?) and no verdict. The smallest effects were chosen after
the first results had been seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

SUPPORTED = "supported"  # the effect is there and survives its control
NOT_SUPPORTED = "not supported"  # the interval or the control rules out the claimed effect
INCONCLUSIVE = "inconclusive"  # neither; the table says how large an effect could be missed
CONTROL_FAILS = "control fails"  # the control shows the same effect, or the groups differ anyway
NOT_RUN = "not run"  # the reason is in the next column
VERDICTS = (SUPPORTED, NOT_SUPPORTED, INCONCLUSIVE, CONTROL_FAILS, NOT_RUN)

FEWEST_MODELS = 5  # an interval over fewer models spans them and says nothing about others
LEVEL = 0.05  # of every test, after correction within its family


@dataclass(frozen=True)
class Claim:
    """What a verdict column claims, and the smallest effect that would matter."""

    text: str  # one sentence that a reader without context understands
    null: float = 0.5  # value without any effect, in the column's unit
    smallest_effect: float = 0.10  # above ``null``, in the same unit
    unit: str = "AUC"

    def verdict(
        self,
        low: float,
        high: float,
        *,
        p_adjusted: float | None = None,
        control_high: float = -math.inf,
        n_models: int | None = None,
        can_reject: bool = True,
    ) -> str:
        """The verdict that an interval and its control allow.

        Args:
            low, high: 95 % interval of the effect, in ``unit``; NaN where it was not computed.
            p_adjusted: of the test of no effect, corrected within the notebook's family. Where
                it is given, the claim needs it to be at most ``LEVEL`` besides the interval.
            control_high: upper end of the control's interval, or its value where it has none.
            n_models: models over which the interval is taken, where the claim is about models.
            can_reject: whether the test could reach ``LEVEL`` at all with so few items.

        >>> claim = Claim("members score higher")
        >>> claim.verdict(0.55, 0.70), claim.verdict(0.45, 0.58), claim.verdict(0.45, 0.70)
        ('supported', 'not supported', 'inconclusive')
        >>> claim.verdict(0.55, 0.70, control_high=0.56)
        'control fails'
        >>> claim.verdict(0.55, 0.70, n_models=2), claim.verdict(math.nan, math.nan)
        ('inconclusive', 'not run')
        """
        if math.isnan(low) or math.isnan(high):
            return NOT_RUN
        if (n_models is not None and n_models < FEWEST_MODELS) or not can_reject:
            return INCONCLUSIVE
        if low > self.null and (p_adjusted is None or p_adjusted <= LEVEL):
            return CONTROL_FAILS if low <= control_high else SUPPORTED
        return NOT_SUPPORTED if high < self.null + self.smallest_effect else INCONCLUSIVE


CLAIMS: dict[str, Claim] = {
    # First look: the four methods on one small model
    "first_look": Claim(
        "What the method finds where the model read the instances lies above chance and above "
        "every control.",
        null=0.5,  # the table's chance; 0 where a method has none
        unit="share or AUC",
    ),
    # Data Contamination Quiz
    "dcq_rules": Claim(
        "A rule without memory is right at least as often as the model, to within five points.",
        null=-5.0,
        smallest_effect=5.0,
        unit="points",
    ),
    "dcq_beyond_rules": Claim(
        "Where a rule is wrong, the model is right more often than every other rule.",
        null=0.0,
        smallest_effect=10.0,
        unit="points",
    ),
    "dcq_readings": Claim(
        "The table says the same at every setting of the simulated respondent.",
        null=0.0,
        smallest_effect=1.0,
        unit="share of settings",
    ),
    "dcq_reciprocal": Claim(
        "Every replicated instance is also answered right, and not because nearly all are.",
        null=0.0,
        smallest_effect=1.0,
        unit="share of replicas",
    ),
    "dcq_positions": Claim(
        "Answers move to the position where the original is put, and not to another text there.",
        null=0.0,
        smallest_effect=10.0,
        unit="points",
    ),
    "dcq_dial": Claim(
        "Natural paraphrases let a taker that never saw the originals find them more often.",
        null=0.0,
        smallest_effect=10.0,
        unit="points",
    ),
    "pretrained_readings": Claim(
        "A real model finds the originals more often than a clean one, beyond mere taste.",
        null=0.0,
        smallest_effect=10.0,
        unit="points",
    ),
    # Replication with the ICL judge
    "replication_published": Claim(
        "Naming dataset and split raises the overlap, by a test that keeps its level.",
        null=0.0,
        smallest_effect=0.10,
        unit="mean overlap",
    ),
    "replication_success": Claim(
        "The algorithm decides right in more partitions than the answer that all are clean.",
        null=0.0,
        smallest_effect=10.0,
        unit="points",
    ),
    "judge_agreement": Claim(
        "Judge and reference agree on most of what either calls near-exact.",
        unit="share",
    ),
    "replication_methods": Claim(
        "Partitions that were read most often are flagged more often than clean ones.",
        null=0.0,
        smallest_effect=0.50,
        unit="share of partitions",
    ),
    "replication_placebos": Claim(
        "Where guided completions beat general ones, they beat a wrong name too.",
        unit="share of partitions",
    ),
    "pretrained_replication": Claim(
        "The real model completes instances where the right names are given, and not else.",
        null=0.0,
        smallest_effect=1.0,
        unit="flags",
    ),
    "pretrained_judge": Claim(
        "Judge and reference agree on most of what either calls near-exact.",
        unit="share",
    ),
    # Blind baselines, Min-k% Prob and WikiMIA
    # Case studies
    # DICE
    # The detector study
    # The audit of a user's model
}


def check_verdicts(words: object) -> None:
    """ValueError for a word that is no verdict; blank cells are rows without a claim."""
    unknown = {word for word in words if isinstance(word, str) and word} - {*VERDICTS}
    if unknown:
        raise ValueError(f'"{min(unknown)}" is no verdict: one of {", ".join(VERDICTS)}')
