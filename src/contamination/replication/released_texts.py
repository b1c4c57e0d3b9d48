"""Time Travel's Tables 1 and 2 next to what the released completions, scores and labels give."""

from __future__ import annotations

from itertools import product
from typing import Any

import pandas as pd

from contamination.core.overlap import JOINED_AS_PAPER, rouge_l
from contamination.core.statistics import holm, mcnemar_p, share_difference_interval
from contamination.core.verdicts import CLAIMS, verdict_column
from contamination.core.words import sentence_ends
from contamination.data.published import (
    DCQ_DATASETS,
    MODELS,
    WILD_DATASETS,
    printed_cells,
    released_instances,
)
from contamination.data.published.compare import CELL_KEYS, Reason, matches_printed
from contamination.data.sources import source_file
from contamination.models.judging import EXACT, NEAR_EXACT, parse_label, rule_labels
from contamination.models.loading import LanguageModel
from contamination.replication.agreement import (
    PROMPT_EXAMPLES,
    agreement_row,
    corrected,
    leave_one_partition_out,
)
from contamination.replication.algorithms import (
    MARK_EXACT,
    MARK_NEAR_EXACT,
    MARK_NONE,
    MIN_NEAR_EXACT,
    PARTITION,
    compare_instructions,
    is_contaminated,
    partition_mark,
)
from contamination.replication.decisions import DID_CHATGPT_CHEAT, bleurt_scores
from contamination.replication.instructions import (
    CLASSIFICATION,
    NLI,
    ONE_SENTENCE_SUMMARY,
    SUMMARY,
    prompts_of,
)

TIME_TRAVEL = "shahriargolchin/time-travel-in-llms"
DCQ = "shahriargolchin/DCQ"
_MODEL_FOLDERS = {"GPT-4": "gpt4", "GPT-3.5": "gpt3.5"}
_SPLIT_FILES = {"train": "train", "test": "test", "validation": "valid"}
_DCQ_SPLITS = dict.fromkeys(DCQ_DATASETS, "test") | {"GSM8k": "train"}
_DCQ_SPLITS |= dict.fromkeys(("DROP", "RTE", "WNLI"), "validation")
_TASKS = {"RTE": NLI, "WNLI": NLI, "SAMSum": SUMMARY, "XSum": ONE_SENTENCE_SUMMARY}
_PIECES = ["first_piece", "second_piece", "is_pair", "is_mid_sentence"]


def _slug(dataset: str) -> str:
    return dataset.lower().replace(" ", "_")


def _read(repository: str, path: str) -> pd.DataFrame:
    rows = pd.read_csv(source_file(repository, path), dtype=str, keep_default_na=False)
    # Sentence pairs have no cut: sentence 2 is what had to be completed.
    pair = {"sentence1": "first_piece", "sentence2": "second_piece"}
    is_pair = "sentence2" in rows
    rows = rows.rename(columns=pair if is_pair else {})
    first = rows["first_piece"]
    is_mid_sentence = [not (is_pair or len(t) in sentence_ends(f"{t} x")) for t in first]
    return rows.assign(index=range(len(rows)), is_pair=is_pair, is_mid_sentence=is_mid_sentence)


def _splits(dataset: str) -> tuple[str, str]:
    return "train", _DCQ_SPLITS[dataset]


def _time_travel(model: str, dataset: str, split: str) -> pd.DataFrame:
    name, part = _slug(dataset), _SPLIT_FILES[split]
    folder = f"results/{_MODEL_FOLDERS[model]}/{name}/{part}"
    return _read(TIME_TRAVEL, f"{folder}/{name}_{part}.csv")


