"""Result numbers in pages and in the Markdown of notebooks are those of the stored tables.

A fact is a piece of a page with placeholders, and what fills them in from a table. A page fails
where the filled-in text is not in it, so an altered number fails, and so does an altered table.
What looks like a result and belongs to no fact must be named in ``NO_RESULT``, with its kind.
"""

import json
import re
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from notebook_files import EVERY_NOTEBOOK, ROOT
from scipy import stats

from contamination.core.statistics import holm
from contamination.data.published import membership_summary, membership_words
from contamination.dice import published_tables as dice_tables
from contamination.min_k.auc_tables import printed_average, wikimia_blind_table
from contamination.study.detection import ATTACK
from contamination.study.scores import display_name
from contamination.study.shift import CONTROLS

TABLES = ROOT / "outputs/reference/demo/tables"
RELEASED = ROOT / "docs/released_results.csv"
SIXTEEN, ONE = 16, 1
# What looks like a result: decimals of two digits or more, percentages, counts of a total.
NUMBER = re.compile(r"(?<![\w.])\d+\.\d{2,}\b|\b\d[\d.]* %|\b\d+ of (?:the |about )?\d[\d,]*\b")
# Pages whose every result is a fact, and what else looks like one there.
COVERED = {
    # Chance, Pythons, the papers' claims; and what the picture of an audit shows.
    "README.md": {"0.50", "25 %", "3.11", "3.13", "100 %", "5 %", "56 of 60"},
    "docs/verdicts.md": {"13 of 14", "0.05"},  # a claim, as the README has it, and a level
    # In a heading; the table below it has them as facts. And what papers print.
    "docs/which_detector.md": {"95 %", "20 %", "0.52", "0.58", "0.65", "0.83"}
    | {"0.91", "0.97", "0.75", "199 of 335", "60 %", "54.6 %", "0.0 %", "76 %", "53 %", "4 %"},
}
# In Markdown of notebooks: levels of tests and intervals, smallest effects, tolerances, ...
ANYWHERE = {"0.05", "0.01", "0.02", "0.10"}
# ... and settings that a sentence names, worked examples, and what a paper prints.
NO_RESULT = {
    "00": {"0.82"},
    "02": {"2.25"},
    "02b": {"100 of 1,000"},
    "03": {"0.00001"},
    "04b": {"0.72", "0.67"},
    "09b": {"0.55"},
    "12": {"1.645", "4.03"},
    "08": {"10 of 188", "188 of about 1000", "103 of 1000", "1.15", "0.86", "0.87"},
}


@cache
def table(name):
    return pd.read_csv(TABLES / f"{name}.csv", keep_default_na=True)


def of(name, **values):
    """Rows of a stored table; ValueError if there is none."""
    found = table(name)
    for column, value in values.items():
        found = found[found[column].eq(value)]
    if found.empty:
        raise ValueError(f"{name} has no row with {values}")
    return found


def one(name, column, **values):
    return of(name, **values)[column].iloc[0]


def cells():
    """Printed cells of the papers on the quiz and on replication."""
    found = table("published_vs_recomputed")
    return found[found["paper"].isin(["DCQ", "Time Travel"])]


def maxima():
    return of("dcq_published", model="GPT-4")["max_pct"]


def rule_minus_gpt4():
    """Word frequency minus GPT-4 at equal coverage: an interval over datasets."""
    rows = of("dcq_rules", model="GPT-4", control="word frequency", counted="equal coverage")
    difference = rows["difference_pct"]
    low, high = stats.t.interval(0.95, len(rows) - 1, difference.mean(), stats.sem(difference))
    return SimpleNamespace(mean=difference.mean(), low=low, high=high)


def judged(algorithm, model):
    return one("replication_success", "n_right", algorithm=algorithm, model=model)


def r_squared(result):
    rows = pd.read_csv(RELEASED)
    return rows.loc[rows["result"].eq(result), "value"]


def detection(copies, models="small"):
    rows = of("pretraining_detection", copies=copies, models=models)
    return rows.set_index("detector")["auc"]


def attack(copies, models="small"):
    return one("pretraining_reference", "auc", copies=copies, models=models, form="LiRA")


