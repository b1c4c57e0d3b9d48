"""Write the README's results, docs/results.md, figures and the numbers of pages: make readme.

Numbers of the papers that come out of package data are read from the demo tables; those that need
the authors' files stand in docs/released_results.csv, which is rewritten when the files are there.
What the detectors see comes from tables of notebook 09b, which are kept in docs/detectors. They
rest on package data, so the README reads the same on every machine. docs/teaching.md alone also
says what models trained here give, with a tolerance; that part is left as it stands while this
machine's tables lie within.
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent))

import conclude
from matplotlib.figure import Figure

from contamination.core import blind_scores, plots, storage
from contamination.core.claims import CLAIMS
from contamination.core.scores import MIN_K
from contamination.core.tables import copies_text
from contamination.data import published, sources
from contamination.dcq import comparison, controls
from contamination.dice import published_tables as dice_tables
from contamination.min_k import wikimia_tables
from contamination.replication import published_tables as replication_tables
from contamination.study import (
    changes_conclusion,
    pretraining_conclusion,
    pretraining_figures,
    pretraining_findings,
    readings,
)

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
IN_FULL = ROOT / "docs/results.md"
RELEASED = ROOT / "docs/released_results.csv"
FIGURE = "docs/figures/dcq_levels.png"
OPENING, RESULTS, DETECTORS = "opening figure", "results", "detectors"
WHICH = "which detector"
DETECTION = "docs/figures/detectors.png"
PAGE = ROOT / "docs/which_detector.md"
STUDY_TABLES = ROOT / "docs/detectors"
OF_STUDY = (
    "detection",
    "controls",
    "reference",
    "indirect",
    "later",
    "larger",
    "larger_tpr",
    "shift",
    "tpr",
)
OF_STUDY = (*(f"pretraining_{name}" for name in OF_STUDY), "dice_forks")
TEACHING = ROOT / "docs/teaching.md"
VERDICTS, CLAIMS_PART = ROOT / "docs/verdicts.md", "claims"
RELEASED_NUMBERS, TRAINED_NUMBERS = "released numbers", "numbers of trained models"
# One instance of twenty in notebook 00; ten times what the AUCs of 04b moved by between two sets
# of processor instructions, rounded up (CHANGELOG, "Threads and instructions").
WITHIN = {"00": 0.05, "04b": 0.01}
CONCLUDE = "so we conclude"
TABLES = "dcq_published dcq_reciprocal dcq_controls dcq_rules dcq_beyond_rules "
TABLES += "replication_published replication_success published_vs_recomputed first_look min_k_auc"

SWAPPED = "scores of the other"
R_SQUARED, R_SQUARED_SWAPPED = "R² of Figure 6(b)", "R² of Figure 6(b), other table's scores"


def released_results() -> pd.DataFrame:
    """Results that need the authors' files and no training, one row each.

    Returns:
        result, item, n, value, ci_low, ci_high, printed (the papers' value as text).
    """
    rows = []
    correlation = dice_tables.released_correlation(dice_tables.released_scores())
    main = dice_tables.SCORE_TABLES[0]
    for source, result in ((main, R_SQUARED), (f"{main}, {SWAPPED}", R_SQUARED_SWAPPED)):
        rows += [
            {"result": result, "item": row.benchmark, "n": row.n_models, "value": row.r_squared}
            | {"printed": row.paper}
            for row in correlation[correlation["source"] == source].itertuples()
        ]
    columns = ["result", "item", "n", "value", "ci_low", "ci_high", "printed"]
    # Twelve decimals: the last bits may depend on the processor.
    return pd.DataFrame(rows, columns=columns).astype({"n": int}).round(12)


def results(
    tables: dict[str, pd.DataFrame], needs_files: pd.DataFrame, in_full: bool = False
) -> str:
    """The results for the README, or ``in_full`` for docs/results.md: a line for each claim.

    Args:
        tables: those of ``TABLES`` by name.
        needs_files: ``released_results``.
    """
    both = {"main": R_SQUARED, "other": R_SQUARED_SWAPPED}
    r_squared = {k: needs_files[needs_files["result"].eq(name)] for k, name in both.items()}
    found = readings.readings(tables, r_squared)
    shown = markdown(found if in_full else found[readings.HEAD])
    return f"{readings.recomputed_in_brief(tables['published_vs_recomputed'])}\n\n{shown}"


def figure_numbers(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The numbers of the figure whose change makes it stale, rounded to what can be seen."""
    levels = tables["dcq_published"][["dataset", "model", "max_pct"]]
    rules = tables["dcq_controls"].drop_duplicates(["dataset", "control"])
    rules = rules[rules["control"].isin(controls.RULES)]
    both = pd.concat([levels, rules[["dataset", "control", "max_pct"]]], ignore_index=True)
    return both.round({"max_pct": 1}).fillna("")


def figure_png(tables: dict[str, pd.DataFrame]) -> bytes:
    """The figure, with the hash of its numbers in the file."""
    numbers = figure_numbers(tables)
    levels = tables["dcq_published"]
    figure = plots.quiz_levels(levels, numbers[numbers["control"] != ""])
    sizes = levels["n"]
    title = "Who finds the original among reworded copies? "
    title += f"({sizes.min()} to {sizes.max()} rows a dataset)"
    figure.axes[0].set_title(title, loc="left")
    return png(figure, numbers)


def opening(tables: dict[str, pd.DataFrame]) -> str:
    """The README's first figure, and what to see in it."""
    alt = (
        "How often GPT-4 and GPT-3.5 pick the original in quizzes on ten datasets, next to "
        "rules that take the same quizzes without any model"
    )
    return f"![{alt}]({FIGURE})\n\n*{readings.quiz_in_brief(tables)}*"


def png(figure: Figure, numbers: pd.DataFrame) -> bytes:
    """The figure's file, which holds the hash of the numbers that it shows."""
    buffer = io.BytesIO()
    metadata = {"Software": None, "Description": numbers_hash(numbers)}
    figure.savefig(buffer, format="png", dpi=100, bbox_inches="tight", metadata=metadata)
    return buffer.getvalue()


def numbers_hash(numbers: pd.DataFrame) -> str:
    return storage.hash_of(numbers.to_dict("records"))


def study_tables(folder: Path = STUDY_TABLES) -> dict[str, pd.DataFrame]:
    """Tables ``OF_STUDY`` of notebook 09b by name; those of docs unless another folder is named."""
    empty = {"verdict": "", "holds": ""}
    return {name: storage.read_csv(folder / f"{name}.csv").fillna(empty) for name in OF_STUDY}


def kept(table: pd.DataFrame) -> pd.DataFrame:
    """A table for docs: ten decimals, since the last bits may depend on the processor."""
    return table.round(dict.fromkeys(table.select_dtypes(float), 10))


def detectors(tables: dict[str, pd.DataFrame]) -> str:
    """Which detector notices what, in brief and as a figure: the README's part."""
    detection, reference, shift = (
        tables[f"pretraining_{name}"] for name in ("detection", "reference", "shift")
    )
    said = pretraining_conclusion.in_brief(detection, shift)
    said += " " + changes_conclusion.larger_in_brief(tables["pretraining_larger"], MIN_K)
    alt = pretraining_figures.detection_alt(detection, reference, shift)
    return f"{said}\n\n![{alt}]({DETECTION})"


def detection_png(tables: dict[str, pd.DataFrame]) -> bytes:
    """The figure of the study, with the hash of its tables in the file."""
    detection, reference, shift = drawn_of_study(tables)
    figure = pretraining_figures.detection_figure(detection, reference, shift)
    return png(figure, pd.concat([detection, reference, shift]).astype(object).fillna(""))


def drawn_of_study(tables: dict[str, pd.DataFrame]) -> list[pd.DataFrame]:
    """What the figure shows, rounded to what can be seen."""
    names = ("detection", "reference", "shift")
    found = [tables[f"pretraining_{name}"] for name in names]
    return [one.round(dict.fromkeys(one.select_dtypes(float), 5)) for one in found]


def detector_page(tables: dict[str, pd.DataFrame]) -> str:
    """The tables of docs/which_detector.md, of ``study_tables``."""
    detection, reference, indirect, later, shift = (
        tables[f"pretraining_{name}"]
        for name in ("detection", "reference", "indirect", "later", "shift")
    )
    attack = reference[~reference["is_exploratory"]]
    attack = attack.assign(detector="reference attack (LiRA)", verdict="")
    rates, forks = tables["pretraining_tpr"], tables["dice_forks"]
    said = pretraining_conclusion.conclusion(detection, reference, indirect, rates, shift, forks)
    parts = [
        said,
        "### Verbatim rows",
        pretraining_findings.summarize_detection(
            detection, reference, tables["pretraining_controls"]
        ),
        _crossed(pd.concat([detection, attack]), "copies"),
        "### Single tests",
        _flags(detection),
        "### Rows in another form",
        pretraining_findings.summarize_indirect_exposure(indirect),
        _crossed(indirect.assign(form=indirect["exposure"] + ", " + _copies(indirect)), "form"),
        "### After clean training",
        pretraining_findings.summarize_later_training(later),
        "### In larger models",
        changes_conclusion.larger_models(tables["pretraining_larger"], MIN_K),
        _of_larger(tables["pretraining_larger"]),
        changes_conclusion.larger_rates(tables["pretraining_larger_tpr"], MIN_K),
        "### Two sets that no model saw",
        _shift_table(shift),
        "### DICE within one base model",
        markdown(_of_forks(forks)),
    ]
    return "\n\n".join(parts)


def _flags(detection: pd.DataFrame) -> str:
    """In how many single tests, one for each model and benchmark, p is at most 5 %."""
    cells = [pretraining_findings.flags_text(row) for _, row in detection.iterrows()]
    cells = detection.assign(cell=cells, copies=_copies(detection))
    wide = cells.pivot_table("cell", "detector", "copies", aggfunc="first", sort=False)
    return markdown(wide.reset_index())


def _copies(table: pd.DataFrame) -> pd.Series:
    return table["copies"].map(copies_text)


def _crossed(table: pd.DataFrame, columns: str) -> str:
    """Detectors in rows, exposures in columns: AUC, interval, verdict."""
    cells = table.assign(cell=pretraining_findings.cell_texts(table))
    if columns == "copies":
        cells["copies"] = _copies(cells)
    wide = cells.pivot_table("cell", "detector", columns, aggfunc="first", sort=False)
    return markdown(wide.fillna("untested").reset_index())


def _of_larger(larger: pd.DataFrame) -> str:
    """AUC in small and in larger models, and the verdict, by detector and number of copies."""
    cells = [f"{row.auc:.2f} to {row.auc_larger:.2f}: {row.verdict}" for row in larger.itertuples()]
    shown = larger.assign(cell=cells, copies=_copies(larger))
    wide = shown.pivot_table("cell", "detector", "copies", aggfunc="first", sort=False)
    return markdown(wide.reset_index())


def _shift_table(shift: pd.DataFrame) -> str:
    """How often each detector calls one of two unseen sets seen: rate and verdict by shift."""
    asked = shift[shift["verdict"].ne("")]
    cell = [f"{100 * row.rate:.0f} %: {row.verdict}" for row in asked.itertuples()]
    column = asked["shift"] + " (" + asked["benchmark"] + ")"
    asked = asked.assign(cell=cell, column=column)
    wide = asked.pivot_table("cell", "detector", "column", aggfunc="first", sort=False)
    return markdown(wide.fillna("untested").reset_index())


def _of_forks(forks: pd.DataFrame) -> pd.DataFrame:
    shown = forks[["claim"]].assign(
        AUROC=[pretraining_findings.of_auc(r) for _, r in forks.iterrows()]
    )
    return shown.assign(verdict=forks["verdict"])


def released_numbers(tables: dict[str, pd.DataFrame]) -> str:
    """What the lessons' tables of released data show, and what to conclude from each number.

    Args:
        tables: of ``TABLES`` those of notebooks 02 and 03, by name.
    """
    levels, tests = tables["dcq_published"], tables["replication_published"]
    gpt4 = levels.loc[levels["model"].eq("GPT-4"), "max_pct"]
    rules = tables["dcq_rules"].drop_duplicates(["model", "dataset", "control"])
    rules = rules[rules["model"].eq("GPT-4")].groupby("control", sort=False)
    success = tables["replication_success"].set_index(["algorithm", "model"])
    decisions = []
    for model in published.MODELS:
        by_judge, by_clean = (
            success.loc[n, model] for n in ("Algorithm 2: GPT-4 ICL", "always clean")
        )
        judge, clean = (int(one["n_right"]) for one in (by_judge, by_clean))
        about = f"decisions that agree with a person's, {model}, of 14"
        said = conclude.on_judge(by_judge["verdict"], judge, clean)
        decisions.append(("03", about, f"judge {judge}, always “clean” {clean}", said))
    words = wikimia_tables.wikimia_blind_table()
    words = words.loc[words["baseline"].eq(blind_scores.BAG_OF_WORDS), "auc"]
    ends = f"{words.min():.3f} to {words.max():.3f}"
    printed = wikimia_tables.printed_average().loc[MIN_K, "paper_auc"]
    marked = {
        "paired bootstrap": "significant",
        "unpaired": "significant_unpaired",
        "sign flips": "significant_sign_flip",
        "bootstrap with Holm": "significant_holm",
        "sign flips with Holm": "significant_sign_flip_holm",  # the last
    }
    counts = [int(tests[column].sum()) for column in marked.values()]
    marks = [f"{name} {n}" for name, n in zip(marked, counts, strict=True)]
    if replication_tables.no_sign_flip_can_reject(tests):
        marks[-1] = "sign flips with Holm cannot mark any"
    n_same, n = int(levels["matches"].sum()), len(levels)
    maxima = f"{gpt4.min():.0f} to {gpt4.max():.0f} %"
    of_words = f"{ends}; printed for {MIN_K}: {printed}"
    rows = [
        (
            "02",
            "pairs of a model and a dataset whose level is as printed",
            f"{n_same} of {n}",
            conclude.on_printed_levels(n_same, n),
        ),
        ("02", "GPT-4's maximum, ten datasets", maxima, conclude.on_levels(gpt4.min())),
        *(
            (
                "02",
                f"the claim that {name} does as well as GPT-4",
                comparison.verdict_counts(of),
                conclude.on_rule(of["verdict"]),
            )
            for name, of in rules
        ),
        (
            "03",
            f"significant results, of {len(tests)} tests",
            ", ".join(marks),
            conclude.on_number_of_findings(counts),
        ),
        *decisions,
        (
            "04",
            "AUC of the words alone on WikiMIA",
            of_words,
            conclude.on_words_alone(words.min(), float(printed)),
        ),
    ]
    return markdown(pd.DataFrame(rows, columns=["notebook", "number", "expect", CONCLUDE]))


def trained_numbers(tables: dict[str, pd.DataFrame]) -> str:
    """What the models that are trained here show, rounded, with tolerance and conclusion.

    Args:
        tables: ``first_look`` of notebook 00 and ``min_k_auc`` of 04b.
    """
    rows = []
    for method, of_method in tables["first_look"].groupby("method", sort=False):
        name = f"{method}, {of_method['statistic'].iloc[0]}"
        of_finding, of_control = conclude.FIRST_LOOK[of_method["verdict"].iloc[0]]
        control = of_method["value"].iloc[1:].max()
        rows.append(("00", f"{name}: finding", of_method["value"].iloc[0], of_finding))
        rows.append(("00", f"{name}: highest control", control, of_control))
    aucs = tables["min_k_auc"]
    is_mean = aucs["setting"].eq("random") & aucs["method"].eq(MIN_K) & aucs["seed"].isna()
    for row in aucs[is_mean].itertuples():
        said = conclude.on_copies(row.copies, row.ci_low)
        rows.append(("04b", f"{MIN_K}, AUC, copies: {row.copies:.0f}", row.auc, said))
    lines = [
        (where, what, f"{value:.2f}", f"± {WITHIN[where]}", said)
        for where, what, value, said in rows
    ]
    columns = ["notebook", "number", "expect", "within", CONCLUDE]
    return markdown(pd.DataFrame(lines, columns=columns))


def lie_within(page: str, part: str) -> bool:
    """Whether a page has all numbers of a part of ``trained_numbers``, within its tolerances.

    The conclusions must be the same.
    """
    row = r"^\| (0\d\w?) \| (.+) \| (-?\d\.\d+) \| ± (\d\.\d+) \| (.+) \|$"
    stated = {line[:2]: list(line[2:]) for line in re.findall(row, page, re.M)}
    found = {line[:2]: list(line[2:]) for line in re.findall(row, part, re.M)}
    return stated.keys() == found.keys() and all(
        rest == found[name][1:]
        and abs(float(value) - float(found[name][0])) <= float(rest[0]) + 1e-9
        for name, (value, *rest) in stated.items()
    )


def markdown(table: pd.DataFrame) -> str:
    """A table of words."""
    lines = [list(table), ["---"] * table.shape[1], *table.fillna("").to_numpy().tolist()]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def claims() -> str:
    """A row for each verdict column: its table, its claim, the smallest effect that matters."""
    rows = [
        {
            "Table": f"`{table}`",
            "Claim": claim.text,
            "No effect": f"{claim.null:g}",
            "Smallest effect that matters": f"{claim.smallest_effect:g} ({claim.unit})",
        }
        for table, claim in CLAIMS.items()
    ]
    return markdown(pd.DataFrame(rows))


def renewed(page: str, name: str, part: str, by: str = "make readme") -> str:
    """The page with another part between the marks of that name; ``by`` is what writes it.

    Raises:
        ValueError: if the marks are not there, once each.
    """
    start, end = f"<!-- {name}: written by {by} -->", f"<!-- end of {name} -->"
    if page.count(start) != 1 or page.count(end) != 1:
        raise ValueError(f"a page needs the lines {start} and {end}, once each")
    between = f"{re.escape(start)}.*{re.escape(end)}"
    return re.sub(between, lambda _: f"{start}\n{part}\n{end}", page, flags=re.S)


def main(folder: Path) -> None:
    tables = {name: storage.read_csv(folder / f"{name}.csv") for name in TABLES.split()}
    if sources.available():
        storage.write_csv(RELEASED, released_results())
    needs_files = storage.read_csv(RELEASED)
    storage.write_bytes(ROOT / FIGURE, figure_png(tables))
    for name in OF_STUDY:
        storage.write_csv(
            STUDY_TABLES / f"{name}.csv", kept(storage.read_csv(folder / f"{name}.csv"))
        )
    study = study_tables()
    storage.write_bytes(ROOT / DETECTION, detection_png(study))
    storage.write_text(PAGE, renewed(PAGE.read_text(), WHICH, detector_page(study)))
    full = renewed(IN_FULL.read_text(), RESULTS, results(tables, needs_files, in_full=True))
    storage.write_text(IN_FULL, full)
    readme = renewed(README.read_text(), OPENING, opening(tables))
    readme = renewed(readme, RESULTS, results(tables, needs_files))
    storage.write_text(README, renewed(readme, DETECTORS, detectors(study)))
    page = renewed(TEACHING.read_text(), RELEASED_NUMBERS, released_numbers(tables))
    trained = trained_numbers(tables)
    page = page if lie_within(page, trained) else renewed(page, TRAINED_NUMBERS, trained)
    storage.write_text(TEACHING, page)
    storage.write_text(VERDICTS, renewed(VERDICTS.read_text(), CLAIMS_PART, claims()))
    figures_written = [ROOT / name for name in (FIGURE, DETECTION)]
    paths = [README, IN_FULL, PAGE, TEACHING, VERDICTS, RELEASED, *figures_written]
    print("written:", *(path.relative_to(ROOT) for path in paths))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
