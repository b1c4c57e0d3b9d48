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
    # Data Contamination Quiz
    # Replication with the ICL judge
    # Blind baselines, Min-k% Prob and WikiMIA
    "blind_baselines": Claim(
        "A classifier of the text alone tells the two kinds of passages apart, without any model."
    ),
    "min_k_auc": Claim(
        "Training on passages raises the AUC of this score, compared with the same model before.",
        null=0.0,
    ),
    "min_k_trends": Claim(
        "The AUC is higher in the second of the two conditions than in the first.", null=0.0
    ),
    "min_k_sweep": Claim(
        "This k gives a higher AUC than the k used everywhere else, on passages that had no part "
        "in choosing it.",
        null=0.0,
    ),
    "pretrained_min_k": Claim(
        "The score of a model newer than both kinds tells older from newer pages better than the "
        "words alone do."
    ),
    "naturalness": Claim(
        "A rule without memory finds the original more often than one in five.",
        null=20.0,
        smallest_effect=10.0,
        unit="percent of quizzes",
    ),
    # Case studies
    "books_auc": Claim(
        "Snippets of books that the model was trained on score higher than snippets of others."
    ),
    "books_differences": Claim(
        "The first of the two has the higher AUC on the same books.", null=0.0
    ),
    "downstream": Claim(
        "Inserting an example once raises its score, compared with held-out examples.", null=0.0
    ),
    "downstream_occurrence": Claim(
        "Inserting examples so many times raises their AUC, compared with the model before.",
        null=0.0,
    ),
    "downstream_learning_rate": Claim(
        "The AUC is higher at the raised learning rate than at the lower one.", null=0.0
    ),
    "downstream_dataset_size": Claim(
        "The AUC is higher in this corpus than in the smallest one.", null=0.0
    ),
    "downstream_own": Claim(
        "Training as the row says raises the AUC, compared with the row's reference.", null=0.0
    ),
    "unlearning": Claim(
        "Suspected items have the higher mean of the row's metric under the unlearned model, and "
        "not because they are easy for a model that never read them.",
        null=0.0,
        unit="ROUGE-L, recall or share",
    ),
    # DICE
    # The detector study
    # The audit of a user's model
}


def check_verdicts(words: object) -> None:
    """ValueError for a word that is no verdict; blank cells are rows without a claim."""
    unknown = {word for word in words if isinstance(word, str) and word} - {*VERDICTS}
    if unknown:
        raise ValueError(f'"{min(unknown)}" is no verdict: one of {", ".join(VERDICTS)}')