def n_shown(copies):
    """Detectors that pass the registered test, of how many, and those that pass the exact one."""
    rows = of("pretraining_detection", copies=copies, models="small")
    registered = (rows["p_adjusted"] <= 0.05) & (rows["ci_low"] > 0.5)
    return int(registered.sum()), len(rows), int((rows["p_joint_adjusted"] <= 0.05).sum())


def by_part(part):
    values = {"models": "larger", "detector": "Min-k% Prob", "part": str(part)}
    return one("pretraining_timing", "auc", **values)


def needed(copies, models="small"):
    values = {"models": models, "detector": "Min-k% Prob", "copies": copies}
    return one("pretraining_rows", "rows_needed", **values)


def per_copy(copies, models="small"):
    values = {"models": models, "detector": "Min-k% Prob", "copies": copies}
    return one("pretraining_rows", "d_prime_per_copy", **values)


def one_copy(where):
    """AUC of Min-k% Prob for rows seen once, outside the study."""
    if where == "earlier study":
        path = ROOT / "src/contamination/study/first_study_topics.csv"
        rows = pd.read_csv(path).query("model == 'dosed' and copies == 1")
        return rows["auc"].item()
    if where == "lesson":
        # The lesson writes no table, but says it in its conclusion.
        executed = ROOT / "outputs/reference/demo/notebooks/04_min_k_wikimia.ipynb"
        return float(re.search(r"mean AUC from 0\.\d\d to (0\.\d\d)", executed.read_text())[1])
    rows = of("min_k_auc", setting="random", method="Min-k% Prob", copies=1)
    return rows.loc[rows["seed"].isna(), "auc"].iloc[0]


def misled_by_length():
    """Detectors with a test of sets that differ in length, and those of them that fail it."""
    rows = of("pretraining_shift", shift="length")
    rows = rows[rows["p_adjusted"].notna() & ~rows["detector"].isin(map(display_name, CONTROLS))]
    smallest = rows.groupby("detector")["p_adjusted"].min()
    return int((smallest <= 0.05).sum()), len(smallest)


def released_results():
    """R² between DICE's released scores and accuracies, from the authors' files."""
    correlation = dice_tables.released_correlation(dice_tables.released_scores())
    main = dice_tables.SCORE_TABLES[0]
    both = {main: R_SQUARED, f"{main}, scores of the other": SWAPPED}
    found = correlation[correlation["source"].isin(both)]
    found = found.assign(result=found["source"].map(both), item=found["benchmark"])
    return found.set_index(["result", "item"])["r_squared"]


def of_figure_6b():
    """Ends of R² from both released tables, and the lowest of the first with its 95 % interval.

    The interval is Fisher's, of the correlation.
    """
    main, other = r_squared(R_SQUARED), r_squared(f"{R_SQUARED}, other table's scores")
    n = pd.read_csv(RELEASED)["n"].min()
    ends = np.arctanh(np.sqrt(main.min())) + np.array([-1, 1]) * 1.96 / np.sqrt(n - 3)
    return main.min(), main.max(), other.min(), other.max(), *np.tanh(ends) ** 2


def n_significant(column):
    return int(table("replication_published")[column].sum())


def left_within(score):
    """Tests of one score that sign flips leave after Holm's correction for this score alone."""
    p_values = of("replication_published", metric=score)["p_sign_flip"]
    return int((holm(p_values.to_numpy()) <= 0.05).sum())


def rule(name, dataset):
    """A rule against GPT-4 on one dataset, at equal coverage."""
    return of("dcq_rules", model="GPT-4", control=name, counted="equal coverage", dataset=dataset)


def lead(dataset):
    """Points by which word frequency leads."""
    return rule("word frequency", dataset)["difference_pct"].iloc[0]


def n_behind_gpt4(name):
    """Datasets on which a rule is shown to be behind GPT-4."""
    rows = of("dcq_rules", model="GPT-4", control=name, counted="E wrong")
    return int((rows["p_worse"] <= 0.05).sum())


@cache
def words():
    """AUC of the words alone at each length of WikiMIA."""
    return wikimia_blind_table().query("baseline == 'bag of words'")["auc"]


