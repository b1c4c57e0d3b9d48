"""The papers' printed numbers and the per-instance figures their authors released.

Package data, figures, labels and single words only, no text of any dataset:

* ``published_dcq_time_travel.csv``, ``published_min_k_dice.csv``: every printed
  cell of the papers' result tables, and rates that stand in their text alone, as text,
  exactly as printed. Two panels of DICE's figures are there by the values in its drawing
  programs (``dis_draw.py``, ``AUROC_draw.py``); that these are Figures 4(c) and 5(b) is our
  reading of the names under which they are saved (phi2, math) and of where they peak (31, 30);
* ``released_instances.csv``: quiz answers, ROUGE-L, BLEURT, judge and annotator
  labels per instance, from the authors' repositories (shahriargolchin/DCQ and
  shahriargolchin/time-travel-in-llms);
* ``dice_gsm8k_split_and_alignment.csv``: which GSM8K test row is in GSM-i or
  GSM-ii, and which released paraphrase belongs to it;
* ``dcq_rule_choices.csv``: what rules without memory take in DCQ's released quizzes;
* ``wikimia_blind_scores.csv``: what classifiers of the words, which saw no model,
  make of each WikiMIA passage (``min_k.auc_tables`` writes it);
* ``anchors.csv``: AUCs of other papers by number of copies, each with its source, which notebook
  09b draws;
* ``wikimia_words.csv``: the words that tell the two kinds of WikiMIA passages apart
  (``min_k.auc_tables`` writes it, too);
* ``membership_benchmarks.csv``: public membership benchmarks, and how members were chosen;
* ``membership_words.csv``: what words alone reach on them (``scripts/blind_baselines.py``).

The spelling of datasets and models in these files is the one used everywhere.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pandas as pd

DCQ_DATASETS = (
    "HumanEval",
    "DROP",
    "GSM8k",
    "IMDB",
    "AG News",
    "Yelp",
    "RTE",
    "WNLI",
    "SAMSum",
    "XSum",
)
WILD_DATASETS = DCQ_DATASETS[3:]
MODELS = ("GPT-4", "GPT-3.5")
RULE_CHOICES = "dcq_rule_choices.csv"
WIKIMIA_SCORES = "wikimia_blind_scores.csv"
WIKIMIA_WORDS = "wikimia_words.csv"
MEMBERSHIP_WORDS = "membership_words.csv"
_FOLDER = Path(__file__).parent


@cache
def _read(name: str) -> pd.DataFrame:
    # Printed values stay text: "0.60" has two decimals, 0.6 has one.
    return pd.read_csv(_FOLDER / name, dtype=str, keep_default_na=False)


def printed_cells() -> pd.DataFrame:
    """Every printed cell of the four papers, in the order of the papers, as text; a dash is "".

    paper, table, model, dataset, split (empty where none is printed), row (the printed row
    label), metric, value.
    """
    golchin = _read("published_dcq_time_travel.csv")
    others = _read("published_min_k_dice.csv")
    row = (others["setting"] + ", " + others["method"]).str.strip(", ")
    others = others.assign(split="", row=row)
    columns = ["paper", "table", "model", "dataset", "split", "row", "metric", "value"]
    return pd.concat([golchin[columns], others[columns]], ignore_index=True)


def released_instances(paper: str) -> pd.DataFrame:
    """Released figures of one paper, one row per instance and model.

    dataset, split, model, index, then for "DCQ" (1,706 rows) modified_answer and answer_at_a to
    answer_at_d (empty where the position was not quizzed), for "Time Travel" (280 rows)
    rouge_general, rouge_guided, bleurt_general, bleurt_guided (0 to 1, two decimals),
    annotator1, annotator2; for both judge ("exact", "near-exact" or "inexact").
    """
    rows = _read("released_instances.csv").query("paper == @paper").reset_index(drop=True)
    if rows.empty:
        raise ValueError(f'no released instances of "{paper}": choose "DCQ" or "Time Travel"')
    rows["index"] = rows["index"].astype(int)
    if paper == "DCQ":
        columns = ["bdq_answer", "icl_label", *(f"bcq_{letter}" for letter in "abcd")]
    else:
        scores = ["rouge_general", "rouge_guided", "bleurt_general", "bleurt_guided"]
        rows[scores] = rows[scores].astype(float)
        columns = [*scores, "icl_label", "annotator1", "annotator2"]
    renamed = {"bdq_answer": "modified_answer", "icl_label": "judge"}
    renamed |= {f"bcq_{letter}": f"answer_at_{letter}" for letter in "abcd"}
    return rows[["dataset", "split", "model", "index", *columns]].rename(columns=renamed)


def gsm8k_alignment() -> pd.DataFrame:
    """Split and true paraphrase of every GSM8K test row, as DICE shuffled them."""
    return pd.read_csv(_FOLDER / "dice_gsm8k_split_and_alignment.csv")


def rule_choices() -> pd.DataFrame:
    """What rules without memory take in the released DCQ quizzes, without any text, 6,381 rows.

    Written from the authors' files by ``scripts/rule_choices.py``; the rules are those of
    ``dcq.controls``, word frequencies those of wordfreq 3.1. dataset, index, position (of the
    original), control, choice (letters that the rule takes, several where they tie), margin
    (how far the next option lies below, in units of the rule's score, at least 0).
    """
    return _read(RULE_CHOICES).astype({"index": int, "margin": float})


def wikimia_blind_scores() -> pd.DataFrame:
    """Scores of the blind baselines for each passage of the real WikiMIA, 1,650 rows.

    length (words), index (row of the file of that length), is_member, fold, and a column for
    each of ``core.blind.BASELINES``: higher means more likely a member, from a
    classifier that was trained on the other folds.
    """
    return pd.read_csv(_FOLDER / WIKIMIA_SCORES).astype({"is_member": bool})


def wikimia_words() -> pd.DataFrame:
    """The words that say most about the label of the 128-word passages of WikiMIA, 20 rows.

    is_member (the label that the word points to), word, weight (of a bag of words, the largest
    of each label first), member_pct and non_member_pct (of the passages with that label that
    contain the word).
    """
    table = _read(WIKIMIA_WORDS)
    numbers = dict.fromkeys(["weight", "member_pct", "non_member_pct"], float)
    return table.astype({"is_member": int} | numbers).astype({"is_member": bool})


def membership_words() -> pd.DataFrame:
    """What words alone reach on public membership benchmarks, a row for each rule.

    benchmark, rule, n_members, n_non_members, n_sources, n_folds, auc with its 95 % interval
    (ci_low, ci_high), tpr_at_5_fpr; for the rule "words" also null, null_low and null_high: mean
    and ends of the AUCs under shuffled labels; used_pct: texts that name a year.
    ``scripts/blind_baselines.py`` writes it and says how.
    """
    return pd.read_csv(_FOLDER / MEMBERSHIP_WORDS)


def membership_benchmarks() -> pd.DataFrame:
    """The benchmarks of ``membership_words``, those that differ in length in one row.

    benchmark, repository, licence, decided_by (what made a row a member), members, non_members,
    published_auc of a detector (empty where we saw none) and published_from.
    """
    table = _read("membership_benchmarks.csv")
    return table.assign(published_auc=pd.to_numeric(table["published_auc"]))


def membership_summary() -> pd.DataFrame:
    """One row for each public membership benchmark, as ``plots.words_alone`` draws them.

    Of benchmarks in several lengths the one of 128 words. Columns of ``membership_benchmarks``,
    and of the rule "words" n_members, n_non_members, auc, ci_low, ci_high, tpr_at_5_fpr, null;
    simplest: the highest AUC of the latest year and of length, each in its better direction;
    is_control: an ordinary split into train and test.
    """
    rules = membership_words()
    rules = rules[~rules["benchmark"].str.contains(r"\b(?:32|64|256) words$")]
    rules["benchmark"] = rules["benchmark"].str.removesuffix(", 128 words")
    one_number = rules[~rules["rule"].str.startswith("words")]
    turned = one_number["auc"].where(one_number["auc"] > 0.5, 1 - one_number["auc"])
    simplest = turned.groupby(one_number["benchmark"]).max().rename("simplest")
    of_words = ["n_members", "n_non_members", "auc", "ci_low", "ci_high", "tpr_at_5_fpr", "null"]
    words = rules[rules["rule"].eq("words")].set_index("benchmark")[of_words]
    table = membership_benchmarks().join(words, on="benchmark", how="inner")
    is_control = table["decided_by"].eq("the authors' split")
    return table.join(simplest, on="benchmark").assign(is_control=is_control)
