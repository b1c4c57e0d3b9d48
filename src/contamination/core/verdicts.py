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
    "dice_layers": Claim(
        "At the located layer, more than half of the distance between the states of a "
        "contaminated and a clean model is absent between two clean models.",
        null=0.5,
        unit="share of the distance",
    ),
    "dice_auroc": Claim(
        "DICE tells contaminated from clean models better than it tells two clean models apart.",
        null=0.0,
        smallest_effect=10.0,
        unit="points of AUROC",
    ),
    "dice_inflation": Claim(
        "Contamination raises the accuracy on the questions that were seen (GSM-i) by more than "
        "that on fresh ones (GSM-ii).",
        null=0.0,
        smallest_effect=10.0,
        unit="points",
    ),
    "dice_own_inflation": Claim(
        "Contamination raises the accuracy on the questions that were seen (GSM-i) by more than "
        "that on fresh ones (GSM-ii).",
        null=0.0,
        smallest_effect=10.0,
        unit="points",
    ),
    "dice_own_layers": Claim(
        "At the located layer, more than half of the distance between the states of a "
        "contaminated and a clean model is absent between two clean models.",
        null=0.5,
        unit="share of the distance",
    ),
    "dice_own_auroc": Claim(
        "The method tells contaminated from clean models better than it tells two clean models "
        "apart.",
        null=50.0,
        smallest_effect=10.0,
        unit="AUROC in percent",
    ),
    "dice_own_table_1": Claim(
        "Contamination raises the accuracy by more than clean models differ among themselves.",
        null=0.0,
        smallest_effect=10.0,
        unit="points",
    ),
    "dice_own_references": Claim(
        "DICE tells the model from its clean references better than it tells the references apart.",
        null=50.0,
        smallest_effect=10.0,
        unit="AUROC in percent",
    ),
    "dice_forks": Claim(
        "Among fine-tuned models that DICE's network never met, those of the first kind score "
        "higher than those of the second."
    ),
    # The detector study
    "detectors": Claim(
        "The detector flags more units than the 5 % that chance flags, and no gate that applies "
        "refuses it.",
        null=0.05,
        smallest_effect=0.45,  # a power of one half
        unit="share of units flagged",
    ),
    "your_detector": Claim(
        "The detector flags more units than the 5 % that chance flags, and no gate that applies "
        "refuses it.",
        null=0.05,
        smallest_effect=0.45,
        unit="share of units flagged",
    ),
    "evasion": Claim(
        "The detector flags more units than the 5 % that chance flags.",
        null=0.05,
        smallest_effect=0.45,
        unit="share of units flagged",
    ),
    "over_base_models": Claim(
        "Rows that a model was trained on score higher than held-out rows of the same draw."
    ),
    "evidence": Claim("The model was trained on this dataset.", unit="AUC or share"),
    "pretrained_agreement": Claim(
        "An effect of indirect exposure differs by less than the margin between the real model "
        "and the lab (two one-sided tests).",
        null=0.0,
        smallest_effect=0.10,  # the margin of the equivalence test, on either side
    ),
    # The audit of a user's model
    "audit": Claim("The model was trained on this dataset.", unit="AUC or share"),
    "dcq_own_controls": Claim(
        "The model finds more originals than a rule that has seen no data.",
        null=0.25,
        unit="share of quizzes",
    ),
    "replication_own": Claim(
        "Guided instructions make the model complete rows of this partition.",
        null=0.0,
        unit="share of completions that match",
    ),
}


def check_verdicts(words: object) -> None:
    """ValueError for a word that is no verdict; blank cells are rows without a claim."""
    unknown = {word for word in words if isinstance(word, str) and word} - {*VERDICTS}
    if unknown:
        raise ValueError(f'"{min(unknown)}" is no verdict: one of {", ".join(VERDICTS)}')