def told_by_words():
    """Public benchmarks that words are shown to tell apart, and all that were asked."""
    rows = membership_summary().query("not is_control")
    return int(rows["ci_low"].gt(0.5).sum()), len(rows)


def blind_auc(benchmark, rule="words"):
    """AUCs of a rule on a public benchmark, or on its lengths; in its better direction."""
    rows = membership_words().query("rule == @rule")
    aucs = rows[rows["benchmark"].str.fullmatch(rf"{benchmark}(?:, \d+ words)?")]["auc"]
    return aucs.where(aucs > 0.5, 1 - aucs)


def masked_range(benchmark):
    aucs = blind_auc(benchmark, "words, digits masked")
    return aucs.min(), aucs.max()


def interval(name, **values):
    row = of(name, **values).iloc[0]
    return f"{row['auc']:.2f} [{row['ci_low']:.2f}, {row['ci_high']:.2f}]"


def rise(form):
    """By how much the AUC rises in the study of forms, with its interval."""
    values = {"detector": "Min-k% Prob", "against": "held out", "form": form}
    row = of("pretrained_forms", **values).iloc[0]
    return f"{row['change']:.2f} [{row['ci_low']:.2f}, {row['ci_high']:.2f}]"


def trace_more(test):
    """By how much the trace of four copies is larger in the first model of a test of scale."""
    row = of("scale", test=test).iloc[0]
    return f"{row['difference']:.2f} [{row['ci_low']:.2f}, {row['ci_high']:.2f}]"


def company(rows, test, sign=1):
    """A trace of four copies alone, or by how much company changes it."""
    row = of("company", rows=rows, test=test).iloc[0]
    low, high = sorted((sign * row["ci_low"], sign * row["ci_high"]))
    return f"{sign * row['difference']:.2f} [{low:.2f}, {high:.2f}]"


def of_grammars(copies, in_company):
    """AUC of rows of the grammars by how often they are seen."""
    values = {"detector": "Min-k% Prob", "rows": "grammar", "copies": copies}
    row = of("company_traces", is_in_company=in_company, **values).iloc[0]
    return f"{row['auc']:.2f} [{row['ci_low']:.2f}, {row['ci_high']:.2f}]"


def of_company():
    """What CHANGELOG and which_detector say of rows alone and in company."""
    less = company("grammar", "company", -1)
    return company("grammar", "alone"), less, company("natural", "alone")


def judges_p():
    """Of GPT-4's judge: corrected as stored, and for all six comparisons of the two models."""
    rows = of("replication_success").dropna(subset="p_adjusted")
    rows = rows[rows["model"].ne("both models")]
    (place,) = np.flatnonzero(rows["algorithm"].eq(JUDGE) & rows["model"].eq("GPT-4"))
    return rows["p_adjusted"].iloc[place], holm(rows["p_value"].to_numpy())[place]


def placed(schedule, detector="Min-k% Prob"):
    return of("placement", detector=detector, schedule=schedule).iloc[0]


def with_limits(row, column):
    return f"{row[column]:.2f} [{row['ci_low']:.2f}, {row['ci_high']:.2f}]"


def repaired(repair, share=0):
    values = {"detector": "Min-k% Prob", "difference": "1.0", "share": share, "repair": repair}
    return one("length_repairs", "rate", **values)


def detector_row(detector):
    """A row of the table of docs/which_detector.md."""
    aucs = [
        interval("pretraining_detection", detector=detector, copies=n, models="small")
        for n in (1, 4, 16)
    ]
    for name, column, text, values in (
        ("pretraining_larger", "auc_larger", "{:.2f}", {"copies": SIXTEEN}),
        ("pretraining_indirect", "auc", "{:.2f}", {"exposure": "paraphrase", "copies": SIXTEEN}),
        ("pretraining_shift", "rate", "{:.0%}", {"shift": "length"}),
    ):
        try:
            found = of(name, detector=detector, **values)[column].max()
        except ValueError:
            aucs.append("–")
        else:
            aucs.append(text.format(found).replace("%", " %"))
    return f"| {detector} | {' | '.join(aucs)} |"