def instruction_prompts(n_rows: int = 0) -> pd.DataFrame:
    """Time Travel's 140 instances under every instruction, for ``completions.with_completions``.

    The placebos name another dataset of the seven, the other split, or another label. The paper
    gave both models the same instances. ``n_rows`` of each of the 14 partitions, 0 for all 10.
    """
    parts = []
    for place, dataset in enumerate(WILD_DATASETS):
        rows = {split: _time_travel("GPT-4", dataset, split) for split in _splits(dataset)}
        labels = pd.concat(rows.values()).get("label", pd.Series(dtype=str)).unique()
        for split, other in (_splits(dataset), _splits(dataset)[::-1]):
            pieces = rows[split].reindex(columns=["index", "label", *_PIECES[:2]], fill_value="")
            names = {"dataset": dataset, "split": split, "other_split": other}
            names["other_dataset"] = WILD_DATASETS[place - 1]
            task = _TASKS.get(dataset, CLASSIFICATION)
            found = prompts_of(pieces.head(n_rows or None), task, labels=labels, **names)
            about = {"benchmark": dataset, "task": task, "dataset": dataset, "split": split}
            parts.append(found.assign(**about, copies=None, group=found["index"]))
    return pd.concat(parts, ignore_index=True)


def time_travel_completions() -> pd.DataFrame:
    """Time Travel's 560 released completions, one row per instruction (guided or general).

    second_piece is the reference; released_rouge and released_bleurt are 0 to 1, two decimals.
    """
    parts = []
    for model, dataset in product(MODELS, WILD_DATASETS):
        for split, kind in product(_splits(dataset), ("guided", "general")):
            rows = _time_travel(model, dataset, split)
            about = {"model": model, "dataset": dataset, "split": split, "instruction": kind}
            about |= {"completion": rows[f"generated_{kind}_completion"]}
            about |= {"released_rouge": rows[f"rouge_score_for_{kind}_completion"]}
            about |= {"released_bleurt": rows[f"bleurt_score_for_{kind}_completion"]}
            parts.append(rows[["index", *_PIECES]].assign(**about))
    scores = ["released_rouge", "released_bleurt"]
    table = pd.concat(parts, ignore_index=True).astype(dict.fromkeys(scores, float))
    return table[[*PARTITION, "index", "instruction", *_PIECES, "completion", *scores]]


def dcq_completions() -> pd.DataFrame:
    """The DCQ repository's 1,706 guided completions with GPT-4's labels (judge)."""
    parts = []
    for model in MODELS:
        for dataset in DCQ_DATASETS if model == "GPT-4" else WILD_DATASETS:
            split, name = _DCQ_SPLITS[dataset], _slug(dataset)
            group = f"wild_evaluation/{_MODEL_FOLDERS[model]}"
            if dataset not in WILD_DATASETS:
                group = "reported_contamination"
            path = f"results/comparative_framework/{group}/{name}/{name}_{_SPLIT_FILES[split]}.csv"
            rows = _read(DCQ, path).rename(columns={"generated_guided_completion": "completion"})
            judge = [parse_label(text)[0] for text in rows["gpt4_icl_evaluation"]]
            about = {"model": model, "dataset": dataset, "split": split, "judge": judge}
            parts.append(rows.assign(**about))
    table = pd.concat(parts, ignore_index=True)
    return table[[*PARTITION, "index", "second_piece", "completion", "judge"]]


def rescored(
    completions: pd.DataFrame, scorer: LanguageModel | None = None, joining: str = JOINED_AS_PAPER
) -> pd.DataFrame:
    """ROUGE-L and BLEURT recomputed from the texts of ``time_travel_completions``.

    The released BLEURT values are BLEURT-20's (section 4; the default of the
    authors' code too), so another checkpoint gives others. differs and bleurt_differs:
    the value does not round to the released two decimals; empty without a scorer.
    """

    def differs(name: str) -> pd.Series:
        return (table[name] - table[f"released_{name}"]).abs() > 0.005 + 1e-9

    pairs = zip(completions["second_piece"], completions["completion"], strict=True)
    table = completions.assign(
        rouge=[rouge_l(*pair) for pair in pairs],
        bleurt=bleurt_scores(completions, scorer, joining),
        bleurt_by="" if scorer is None else scorer.identity["bleurt_by"],
    )
    is_off = None if scorer is None else differs("bleurt")
    return table.assign(differs=differs("rouge"), bleurt_differs=is_off)


