"""What a lecturer could say about the pretraining study, with every claim taken from its tables."""

from __future__ import annotations

import pandas as pd

from contamination.core.statistics import CHANCE
from contamination.core.tables import listed
from contamination.core.verdicts import SUPPORTED
from contamination.study.conditions import PARAPHRASE
from contamination.study.interface import ANSWERS
from contamination.study.pretraining_findings import copies_words, of_auc, percent
from contamination.study.shift import NONE

NEAR = 0.05  # AUC, or share of rows; the smallest effect of the protocol
NOT_MISLED = (
    "Where the suspected and the comparison rows differ in something else, no detector is shown to "
    "take that for contamination."
)
REWORDED = "a paraphrase (the same template with different content words) and never the row itself"


def conclusion(
    detection: pd.DataFrame,
    reference: pd.DataFrame,
    indirect: pd.DataFrame,
    rates: pd.DataFrame,
    shift: pd.DataFrame,
    forks: pd.DataFrame,
) -> str:
    """Three paragraphs: what is found at which exposure, by what access, and what may mislead.

    Args:
        detection, reference, indirect: of ``pretraining_results``.
        rates: true-positive rates of ``pretraining_rates``.
        shift: of ``shift.false_verdicts``.
        forks: of ``dice_forks.verdicts``.
    """
    exposed = [_of_exposures(detection, reference, rates)]
    other = [_of_answers(detection, detection["copies"].max()), _of_paraphrases(indirect)]
    misleading = [_of_shift(shift), _of_dice(forks)]
    paragraphs = (" ".join(filter(None, parts)) for parts in (exposed, other, misleading))
    return "\n\n".join(filter(None, paragraphs))


def in_brief(detection: pd.DataFrame, shift: pd.DataFrame) -> str:
    """Three sentences: the fewest copies, the most, and what misleads; as :func:`conclusion`."""
    doses = sorted(detection["copies"].unique())
    fewest = _dose_in_brief(detection, doses[0], " of a row in the training data")
    most = _dose_in_brief(detection, doses[-1])
    return f"{fewest} {most} {_shift_in_brief(shift)}"


def _dose_in_brief(detection: pd.DataFrame, dose: int, of_what: str = "") -> str:
    """How many detectors find rows at a dose, and how well the best of them does."""
    verdicts, best = detection.loc[detection["copies"].eq(dose), "verdict"], _best(detection, dose)
    k = int(verdicts.eq(SUPPORTED).sum())
    has = "it has" if k == 1 else "the best of these has"
    found = (
        f"{k} of {len(verdicts)} detectors {_are(k)} shown to be above chance, and {has} an AUC of"
    )
    if not k:
        found = "no detector is shown to be above chance; the highest AUC is"
    text = f"With {copies_words(dose)}{of_what}, {found} {of_auc(best)} ({best['detector']})"
    return _ended(text, best["auc"])


def _ended(text: str, auc: float) -> str:
    """A sentence about the best AUC, with what that AUC is good for if it is close to chance."""
    is_small = auc < CHANCE + NEAR
    return f"{text}, which is too low for judging a single row." if is_small else f"{text}."


def _are(n: int) -> str:
    return "is" if n == 1 else "are"


def _of_exposures(detection: pd.DataFrame, reference: pd.DataFrame, rates: pd.DataFrame) -> str:
    """What the fewest and the most copies allow, and what an attack that knows more adds."""
    attack = reference[~reference["is_exploratory"]].set_index("copies")
    doses = sorted(detection["copies"].unique())
    exposed = [_of_dose(detection, dose, attack) for dose in (doses[0], doses[-1])]
    exposed += [_room_above(detection, attack, doses), _at_few_false(detection, rates)]
    return " ".join(filter(None, exposed))


def _best(detection: pd.DataFrame, dose: int) -> pd.Series:
    """The detector with the highest AUC at a dose, among supported ones if there are any."""
    of_dose = detection[detection["copies"].eq(dose)]
    seen = of_dose[of_dose["verdict"].eq(SUPPORTED)]
    of_dose = of_dose if seen.empty else seen
    return of_dose.loc[of_dose["auc"].idxmax()]


def _of_dose(detection: pd.DataFrame, dose: int, attack: pd.DataFrame) -> str:
    of_dose = detection[detection["copies"].eq(dose)]
    n, k = len(of_dose), int(of_dose["verdict"].eq(SUPPORTED).sum())
    best, what = _best(detection, dose), copies_words(dose)
    share = percent(attack.loc[dose, "row_share_pct"])
    found = f"{k} of {n} detectors {_are(k)}" if k else "no detector is"
    text = (
        f"With {what} of a row in pretraining ({share} of the training tokens), {found} shown to "
        "be above chance on average over the models. "
        f"The highest {'supported ' * bool(k)}AUC is {of_auc(best)} ({best['detector']})"
    )
    return _ended(text, best["auc"])


def _room_above(detection: pd.DataFrame, attack: pd.DataFrame, doses: list[int]) -> str:
    """Whether an attack that knows more does much better than the best detector at any dose."""
    above = {dose: attack.loc[dose, "auc"] - _best(detection, dose)["auc"] for dose in doses}
    largest = max(above, key=lambda dose: above[dose])
    ends = [f"{attack.loc[n, 'auc']:.2f} with {copies_words(n)}" for n in (doses[0], doses[-1])]
    who = (
        "A reference attack, which also knows what the other base models saw, reaches an AUC of "
        f"{listed(ends)}"
    )
    if above[largest] < NEAR:
        return f"{who}. It never beats the best detector by {NEAR:.2f} or more."
    return (
        f"{who}. With {copies_words(largest)} that is {above[largest]:.2f} more than the best "
        "detector, so better detectors are possible."
    )