R_SQUARED = "R² of Figure 6(b)"
SWAPPED = f"{R_SQUARED}, other table's scores"
JUDGE, CLEAN = "Algorithm 2: GPT-4 ICL", "always clean"

FACTS = [
    ("README.md", "GPT-4 is right in {0:.0f} to {1:.0f} % of the quizzes",
     lambda: (maxima().min(), maxima().max())),
    ("README.md", "GPT-4 finds the original in {0:.0f} to {1:.0f} % of its quizzes | {0:.0f} to {1:.0f} %",
     lambda: (maxima().min(), maxima().max())),
    ("README.md", "print {0} numbers. We can recompute {1} of them from released answers, and {2} agree",
     lambda: (len(cells()), cells()["recomputed"].notna().sum(), cells()["matches"].eq(True).sum())),
    ("README.md", "| {0:.0f} of {1:.0f} | {2:.1f} expected",
     lambda: tuple(table("dcq_reciprocal")[["n_right_best_quiz", "n_replicas", "expected_if_independent"]].sum())),
    ("README.md", "{0} of {1} tests find contamination | {2} | a correction for {1} tests leaves {3}",
     lambda: (int(table("replication_published")["paper_significant"].sum()), len(table("replication_published")),
              n_significant("significant"), n_significant("significant_holm"))),
    ("README.md", "right in {0} (GPT-4) and {1} (GPT-3.5) of {2} cases | {0} and {1} | always answering \"clean\" is right in {3} and {4}",
     lambda: (judged(JUDGE, "GPT-4"), judged(JUDGE, "GPT-3.5"),
              one("replication_success", "n_partitions", algorithm=JUDGE, model="GPT-4"),
              judged(CLEAN, "GPT-4"), judged(CLEAN, "GPT-3.5"))),
    ("README.md", "p = {0:.3f} for three tests, {1:.3f} for six", judges_p),
    ("README.md", "an AUC of {0} (chance is 0.50) | needs five large models | the words alone, without any model, reach {1:.2f}",
     lambda: (printed_average().loc["Min-k% Prob", "paper_auc"],
              words().min())),
    ("docs/blind_baselines.md", "On {0} of {1} benchmarks words are shown to tell", told_by_words),
    ("docs/blind_baselines.md", "WikiMIA falls from {0:.2f} and more to {1:.2f} to {2:.2f}, and WikiMIA-24 to {3:.2f} to {4:.2f}",
     lambda: (blind_auc("WikiMIA").min(), *masked_range("WikiMIA"), *masked_range("WikiMIA-24"))),
    ("docs/blind_baselines.md", "On SynPrune the AUC falls from {0:.2f} to {1:.2f} if",
     lambda: (blind_auc("SynPrune").item(), blind_auc("SynPrune", "words, folds of neighbours").item())),
    ("docs/blind_baselines.md", "while the words reach {0:.2f}. On MUSE-Books the length alone reaches {1:.2f} and the words {2:.2f}; "
     "on the arXiv papers the latest year reaches {3:.2f} and the words {4:.2f}",
     lambda: (blind_auc("RL-MIA, SAT").item(), *(blind_auc("MUSE-Books", rule).item() for rule in ("longer is member", "words")),
              *(blind_auc("arXiv, all against one month", rule).item() for rule in ("latest year", "words")))),
    ("README.md", "On {0} of the {1}, words are shown to tell", told_by_words),
    ("README.md", "(R² of 0.61 to 0.75) | {0:.2f} to {1:.2f}, with 10 of 11 models | a second released table gives {2:.2f} to {3:.2f}",
     lambda: (r_squared(R_SQUARED).min(), r_squared(R_SQUARED).max(),
              r_squared(SWAPPED).min(),
              r_squared(SWAPPED).max())),
    ("notebooks/09_results.ipynb", "an R² of {0:.2f} to {1:.2f}, and the paper prints 0.61 to 0.75. A second released table has other scores "
     "for some of the models, and they give {2:.2f} to {3:.2f}. Ten models are too few to say more: the 95 % interval of an R² of {0:.2f} "
     "reaches from {4:.1f} to {5:.1f}.", of_figure_6b),
    ("README.md", "Min-k% Prob reaches {0:.2f}, {1:.2f} and {2:.2f} at one, four and sixteen copies, and {3:.2f}, {4:.2f} and {5:.2f} in the larger models",
     lambda: tuple(detection(n, models)["Min-k% Prob"] for models in ("small", "larger") for n in (1, 4, 16))),
    ("README.md", "three tenths of the training is {0} higher than that of rows from the first three, and {1} higher if",
     lambda: tuple(with_limits(placed(schedule), "difference") for schedule in ("cosine", "constant"))),
    ("docs/which_detector.md", "the last three tenths beat the first three by {0}, and by {1} if the learning rate does not fall ({2:.2f} and {3:.2f} for",
     lambda: (*(with_limits(placed(schedule), "difference") for schedule in ("cosine", "constant")),
              *(placed(schedule, ATTACK)["difference"] for schedule in ("cosine", "constant")))),
    ("docs/which_detector.md", "accuses a clean model in {0:.0f} % of the audits", lambda: (100 * repaired("none"),)),
    ("docs/which_detector.md", "let expect, it is {0:.0f} %, with the audit's rule {1:.0f} %, and both find {2:.0f} % or more",
     lambda: (100 * repaired("less length and word frequency"), 100 * repaired("the audit's rule"), 100 * repaired("the audit's rule", 1))),
    ("docs/which_detector.md", "The difference to a clean model makes it {0:.0f} %", lambda: (100 * repaired("less a clean model's score"),)),
    ("README.md", "needs about {0:.0f} of them in the larger models and about {1:,.0f} in the small ones, and as many held-out rows. For rows seen sixteen times, {2:.0f} are enough",
     lambda: (round(needed(1, "larger"), -1), round(needed(1) / 50) * 50, needed(16))),
    ("docs/which_detector.md", "By the test that we had registered, {0} of {1} detectors find rows seen once and {3} find rows seen sixteen times. By an exact test of the same mean AUC, which we chose later, it is {2} and {4}.",
     lambda: (*n_shown(1), n_shown(16)[0], n_shown(16)[2])),
    ("README.md", "two *clean* models are told apart in {0:.0f} % on fresh questions and in {1:.0f} % on those that the detector learned from, and the base model from a clean one in {2:.0f} %",
     lambda: tuple(one("dice_controls", "auroc_pct", control=name) for name in (
         "two clean models, other texts", "the same, on the detector's training questions", "base model against clean"))),
    ("docs/which_detector.md", "reaches {0:.2f} if it lies in the first fifth of the training, and {1:.2f} if it lies in the last", lambda: (by_part(1), by_part(5))),
    ("docs/which_detector.md", "needs about {0:.0f} rows of each kind in the larger models and about {1:,.0f} in the small ones. For rows seen sixteen times, {2:.0f} are enough",
     lambda: (round(needed(1, "larger"), -1), round(needed(1) / 50) * 50, needed(16))),
    ("docs/which_detector.md", "Min-k% Prob notices the exposure in {0:.0f} % of audits of a small model and in {1:.0f} % of a larger one",
     lambda: tuple(100 * one("pretraining_rows", "power_60", models=models, detector="Min-k% Prob", copies=ONE) for models in ("small", "larger"))),
    ("docs/which_detector.md", "the reference attack leads the best detector by {0:.2f}",
     lambda: (one("pretraining_reference", "lead", copies=4, models="larger", form="LiRA"),)),
    ("docs/which_detector.md", "in one step of fine-tuning | at once | {0:.2f} |", lambda: (one_copy("lesson"),)),
    ("docs/which_detector.md", "in a short fine-tuning | at once | {0:.2f} |", lambda: (one_copy("earlier study"),)),
    ("docs/which_detector.md", "among passages seen up to eight times | at once | {0:.2f} |", lambda: (one_copy("lab"),)),
    ("docs/which_detector.md", "mixed into the whole of pretraining | at the end | {0:.2f} |", lambda: (detection(ONE)["Min-k% Prob"],)),
    ("README.md", "{0} of the {1} detectors that generate no text accuse a model that saw none of them", misled_by_length),
    ("docs/verdicts.md", "GPT-4 leads by {0:.0f} points on XSum, and the rule leads by {1:.0f} points on IMDB",
     lambda: (-lead("XSum"), lead("IMDB"))),
    ("docs/verdicts.md", "A rule that picks the longest text is behind GPT-4 on all {0} datasets",
     lambda: (n_behind_gpt4("length"),)),
    ("docs/verdicts.md", "the models find {0:.0f} of the {1:.0f} rows",
     lambda: tuple(table("dcq_reciprocal")[["n_right_any_quiz", "n_replicas"]].sum())),
    ("docs/verdicts.md", "{0} of the 56 tests are significant. Exact sign flips give {1}.",
     lambda: (n_significant("significant_unpaired"), n_significant("significant_sign_flip"))),
    ("docs/verdicts.md", "Corrected within one score, sign flips leave {0} tests with ROUGE-L and {1} with BLEURT.",
     lambda: (left_within("ROUGE-L"), left_within("BLEURT"))),
    ("docs/verdicts.md", "the judge is right in {0} of {1} cases and the constant answer \"clean\" in {2}",
     lambda: (judged(JUDGE, "both models"),
              one("replication_success", "n_partitions", algorithm=JUDGE, model="both models"),
              judged(CLEAN, "both models"))),
    ("docs/verdicts.md", "The words reach {0:.2f} at each of the four passage lengths", lambda: (words().min(),)),
    ("docs/verdicts.md", "on other texts in {0:.0f} % of pairs",
     lambda: (one("dice_controls", "auroc_pct", control="two clean models, other texts"),)),
    ("docs/which_detector.md", "The best AUC is {0:.2f}, and a reference attack that also knows what other models saw reaches only {1:.2f} ({2:.2f} in the larger models).",
     lambda: (detection(ONE).max(), attack(ONE), attack(ONE, "larger"))),
    ("docs/which_detector.md", "it finds {0:.0f} % of the seen rows while it accuses 1 % of the held-out rows of the same model, and {1:.0f} % in the larger models",
     lambda: tuple(100 * one("pretraining_tpr", "tpr", detector="Min-k% Prob", copies=SIXTEEN, fpr=0.01, models=models) for models in ("small", "larger"))),
    ("docs/which_detector.md", "with AUCs of {0:.2f} and {1:.2f}",
     lambda: (detection(SIXTEEN)["DCQ (simulated respondent)"], detection(SIXTEEN)["n-gram coverage"])),
    ("docs/which_detector.md", "lowers the AUC of the six token detectors by {0:.2f} at most",
     lambda: (table("pretraining_later")["fall"].max(),)),
    ("docs/which_detector.md", "raise the AUC of the originals by {0}, and four readings of the rows themselves by {1} (",
     lambda: (rise("paraphrase"), rise("verbatim"))),
    ("CHANGELOG.md", "for the originals by {0}, four readings of the row by {1}, and four readings without the label by {2} (",
     lambda: (rise("paraphrase"), rise("verbatim"), rise("without label"))),
    ("docs/which_detector.md", "by {0} standard deviations after 0.6 million tokens and {1} after 1.5 million",
     lambda: (trace_more("size, less text"), trace_more("size, more text"))),
    ("README.md", "reach an AUC of {0} if the model saw no similar row, and {1} among similar rows",
     lambda: (of_grammars(4, False), of_grammars(4, True))),
    ("CHANGELOG.md", "by {0} standard deviations if the model sees no similar row, and by {1} less", of_company),
    ("CHANGELOG.md", "Passages of docstrings show their copies, too ({2})", of_company),
    ("docs/which_detector.md", "by {0} standard deviations alone, and by {1} less among similar rows that", of_company),
    ("docs/which_detector.md", "one passage from each module, separate by {2} alone", of_company),
    ("docs/which_detector.md", "the difference is {0} (sixteen",
     lambda: (company("natural", "company"),)),
    ("docs/which_detector.md", "One copy reaches an AUC of {0} alone and {1} among similar rows",
     lambda: (of_grammars(1, False), of_grammars(1, True))),
    ("README.md", "raise the AUC of the original rows by {0}, and four readings of the rows themselves by {1}.",
     lambda: (rise("paraphrase"), rise("verbatim"))),
    ("docs/which_detector.md", "The longer text takes {0} of the distance away in the smallest",
     lambda: (trace_more("text, smallest model"),)),
    ("CHANGELOG.md", "by {0} and {1} standard deviations",
     lambda: (trace_more("size, less text"), trace_more("size, more text"))),
    ("docs/which_detector.md", "fine-tuned on other questions ({0})",
     lambda: (interval("dice_forks", claim="contaminated against other questions"),)),
    ("docs/which_detector.md", "no test question ({0})",
     lambda: (interval("dice_forks", claim="train split against other questions"),)),
    ("notebooks/05_dice.ipynb", "rows of another kind ({0})",
     lambda: (interval("dice_forks", claim="contaminated against other questions"),)),
    ("notebooks/05_dice.ipynb", "apart from these, too ({0})",
     lambda: (interval("dice_forks", claim="train split against other questions"),)),
    ("docs/teaching.md", "level is as printed | {0} of {1} |",
     lambda: (int(table("dcq_published")["matches"].sum()), len(table("dcq_published")))),
    ("docs/teaching.md", "ten datasets | {0:.0f} to {1:.0f} % |", lambda: (maxima().min(), maxima().max())),
    ("docs/teaching.md", "mean over the datasets | {0:.0f} points [{1:.0f}, {2:+.0f}] |",
     lambda: (rule_minus_gpt4().mean, rule_minus_gpt4().low, rule_minus_gpt4().high)),
    ("docs/teaching.md", "GPT-4's lead over length is shown | {0} of 10 |", lambda: (n_behind_gpt4("length"),)),
    ("docs/teaching.md", "paired bootstrap {0}, unpaired {1}, sign flips {2}, bootstrap with Holm {3}, sign flips with Holm {4} |",
     lambda: tuple(n_significant(f"significant{rest}") for rest in ("", "_unpaired", "_sign_flip", "_holm", "_sign_flip_holm"))),
    ("docs/teaching.md", "GPT-4: {0}, always \"clean\" {1}; GPT-3.5: {2}, always \"clean\" {3} |",
     lambda: tuple(judged(name, model) for model in ("GPT-4", "GPT-3.5") for name in (JUDGE, CLEAN))),
    ("docs/teaching.md", "{0:.3f} to {1:.3f} (printed for Min-k% Prob: {2}) |",
     lambda: (words().min(), words().max(), printed_average().loc["Min-k% Prob", "paper_auc"])),
]  # fmt: skip

