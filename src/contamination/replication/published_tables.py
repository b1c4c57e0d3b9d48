"""Time Travel's Tables 1 and 2 beside what the released scores and labels give."""

from __future__ import annotations

import pandas as pd

from contamination.judging import EXACT, NEAR_EXACT, rule_verdicts
from contamination.published import printed_cells
from contamination.published.compare import CELL_KEYS, Reason, matches_printed
from contamination.replication.agreement import (
    agreement_row,
    in_judge_prompt,
    leave_one_partition_out,
)
from contamination.replication.algorithm1 import PARTITION, compare_instructions
from contamination.replication.algorithm2 import (
    MARK_EXACT,
    MARK_NEAR_EXACT,
    MARK_NONE,
    MIN_NEAR_EXACT,
    is_contaminated,
    partition_mark,
)
from contamination.replication.study import DID_CHATGPT_CHEAT

PRINTED_ROWS = {"GPT-4 ICL": "GPT-4 Eval.", "annotator 1": "Human Eval."}
RULE_JUDGE = "rule (ROUGE-L)"
USUAL_RULE = "rule (ROUGE-L), usual threshold"
BOTH_MODELS = "both models"
HUMAN = "annotator 1"
PRINTED_TESTS = ("paired bootstrap", "judge")  # what the paper's rows correspond to
PRINTED_MARKS = "printed marks"  # Did-ChatGPT-Cheat?: its chats are not released
ALPHA_TESTS = {
    "paired bootstrap": "significant",
    "unpaired bootstrap": "significant_unpaired",
    "sign flips": "significant_sign_flip",
    "paired bootstrap, Holm": "significant_holm",
}


def _printed(table: str) -> pd.DataFrame:
    return printed_cells().query("paper == 'Time Travel' and table == @table")


