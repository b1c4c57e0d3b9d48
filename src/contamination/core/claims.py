"""The claim of every verdict column, with the smallest effect that would matter to a reader.

Keys are names of tables, without ".csv". The smallest effects were chosen after the first results
had been seen, except where a protocol fixed them before.
"""

from __future__ import annotations

import pandas as pd

from contamination.core.verdicts import Claim, check_verdicts

# Claims that several tables make.
_INFLATION = Claim(
    "Contamination raises the accuracy more on the set of questions that was seen (GSM-i or "
    "GSM-ii) than on the other set, which is fresh.",
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
_TRAINED_ON = Claim("This model was trained on this dataset.", unit="AUC or share")

CLAIMS: dict[str, Claim] = {
    # First look: the four methods on one small model
    "first_look": Claim(
        "The method gives this model, which was trained on the instances, a higher value than "
        "chance and than every control.",
        null=0.5,  # the table's chance; 0 where a method has none
        unit="share or AUC",
    ),
    # Data Contamination Quiz
    "dcq_rules": Claim(
        "A rule without memory is right at least as often as this model, to within five points.",
        null=-5.0,
        smallest_effect=5.0,
        unit="points",
    ),
    "dcq_beyond_rules": Claim(
        "Where a rule is wrong, this model is right more often than every other rule.",
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
        "This model gives the right answer for every instance that it replicates, and not because "
        "it does so for nearly all instances.",
        null=0.0,
        smallest_effect=1.0,
        unit="share of replicas",
    ),
    "dcq_positions": Claim(
        "This model's answers move to the position of the original, and they do not move to "
        "a different text placed there.",
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
        "This real model finds the originals more often than a model that never saw them.",
        null=0.0,
        smallest_effect=10.0,
        unit="points",
    ),
    # Replication with the ICL judge
    "replication_published": Claim(
        "Naming the dataset and the split raises the overlap of this model's completions with the "
        "reference, according to a test that keeps its level.",
        null=0.0,
        smallest_effect=0.10,
        unit="mean overlap",
    ),
    "replication_success": Claim(
        "The algorithm is right about more partitions of the row's models than the rule that "
        "always answers clean.",
        null=0.0,
        smallest_effect=10.0,
        unit="points",
    ),
    "judge_agreement": _JUDGE,
    "replication_methods": Claim(
        "This model's partitions at the highest dose are called contaminated more often than "
        "partitions that it never saw.",
        null=0.0,
        smallest_effect=0.50,
        unit="share of partitions",
    ),
    "replication_placebos": Claim(
        "Where this model's guided completions beat general ones, they also beat completions "
        "under a wrong name.",
        unit="share of partitions",
    ),
    "pretrained_replication": Claim(
        "This real model completes instances when it is given the right names, and only then.",
        null=0.0,
        smallest_effect=1.0,
        unit="partitions",
    ),
    "pretrained_judge": _JUDGE,
    # Blind baselines, Min-k% Prob and WikiMIA
    "pretrained_min_k": Claim(
        "The score of this model, which is newer than all pages, tells older from newer pages "
        "better than words alone do."
    ),
    "naturalness": Claim(
        "A rule without memory finds the original more often than one in five.",
        null=20.0,
        smallest_effect=10.0,
        unit="percent of quizzes",
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
    "audit_dice": Claim(
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
    "pretraining_shift": Claim(
        "The detector says that one of two unseen sets was seen, and does so more often than the "
        "5 % that its level allows.",
        null=0.05,
        smallest_effect=0.10,
        unit="share of pairs of sets",
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
        unit="fall in AUC",
    ),
    "pretraining_larger": Claim(
        "At the same exposure, the detector tells seen rows from held-out rows better in the "
        "larger model.",
        null=0.0,
        smallest_effect=0.05,  # fixed in docs/protocol_larger.md before its scores
        unit="difference in AUC",
    ),
    # The audit of a user's model
    "audit": _TRAINED_ON,
    "audit_dcq": Claim(
        "This model finds more originals than guessing does and than every rule that never saw the "
        "data.",
        null=0.25,
        unit="share of quizzes",
    ),
    "audit_reciprocal": Claim(
        "This model answers every instance that it completes, and not because it answers nearly "
        "all instances.",
        null=0.0,
        smallest_effect=1.0,
        unit="share of completed instances",
    ),
    "audit_min_k_words": Claim(
        "A classifier that sees the text alone tells the dataset's rows from the comparison rows."
    ),
    "audit_replication": Claim(
        "Guided instructions make this model complete rows of this partition.",
        null=0.0,
        unit="share of completions that match",
    ),
}


def check_table(table: pd.DataFrame, name: str | None = None) -> None:
    """ValueError, one line, for a table whose verdicts are no verdicts or answer no known claim.

    Columns of verdicts are ``verdict``, those that end in ``_verdict``, and next to a ``verdict``
    the column ``word``, which is the verdict before its control is asked.

    Args:
        name: of the table, which ``CLAIMS`` must know. The claim of a column ``easy_verdict``
            is that of ``<name>_easy``. None for a table that is displayed and has no name.
    """
    whole = {"verdict", "word"} if "verdict" in table else set()
    for column in map(str, table):
        part = column.removesuffix("_verdict")
        if part == column and column not in whole:
            continue
        try:
            check_verdicts(table[column])
        except ValueError as error:
            raise ValueError(f"{name or 'displayed table'}, column {column}: {error}") from error
        claim = name if part == column else f"{name}_{part}"
        if name is not None and claim not in CLAIMS:
            raise ValueError(f'{name}, column {column}: add "{claim}" to CLAIMS of core/claims.py')