# Sentences without a number of their own that a table could refute.
CARRIED = {
    "the data do not show which of the two is better": lambda: (
        rule_minus_gpt4().low < 0 < rule_minus_gpt4().high
    ),
    "From four copies on, every copy moves seen rows about equally far from held-out ones": lambda: (
        abs(per_copy(4) / per_copy(16) - 1) < 0.15
        and abs(per_copy(4, "larger") / per_copy(16, "larger") - 1) < 0.15
    ),
    "A copy seen early is almost gone, and a copy seen late shows.": lambda: (
        one("pretraining_timing", "ci_low", models="larger", detector="Min-k% Prob", part="1") < 0.5
        and one(
            "pretraining_timing",
            "ci_low",
            models="larger",
            detector="Min-k% Prob",
            part="last minus first",
        )
        > 0
    ),
    "whether *more often than other rows* holds is open": lambda: (
        not any(table("dcq_reciprocal")["p_adjusted"] <= 0.05)
    ),
    "*always* is refuted": lambda: (
        table("dcq_reciprocal")["n_right_any_quiz"].sum()
        < table("dcq_reciprocal")["n_replicas"].sum()
    ),
    "Min-k% Prob is the best of fifteen detectors from four copies on": lambda: all(
        detection(n).idxmax() == "Min-k% Prob" and len(detection(n)) == 15 for n in (4, SIXTEEN)
    ),
    "half of the findings do not survive": lambda: (
        2 * n_significant("significant_holm") == n_significant("significant")
    ),
}


