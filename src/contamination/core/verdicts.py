"""The five verdicts, the rules that lead to them, and the claim of every verdict column.

A column ``verdict`` answers one claim, which is registered here with the smallest effect that
would matter. A row that makes no claim is blank. Tables of controls have a column ``holds``
(did the control come out as it must?) and no verdict. The smallest effects were chosen after
the first results had been seen, except where a protocol fixed them before.
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


# Claims that several tables make.
_INFLATION = Claim(
    "Contamination raises the accuracy on the questions that were seen (GSM-i) by more than that "
    "on fresh ones (GSM-ii).",
    null=0.0,
    smallest_effect=10.0,
    unit="points",
)
_LAYERS = Claim(
    "At the located layer, more than half of the distance between the states of a contaminated "
    "and a clean model is absent between two clean models.",
    null=0.5,
    unit="share of the distance",
)
_JUDGE = Claim(
    "The judge and the reference agree on most completions that either calls near-exact.",
    unit="share",
)
_POWER = Claim(
    "The detector recognises more contaminated models than the 5 % that chance recognises.",
    null=0.05,
    smallest_effect=0.45,  # a power of one half
    unit="share of models",
)
_TRAINED_ON = Claim("The model was trained on this dataset.", unit="AUC or share")

CLAIMS: dict[str, Claim] = {
    # First look: the four methods on one small model
    "first_look": Claim(
        "The method gives the model that was trained on the instances a higher value than chance "
        "and than every control.",
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
        "The conclusion is the same at every setting of the simulated respondent.",
        null=0.0,
        smallest_effect=1.0,
        unit="share of settings",
    ),
    "dcq_reciprocal": Claim(
        "The model answers every instance that it replicates, and not because it answers nearly "
        "all.",
        null=0.0,
        smallest_effect=1.0,
        unit="share of replicas",
    ),
    "dcq_positions": Claim(
        "Answers move to the position of the original, and they do not move to another text there.",
        null=0.0,
        smallest_effect=10.0,
        unit="points",
    ),
    "dcq_dial": Claim(
        "A respondent that never saw the originals finds them more often among natural "
        "paraphrases.",
        null=0.0,
        smallest_effect=10.0,
        unit="points",
    ),
    "pretrained_readings": Claim(
        "The real model finds the originals more often than a model that never saw them.",
        null=0.0,
        smallest_effect=10.0,
        unit="points",
    ),
    # Replication with the ICL judge
    "replication_published": Claim(
        "Naming dataset and split raises the overlap with the reference, by a test that keeps its "
        "level.",
        null=0.0,
        smallest_effect=0.10,
        unit="mean overlap",
    ),
    "replication_success": Claim(
        "The algorithm is right about more partitions than the answer that all of them are clean.",
        null=0.0,
        smallest_effect=10.0,
        unit="points",
    ),
    "judge_agreement": _JUDGE,
    "replication_methods": Claim(
        "Partitions at the highest dose are called contaminated more often than held-out ones.",
        null=0.0,
        smallest_effect=0.50,
        unit="share of partitions",
    ),
    "replication_placebos": Claim(
        "Where guided completions beat general ones, they also beat completions under a wrong "
        "name.",
        unit="share of partitions",
    ),
    "pretrained_replication": Claim(
        "The real model completes instances when it is given the right names, and only then.",
        null=0.0,
        smallest_effect=1.0,
        unit="partitions",
    ),
    "pretrained_judge": _JUDGE,
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
        "This k gives a higher AUC than the usual k, on passages that were not used to choose it.",
        null=0.0,
    ),
    "pretrained_min_k": Claim(
        "The score of a model that is newer than all pages tells older from newer pages better "
        "than words alone do."
    ),
    "naturalness": Claim(
        "A rule without memory finds the original more often than one in five.",
        null=20.0,
        smallest_effect=10.0,
        unit="percent of quizzes",
    ),
    # Case studies
    "books_auc": Claim(
        "Snippets of books that the model was trained on score higher than snippets of other books."
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
        "The training of this row raises the AUC, compared with the reference of this row.",
        null=0.0,
    ),
    "unlearning": Claim(
        "Suspected items have the higher mean of the row's metric under the unlearned model, and "
        "not because they are easy for a model that never saw them.",
        null=0.0,
        unit="ROUGE-L, recall or share",
    ),
    # DICE
    "dice_layers": _LAYERS,
    "dice_auroc": Claim(
        "DICE tells contaminated from clean models better than it tells two clean models apart.",
        null=0.0,
        smallest_effect=10.0,
        unit="points of AUROC",
    ),
    "dice_inflation": _INFLATION,
    "dice_own_inflation": _INFLATION,
    "dice_own_layers": _LAYERS,
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
    "detectors": _POWER,
    "your_detector": _POWER,
    "evasion": _POWER,
    "shift": Claim(
        "The detector calls one of two unseen sets seen more often than the 5 % that its level "
        "allows.",
        null=0.05,
        smallest_effect=0.10,
        unit="share of pairs of sets",
    ),
    "over_base_models": Claim(
        "Rows that a model was trained on score higher than held-out rows of the same draw."
    ),
    # The pretraining study; its smallest effects were fixed in docs/protocol_2.md before its scores
    "pretraining_detection": Claim(
        "Rows that a model saw in pretraining score higher than held-out rows.",
        smallest_effect=0.05,
    ),
    "pretraining_indirect": Claim(
        "Rows that a model saw in another form in pretraining score higher than held-out rows.",
        smallest_effect=0.05,
    ),
    "pretraining_later": Claim(
        "Clean training afterwards lowers the AUC of rows that were seen.",
        null=0.0,
        smallest_effect=0.05,
        unit="fall of the AUC",
    ),
    "pretraining_row_lists": Claim(
        "At most a share q of the rows on a list were not seen, on average over assignments.",
        null=0.0,
        smallest_effect=0.0,
        unit="q minus the share of false discoveries",
    ),
    "pretraining_twins": Claim(
        "Number twins need no held-out rows: their own test raises a false alarm in at most 5 % "
        "of models.",
        null=0.0,
        smallest_effect=0.0,
        unit="0.05 minus the rate of false alarms",
    ),
    "evidence": _TRAINED_ON,
    "pretrained_agreement": Claim(
        "An effect of indirect exposure differs by less than the margin between the real model "
        "and the lab (two one-sided tests).",
        null=0.0,
        smallest_effect=0.10,  # the margin of the equivalence test, on either side
    ),
    "pretrained_equivalence": Claim(
        "Under the real model, the effect of one form of indirect exposure equals the lab's to "
        "within the margin (two one-sided tests).",
        null=0.0,
        smallest_effect=0.10,  # the margin, fixed in docs/protocol_2.md before its models existed
    ),
    # The audit of a user's model
    "audit": _TRAINED_ON,
    "dcq_own_controls": Claim(
        "The model finds more originals than a rule that never saw the data.",
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