def replication_published(
    instances: pd.DataFrame, n_resamples: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """Table 2's 112 means and 56 asterisks, one row per model, partition and metric.

    Args:
        instances: ``published.released_instances("Time Travel")``.
        n_resamples, seed: of the sampled test.

    Returns:
        Columns of ``compare_instructions``, the printed means and asterisk,
        and ``matches``: both means and the asterisk equal the printed ones.
    """
    table = compare_instructions(instances, n_resamples, seed)
    printed = _printed("Table 2").set_index([*PARTITION, "metric", "row"])["value"]
    for row, column in {"General": "general", "Guided": "guided"}.items():
        table[f"paper_{column}"] = [
            printed[cell.model, cell.dataset, cell.split, f"{cell.metric} mean", row]
            for cell in table.itertuples()
        ]
    table["paper_significant"] = [
        printed[cell.model, cell.dataset, cell.split, f"{cell.metric} significance", "Guided"]
        == "*"
        for cell in table.itertuples()
    ]
    table["matches"] = [
        matches_printed(cell.mean_general, cell.paper_general)
        and matches_printed(cell.mean_guided, cell.paper_guided)
        and cell.significant == cell.paper_significant
        for cell in table.itertuples()
    ]
    return table


def judged_instances(instances: pd.DataFrame) -> pd.DataFrame:
    """Released instances with the rule judge's verdicts beside the released labels.

    The rule judge sees ROUGE-L only; its threshold for near-exact matches is
    chosen on all other partitions. The same threshold judges the general
    completions, which were written without dataset and split names.

    Returns:
        The instances with columns rule_threshold, rule_guided, rule_general,
        usual_guided, usual_general (one threshold for all, the commonest of
        those chosen) and in_judge_prompt.
    """
    partitions = instances["dataset"] + ", " + instances["split"]
    thresholds = leave_one_partition_out(
        instances["rouge_guided"].to_numpy(), instances["annotator1"].tolist(), partitions.tolist()
    )
    # Beside it the threshold that most partitions get, the same for all.
    usual = pd.Series(thresholds).mode().iloc[0]
    return instances.assign(
        usual_guided=rule_verdicts(instances["rouge_guided"], usual),
        usual_general=rule_verdicts(instances["rouge_general"], usual),
        rule_threshold=thresholds,
        rule_guided=rule_verdicts(instances["rouge_guided"], thresholds),
        rule_general=rule_verdicts(instances["rouge_general"], thresholds),
        in_judge_prompt=in_judge_prompt(instances),
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

    Args:
        judged: ``judged_instances``.

    Returns:
        model, dataset, split, judge, instruction, n, n_exact, n_near_exact,
        mark, paper_mark ("" where the paper has no such judge), matches (empty
        there).
    """
    printed = _printed("Table 2").query("metric == 'mark'")
    printed = printed.set_index([*PARTITION, "row"])["value"].to_dict()
    rows = []
    for partition, group in judged.groupby(PARTITION, sort=False):
        for (judge, instruction), column in JUDGE_COLUMNS.items():
            verdicts = group[column].tolist()
            mark = partition_mark(verdicts)
            paper = printed.get((*partition, PRINTED_ROWS.get(judge)), "")
            rows.append(
                dict(zip(PARTITION, partition, strict=True))
                | {"judge": judge, "instruction": instruction, "n": len(verdicts)}
                | {"n_exact": verdicts.count(EXACT), "n_near_exact": verdicts.count(NEAR_EXACT)}
                | {"mark": mark, "paper_mark": paper, "matches": mark == paper if paper else None}
                | {"near_exact_threshold": _threshold_of(judge, group)}
            )
    return pd.DataFrame(rows)


def _threshold_of(judge: str, group: pd.DataFrame) -> float | None:
    return float(group["rule_threshold"].iloc[0]) if judge == RULE_JUDGE else None


def replication_success(published: pd.DataFrame, judged: pd.DataFrame) -> pd.DataFrame:
    """Table 1: partitions where an algorithm decides as the human expert does.

    Beside the paper's six rows stand the same algorithm under the unpaired
    test and under Holm's correction, the two constant answers, and
    Did-ChatGPT-Cheat? by Table 2's printed marks (section 5): "?" (suspicious)
    is no decision and so never right.

    Returns:
        model (also "both models"), algorithm, test, n_right, n_partitions,
        n_contaminated (by the human label), n_found (of these), n_flagged;
        paper_n_right ("" where the paper has no such row), matches (empty there).
    """
    decisions = judged.groupby(PARTITION, sort=False)[["annotator1", "judge"]].agg(is_contaminated)
    answers = {("Algorithm 2: GPT-4 ICL", "judge"): decisions["judge"]}
    for metric in ("BLEURT", "ROUGE-L"):
        of_metric = published[published["metric"] == metric].set_index(PARTITION)
        for test, column in ALPHA_TESTS.items():
            answers[f"Algorithm 1: {metric}", test] = of_metric[column]
    marks = _printed("Table 2").query("row == @DID_CHATGPT_CHEAT").set_index(PARTITION)["value"]
    # A decision as a truth value, "?" as None.
    decided = marks.map({MARK_NONE: False, MARK_EXACT: True, MARK_NEAR_EXACT: True})
    answers[DID_CHATGPT_CHEAT, PRINTED_MARKS] = decided.astype(object).where(decided.notna(), None)
    for name, answer in {"always clean": False, "always contaminated": True}.items():
        answers[name, "constant"] = pd.Series(answer, index=decisions.index)
    models = judged["model"].unique()
    rows = []
    for model in (*models, BOTH_MODELS):
        of_model = decisions.index.get_level_values("model").isin(
            models if model == BOTH_MODELS else [model]
        )
        truth = decisions.loc[of_model, "annotator1"]
        for (algorithm, test), answer in sorted(answers.items(), key=_row_order):
            decided = answer.reindex(truth.index)
            flagged = decided.eq(True)
            rows.append(
                {"model": model, "algorithm": algorithm, "test": test}
                | {"n_right": int((decided == truth).sum()), "n_partitions": len(truth)}
                | {"n_contaminated": int(truth.sum()), "n_found": int((flagged & truth).sum())}
                | {"n_flagged": int(flagged.sum())}
            )
    table = pd.DataFrame(rows)
    printed = pd.concat([_printed("Table 1"), _printed("Section 5 text")])
    printed = printed.query("metric == 'success_rate'")
    printed = printed.set_index(["model", "row"])["value"].str.split("/").str[0]
    is_paper = table["test"].isin([*PRINTED_TESTS, PRINTED_MARKS]) & table["model"].ne(BOTH_MODELS)
    table["paper_n_right"] = [
        printed[row.model, row.algorithm] if paper else ""
        for row, paper in zip(table.itertuples(), is_paper, strict=True)
    ]
    table["matches"] = [
        str(row.n_right) == row.paper_n_right if row.paper_n_right else None
        for row in table.itertuples()
    ]
    return table


def _row_order(entry: tuple[tuple[str, str], object]) -> tuple[str, int]:
    (algorithm, test), _ = entry
    return algorithm, [*ALPHA_TESTS, "judge", PRINTED_MARKS, "constant"].index(test)


def judge_agreement(judged: pd.DataFrame) -> pd.DataFrame:
    """Judges against the annotators, with and without the judge's own prompt examples.

    Returns:
        judge, reference, subset ("all", "GPT-4" or "GPT-3.5", each also
        "without prompt examples"), then the columns of ``agreement_row``.
    """
    pairs = [
        ("GPT-4 ICL", "judge", "annotator 1", "annotator1"),
        (RULE_JUDGE, "rule_guided", "annotator 1", "annotator1"),
        ("annotator 2", "annotator2", "annotator 1", "annotator1"),
    ]
    subsets = {"all": judged}
    subsets |= {model: judged[judged["model"] == model] for model in judged["model"].unique()}
    subsets |= {
        f"{name}, without prompt examples": rows[~rows["in_judge_prompt"]]
        for name, rows in subsets.items()
    }
    found = []
    for judge, column, reference, reference_column in pairs:
        for subset, rows in subsets.items():
            partitions = rows[PARTITION].agg(", ".join, axis=1).tolist()
            row = agreement_row(rows[column].tolist(), rows[reference_column].tolist(), partitions)
            found.append({"judge": judge, "reference": reference, "subset": subset} | row)
    return pd.DataFrame(found)


def recomputed_cells(
    published: pd.DataFrame, marks: pd.DataFrame, success: pd.DataFrame
) -> pd.DataFrame:
    """Cells of Tables 1 and 2 and of section 5 keyed as the paper prints them.

    Returns:
        Columns of ``compare.CELL_KEYS``, recomputed, note.
    """
    rows = []

    def add(source, table: str, split: str, row: str, metric: str, value, note=Reason.NONE) -> None:
        key = {"paper": "Time Travel", "table": table, "model": source.model, "split": split}
        key |= {"row": row, "metric": metric, "recomputed": value, "note": note}
        rows.append(key | {"dataset": getattr(source, "dataset", "all 14 partitions")})

    for cell in published.itertuples():
        name = cell.metric
        add(cell, "Table 2", cell.split, "General", f"{name} mean", cell.mean_general)
        add(cell, "Table 2", cell.split, "Guided", f"{name} mean", cell.mean_guided)
        asterisk = "*" if cell.significant else "none"
        add(cell, "Table 2", cell.split, "Guided", f"{name} significance", asterisk)
    for cell in marks[marks["judge"].isin(PRINTED_ROWS)].itertuples():
        both = cell.n_exact >= 1 and cell.n_near_exact >= MIN_NEAR_EXACT
        both = both and cell.paper_mark in (MARK_EXACT, MARK_NEAR_EXACT)
        note = Reason.BOTH_MARKS if both else Reason.NONE
        add(cell, "Table 2", cell.split, PRINTED_ROWS[cell.judge], "mark", cell.mark, note)
    paper_rows = success["test"].isin(PRINTED_TESTS) & success["model"].ne(BOTH_MODELS)
    for cell in success[paper_rows].itertuples():
        rate = f"{cell.n_right}/{cell.n_partitions}"
        split = "train+test/validation"
        add(cell, "Table 1", split, cell.algorithm, "success_rate", rate)
        accuracy = 100 * cell.n_right / cell.n_partitions
        add(cell, "Table 1", split, cell.algorithm, "accuracy_pct", accuracy)
    for cell in success[success["test"].eq(PRINTED_MARKS)].itertuples():
        # The paper counts GPT-4 over all partitions and GPT-3.5 over the clean ones.
        rates = {
            "GPT-4": f"{cell.n_right}/{cell.n_partitions}",
            "GPT-3.5": f"{cell.n_right - cell.n_found}/{cell.n_partitions - cell.n_contaminated}",
        }
        if cell.model in rates:
            split = "train+test/validation"
            rate = rates[cell.model]
            add(cell, "Section 5 text", split, cell.algorithm, "success_rate", rate)
    return pd.DataFrame(rows)[[*CELL_KEYS, "recomputed", "note"]]