PRINTED_ROWS = {"GPT-4 ICL": "GPT-4 Eval.", "annotator 1": "Human Eval."}
RULE_JUDGE = "rule (ROUGE-L)"
USUAL_RULE = "rule (ROUGE-L), usual threshold"
BOTH_MODELS = "both models"
PRINTED_TESTS = ("paired bootstrap", "judge")  # what the paper's rows correspond to
PRINTED_MARKS = "printed marks"  # Did-ChatGPT-Cheat?: its chats are not released
# The rows of GPT-4's partitions that Tables 4 and 5 show, by their texts in the released files.
EXAMPLES = {"IMDB": ("train", 0), "RTE": ("train", 1), "SAMSum": ("test", 5)}


def _printed(table: str) -> pd.DataFrame:
    return printed_cells().query("paper == 'Time Travel' and table == @table")


def replication_published(instances: pd.DataFrame) -> pd.DataFrame:
    """``compare_instructions`` of Table 2's 56 tests, and whether the paper prints an asterisk.

    With ten instances, sign flips, which keep their level, could not confirm an asterisk after
    Holm's correction for all rows, however large the difference, so there is no verdict.
    """
    table = compare_instructions(instances)
    printed = _printed("Table 2").set_index([*PARTITION, "metric", "row"])["value"]
    table["paper_significant"] = [
        printed[*partition, f"{metric} significance", "Guided"] == "*"
        for *partition, metric in table[[*PARTITION, "metric"]].to_numpy()
    ]
    return table


def judged_instances(instances: pd.DataFrame) -> pd.DataFrame:
    """Released instances with the rule judge's labels next to the released labels.

    The rule judge sees ROUGE-L only; its threshold for near-exact matches is
    chosen on all other partitions, or for usual_guided and usual_general the commonest
    of those chosen. The same threshold judges the general completions, which were
    written without dataset and split names.
    """
    partitions = instances["dataset"] + ", " + instances["split"]
    thresholds = leave_one_partition_out(
        instances["rouge_guided"].to_numpy(), instances["annotator1"].tolist(), partitions.tolist()
    )
    usual = pd.Series(thresholds).mode().iloc[0]
    keys = instances[["dataset", "split", "index"]].itertuples(index=False, name=None)
    return instances.assign(
        usual_guided=rule_labels(instances["rouge_guided"], usual),
        usual_general=rule_labels(instances["rouge_general"], usual),
        rule_guided=rule_labels(instances["rouge_guided"], thresholds),
        rule_general=rule_labels(instances["rouge_general"], thresholds),
        in_judge_prompt=[key in PROMPT_EXAMPLES for key in keys],
    )


JUDGE_COLUMNS = {
    ("GPT-4 ICL", "guided"): "judge",
    ("annotator 1", "guided"): "annotator1",
    ("annotator 2", "guided"): "annotator2",
    (RULE_JUDGE, "guided"): "rule_guided",
    (RULE_JUDGE, "general"): "rule_general",
    (USUAL_RULE, "guided"): "usual_guided",
    (USUAL_RULE, "general"): "usual_general",
}


def replication_marks(judged: pd.DataFrame) -> pd.DataFrame:
    """Exact and near-exact matches and Table 2's mark, per partition, judge and instruction.

    paper_mark is "" where the paper has no such judge.
    """
    printed = _printed("Table 2").query("metric == 'mark'")
    printed = printed.set_index([*PARTITION, "row"])["value"].to_dict()
    rows = []
    for partition, group in judged.groupby(PARTITION, sort=False):
        for (judge, instruction), column in JUDGE_COLUMNS.items():
            labels = group[column].tolist()
            paper = printed.get((*partition, PRINTED_ROWS.get(judge)), "")
            rows.append(
                dict(zip(PARTITION, partition, strict=True))
                | {"judge": judge, "instruction": instruction, "n": len(labels)}
                | {"n_exact": labels.count(EXACT), "n_near_exact": labels.count(NEAR_EXACT)}
                | {"mark": partition_mark(labels), "paper_mark": paper}
            )
    return pd.DataFrame(rows)