def text_of(name):
    """A page, or the Markdown of a notebook, with single spaces."""
    path = ROOT / name
    if path.suffix == ".ipynb":
        found = json.loads(path.read_text())["cells"]
        text = "\n\n".join("".join(c["source"]) for c in found if c["cell_type"] == "markdown")
    else:
        text = path.read_text()
    return " ".join(text.split())


@cache
def filled(template, values):
    found = tuple(values())
    assert not any(isinstance(v, float) and np.isnan(v) for v in found), template
    return template.format(*found)


@pytest.mark.parametrize(("page", "template", "values"), FACTS, ids=[f[1][:40] for f in FACTS])
def test_a_page_says_what_the_tables_say(page, template, values):
    assert filled(template, values) in text_of(page)


@pytest.mark.parametrize("sentence", CARRIED)
def test_the_tables_carry_what_the_readme_says(sentence):
    assert sentence in text_of("README.md")
    assert CARRIED[sentence]()


def results_in(text):
    """What looks like a result outside code, links and arXiv numbers.

    >>> results_in("AUC 0.71; `0.62`: a share; [page](https://x.org/1.23); 7 of the 12 ties")
    ['0.71', '7 of the 12']
    """
    text = re.sub(r"`[^`\n]*`|\]\([^)]*\)|(?:arXiv|doi):\S+", "", text)
    return NUMBER.findall(text)