def _at_few_false(detection: pd.DataFrame, rates: pd.DataFrame) -> str:
    """The attack next to the best detector where false positives are fewest, at the largest dose.

    Only detectors that were asked on all benchmarks are compared with the attack.
    """
    is_last = rates["copies"].eq(rates["copies"].max()) & rates["fpr"].eq(rates["fpr"].min())
    own = rates[is_last].set_index("detector")
    everywhere = detection["benchmarks"].eq(max(detection["benchmarks"].unique(), key=len))
    best = own.loc[own.index.isin(detection.loc[everywhere, "detector"]), "tpr"]
    (attack,) = own.loc[own.index.str.startswith("reference attack"), "tpr"]
    name, found = best.idxmax(), best.max()
    text = (
        f"At {100 * rates['fpr'].min():.0f} % false positives, with "
        f"{copies_words(rates['copies'].max())}, that attack finds {100 * attack:.0f} % of the "
        f"rows and the best detector {100 * found:.0f} % ({name})"
    )
    if attack - found >= NEAR:
        return f"{text}, which suggests that the model retains traces that the detectors miss."
    return f"{text}. The attack is no upper bound on what the model keeps of a row."


def _of_answers(detection: pd.DataFrame, dose: int) -> str:
    """What answers alone allow at a dose, next to what log-probabilities allow."""
    is_dose, by_answers = detection["copies"].eq(dose), detection["access"].eq(ANSWERS)
    if not (is_dose & by_answers).any():
        return ""
    answers = _best(detection[by_answers], dose)
    scores = _best(detection[~by_answers], dose)
    if answers["auc"] >= scores["auc"]:
        return (
            f"Answers alone are enough: with {copies_words(dose)} they reach an AUC of "
            f"{of_auc(answers)} ({answers['detector']})."
        )
    return (
        f"Access matters: with {copies_words(dose)} the best detector that sees nothing but "
        f"answers reaches {of_auc(answers)} ({answers['detector']}), and the best one that "
        f"sees log-probabilities reaches {of_auc(scores)}."
    )


def _of_paraphrases(indirect: pd.DataFrame) -> str:
    own = indirect[indirect["exposure"].eq(PARAPHRASE)]
    if own.empty:
        return ""
    found = own[own["verdict"].eq(SUPPORTED)]
    largest = own["copies"].max()
    best = own[own["copies"].eq(largest)]
    best = best.loc[best["auc"].idxmax()]
    if found.empty:
        return (
            f"If the model saw {REWORDED}, no detector notices: with "
            f"{copies_words(largest)} the highest AUC is {of_auc(best)}."
        )
    counts = found.groupby("copies")["detector"].nunique()
    n = own["detector"].nunique()
    said = [
        f"{counts.get(dose, 0)} of {n} detectors notice {copies_words(dose)}"
        for dose in sorted(own["copies"].unique())
    ]
    return (
        f"If the model saw {REWORDED}, {listed(said)}. With {copies_words(largest)} the highest "
        f"AUC is {of_auc(best)} ({best['detector']}), and this detector reaches "
        f"{best['verbatim_auc']:.2f} on other rows of the same benchmark with as many verbatim "
        "copies."
    )


def _of_shift(shift: pd.DataFrame) -> str:
    """Whether a difference between the two sets is taken for contamination."""
    counts, worst = _misled(shift)
    if not counts:
        return NOT_MISLED
    return (
        "But a high score proves nothing by itself. If the two sets of rows differ in something "
        "else, detectors too often call one of them contaminated although no model saw it: "
        f"{counts}, with false alarms in up to {worst}."
    )


def _shift_in_brief(shift: pd.DataFrame) -> str:
    counts, worst = _misled(shift)
    if not counts:
        return NOT_MISLED
    return (
        "But the suspected rows and the held-out rows may differ in something else, which many "
        f"detectors take for contamination: {counts}, with false alarms in up to {worst}."
    )


def _misled(shift: pd.DataFrame) -> tuple[str, str]:
    """How many detectors a difference misleads, for each that does, and the worst case."""
    asked = shift[shift["verdict"].ne("") & shift["shift"].ne(NONE)]
    wrong = asked[asked["verdict"].eq(SUPPORTED)]
    if wrong.empty:
        return "", ""
    counts = []
    for kind in dict.fromkeys(wrong["shift"]):
        misled, of_kind = wrong[wrong["shift"].eq(kind)], asked[asked["shift"].eq(kind)]
        n, k = of_kind["detector"].nunique(), misled["detector"].nunique()
        counts.append(f"{kind} misleads {k} of {n}{'' if counts else ' detectors'}")
    worst = wrong.loc[wrong["rate"].idxmax()]
    share = f"{100 * worst['rate']:.0f} % of cases ({worst['detector']}, {worst['shift']})"
    return listed(counts), share


def _of_dice(forks: pd.DataFrame) -> str:
    """DICE within one base model: contaminated against other questions, and the false alarm."""
    rows = forks.set_index("claim")
    real, _, alarm = (rows.loc[name] for name in forks["claim"])
    found = "tells" if real["verdict"] == SUPPORTED else "is not shown to tell"
    text = (
        "DICE judges models and not rows. "
        f"Within one base model it {found} models that were fine-tuned on the benchmark from "
        f"models that were fine-tuned on other questions (AUROC {of_auc(real)})"
    )
    if alarm["verdict"] == SUPPORTED:
        return (
            f"{text}. It raises the alarm for the train split too ({of_auc(alarm)}); its network "
            "learned to tell the benchmark from one other set of questions, so part of its alarm "
            "may mean no more than that."
        )
    return f"{text}, and it is not shown to raise the alarm for the train split ({of_auc(alarm)})."