def replication_success(published: pd.DataFrame, judged: pd.DataFrame) -> pd.DataFrame:
    """Table 1: partitions where an algorithm decides as the human expert does.

    Beside the paper's six rows stand the constant answer "clean" and Did-ChatGPT-Cheat? by
    Table 2's printed marks (section 5): "?" (suspicious) is no decision and so never right.

    Returns:
        n_found (of n_contaminated, by the human label); paper_n_right ("" where the
        paper has no such row), matches (empty there); difference_pct, of partitions decided
        right next to the answer "clean" (points), with its 95 % interval (Newcombe's, of the
        partitions that only the algorithm or only "clean" decides right) and p_value (exact
        two-sided sign test of these). verdict and p_adjusted belong to the paper's three
        algorithms, which are one family for each model (Holm); other rows are blank.
    """
    decisions = judged.groupby(PARTITION, sort=False)[["annotator1", "judge"]].agg(is_contaminated)
    answers = {"Algorithm 2: GPT-4 ICL": ("judge", decisions["judge"])}
    for metric, of_metric in published.set_index(PARTITION).groupby("metric"):
        answers[f"Algorithm 1: {metric}"] = ("paired bootstrap", of_metric["significant"])
    marks = _printed("Table 2").query("row == @DID_CHATGPT_CHEAT").set_index(PARTITION)["value"]
    # A decision as a truth value, "?" as None.
    decided = marks.map({MARK_NONE: False, MARK_EXACT: True, MARK_NEAR_EXACT: True})
    decided = decided.astype(object).where(decided.notna(), None)
    answers[DID_CHATGPT_CHEAT] = PRINTED_MARKS, decided
    answers["always clean"] = ("constant", pd.Series(False, index=decisions.index))
    printed = pd.concat([_printed("Table 1"), _printed("Section 5 text")])
    printed = printed.query("metric == 'success_rate'")
    printed = printed.set_index(["model", "row"])["value"].str.split("/").str[0]
    rows = []
    for model in (*judged["model"].unique(), BOTH_MODELS):
        truth = decisions["annotator1"]
        if model != BOTH_MODELS:
            truth = truth[truth.index.get_level_values("model") == model]
        n, n_contaminated = len(truth), int(truth.sum())
        for algorithm, (test, by_algorithm) in sorted(answers.items()):
            answer = by_algorithm.reindex(truth.index)
            n_right, n_found = int((answer == truth).sum()), int((answer.eq(True) & truth).sum())
            # Partitions that only the algorithm, and that only "clean", decides right.
            only = n_found, n - n_contaminated - (n_right - n_found)
            low, high = share_difference_interval(only[0], n, only[1], n)
            paper = printed.get((model, algorithm), "")
            rows.append(
                {"model": model, "algorithm": algorithm, "test": test}
                | {"n_right": n_right, "n_partitions": n, "n_contaminated": n_contaminated}
                | {"n_found": n_found, "paper_n_right": paper}
                | {"matches": str(n_right) == paper if paper else None}
                | {"difference_pct": 100 * (only[0] - only[1]) / n, "ci_low_pct": 100 * low}
                | {"ci_high_pct": 100 * high, "p_value": mcnemar_p(*only)}
            )
    success = pd.DataFrame(rows)
    claim, is_paper = CLAIMS["replication_success"], success["test"].isin(PRINTED_TESTS)
    of_model = success.loc[is_paper].groupby("model")["p_value"]
    success["p_adjusted"] = of_model.transform(lambda p: holm(p.to_numpy()))
    success["verdict"] = verdict_column(success, claim, "ci_low_pct", "ci_high_pct", where=is_paper)
    return success