@pytest.mark.parametrize("detector", [*dict.fromkeys(table("pretraining_detection")["detector"])])
def test_the_page_on_detectors_has_their_rows(detector):
    assert detector_row(detector) in text_of("docs/which_detector.md")


WITHIN = re.compile(r"^\| (0\d\w?) \| (.+?)(?:: (.+?))? \| (-?\d\.\d+) \| ± (\d\.\d+) \|", re.M)


def test_numbers_of_trained_models_lie_within_the_tolerances_of_the_teaching_page():
    """The page keeps its numbers while those of another processor lie within."""
    found = WITHIN.findall((ROOT / "docs/teaching.md").read_text())
    assert len(found) == 12
    for notebook, about, what, stated, within in found:
        method, _, _ = about.partition(", ")
        if notebook == "00":
            rows = of("first_look", method=method)
            finding, controls = rows["value"].iloc[0], rows["value"].iloc[1:].max()
            value = finding if what == "finding" else controls
        else:
            rows = of("min_k_auc", setting="random", method=method, copies=float(what))
            value = rows.loc[rows["seed"].isna(), "auc"].item()
        assert abs(value - float(stated)) <= float(within) + 1e-9, (about, what)


@pytest.mark.parametrize("page", COVERED)
def test_every_result_of_a_page_is_a_fact(page):
    text = text_of(page)
    for of_page, template, values in FACTS:
        if of_page == page:
            text = text.replace(filled(template, values), "")
    if page == "docs/which_detector.md":
        for detector in table("pretraining_detection")["detector"].unique():
            text = text.replace(detector_row(detector), "")
    assert [number for number in results_in(text) if number not in COVERED[page]] == []


@pytest.mark.parametrize("path", EVERY_NOTEBOOK, ids=lambda path: path.stem)
def test_every_result_in_the_markdown_of_a_notebook_is_a_fact(path):
    name = path.relative_to(ROOT).as_posix()
    text = text_of(name)
    for of_page, template, values in FACTS:
        if of_page == name:
            text = text.replace(filled(template, values), "")
    allowed = ANYWHERE | NO_RESULT.get(path.stem.partition("_")[0], set())
    found = [number for number in results_in(text) if not number.endswith("%")]
    assert [number for number in found if number not in allowed] == []


@pytest.mark.mirror
def test_results_that_need_the_authors_files_are_those_of_the_files():
    stored = pd.read_csv(RELEASED).set_index(["result", "item"])["value"]
    found = released_results().reindex(stored.index)
    assert np.allclose(found, stored, atol=1e-6)


@pytest.mark.parametrize(("page", "template", "values"), FACTS[:1])
def test_an_altered_number_is_noticed(page, template, values):
    right = filled(template, values)
    wrong = re.sub(r"\d", lambda digit: str((int(digit[0]) + 1) % 10), right, count=1)
    assert right in text_of(page) and wrong not in text_of(page)