def judge_agreement(judged: pd.DataFrame) -> pd.DataFrame:
    """``agreement_row`` of judges and annotators, with and without the judge's prompt examples.

    Added is p_adjusted, Holm's over all rows, and holds is what it leaves.
    """
    subsets = {"all": judged} | dict(list(judged.groupby("model", sort=False)))
    subsets |= {
        f"{name}, without prompt examples": rows[~rows["in_judge_prompt"]]
        for name, rows in subsets.items()
    }
    judges = {"GPT-4 ICL": "judge", RULE_JUDGE: "rule_guided", "annotator 2": "annotator2"}
    table = pd.DataFrame(
        {"judge": judge, "reference": "annotator 1", "subset": subset}
        | agreement_row(rows[column], rows["annotator1"], rows[PARTITION].agg(", ".join, axis=1))
        for judge, column in judges.items()
        for subset, rows in subsets.items()
    )
    return corrected(table)


def recomputed_cells(
    published: pd.DataFrame, marks: pd.DataFrame, success: pd.DataFrame
) -> pd.DataFrame:
    """Cells of these tables and of section 5, keyed by ``compare.CELL_KEYS``, with reasons."""
    rows = []

    def add(
        source: Any, table: str, row: str, metric: str, value: Any, note: str = Reason.NONE
    ) -> None:
        key = {"paper": "Time Travel", "table": table, "model": source.model, "row": row}
        key |= {"dataset": getattr(source, "dataset", "all 14 partitions")}
        key |= {"split": getattr(source, "split", "train+test/validation")}
        rows.append(key | {"metric": metric, "recomputed": value, "note": note})

    for cell in published.itertuples():
        name = cell.metric
        add(cell, "Table 2", "General", f"{name} mean", cell.mean_general)
        add(cell, "Table 2", "Guided", f"{name} mean", cell.mean_guided)
        asterisk = "*" if cell.significant else "none"
        add(cell, "Table 2", "Guided", f"{name} significance", asterisk)
    for cell in marks[marks["judge"].isin(PRINTED_ROWS)].itertuples():
        both = cell.n_exact >= 1 and cell.n_near_exact >= MIN_NEAR_EXACT
        both = both and cell.paper_mark in (MARK_EXACT, MARK_NEAR_EXACT)
        note = Reason.BOTH_MARKS if both else Reason.NONE
        add(cell, "Table 2", PRINTED_ROWS[cell.judge], "mark", cell.mark, note)
    for cell in success[success["model"].ne(BOTH_MODELS)].itertuples():
        right, n = cell.n_right, cell.n_partitions
        if cell.test in PRINTED_TESTS:
            add(cell, "Table 1", cell.algorithm, "success_rate", f"{right}/{n}")
            add(cell, "Table 1", cell.algorithm, "accuracy_pct", 100 * right / n)
        elif cell.test == PRINTED_MARKS:
            if cell.model == "GPT-3.5":  # whose rate the paper counts over the clean ones
                right, n = right - cell.n_found, n - cell.n_contaminated
            add(cell, "Section 5 text", cell.algorithm, "success_rate", f"{right}/{n}")
    cells = pd.concat([pd.DataFrame(rows), _examples()])
    return cells[[*CELL_KEYS, "recomputed", "note"]]


def _examples() -> pd.DataFrame:
    """The scores in Tables 4 (guided) and 5 (general); a pair may be printed exchanged."""
    instances = released_instances("Time Travel").query("model == 'GPT-4'")
    instances = instances.set_index(["dataset", "split", "index"])
    rows = []
    for table, row in (("Table 4", "Guided"), ("Table 5", "General")):
        printed = _printed(table).set_index(["dataset", "metric"])["value"]
        for dataset, place in EXAMPLES.items():
            found = instances.loc[(dataset, *place)]
            scores = {
                "BLEURT": float(found[f"bleurt_{row.lower()}"]),
                "ROUGE-L": float(found[f"rouge_{row.lower()}"]),
            }
            other = dict(zip(scores, reversed(scores.values()), strict=True))
            exchanged = all(
                matches_printed(other[metric], printed[dataset, metric]) for metric in scores
            )
            key = {"paper": "Time Travel", "table": table, "model": "GPT-4", "row": row}
            key |= {"dataset": dataset, "split": place[0]}
            note = {"note": Reason.EXCHANGED if exchanged else Reason.NONE}
            rows += [
                key | {"metric": metric, "recomputed": value} | note
                for metric, value in scores.items()
            ]
    return pd.DataFrame(rows)
