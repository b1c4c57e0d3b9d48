"""The README's numbers are those of the tables, and its links lead somewhere."""

import functools
import json
import re
import shlex

import numpy as np
import pandas as pd
import pytest
from made_pretraining import made_shares
from notebook_files import NOTEBOOKS, ROOT, script
from PIL import Image
from released_tables import dcq_levels, recomputed_cells, time_travel

from contamination.core.verdicts import (
    CONTROL_FAILS,
    NOT_RUN,
    NOT_SUPPORTED,
    SUPPORTED,
    VERDICTS,
)
from contamination.data import published
from contamination.data.published import compare
from contamination.dcq import comparison, controls
from contamination.dcq import published_tables as dcq_tables
from contamination.study import (
    dice_forks,
    pretraining,
    pretraining_results,
    pretraining_scores,
    shift,
)

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
README = (ROOT / "README.md").read_text()


@pytest.fixture(scope="module", name="script")
def readme_script():
    """The script behind make readme."""
    module = script("readme")
    tables = module.wikimia_tables
    with pytest.MonkeyPatch.context() as patch:  # alike in every call, and slow
        once = functools.cache(tables.wikimia_blind_table)
        patch.setattr(tables, "wikimia_blind_table", once)
        yield module


@pytest.fixture(scope="module")
def tables():
    """What notebooks 02 and 03 write, recomputed with fewer resamples."""
    choices, answers = published.rule_choices(), published.released_instances("DCQ")
    levels = dcq_levels()
    return {
        "dcq_published": levels,
        "dcq_reciprocal": dcq_tables.dcq_reciprocal(),
        "dcq_controls": controls.control_table(choices, levels),
        "dcq_rules": comparison.compare_rules(choices, answers),
        "dcq_beyond_rules": comparison.beyond_rules(choices, answers),
        "replication_published": time_travel().tests,
        "replication_success": time_travel().success,
        "published_vs_recomputed": compare.published_vs_recomputed(recomputed_cells()),
    }


@pytest.fixture(scope="module")
def needs_files(script):
    return pd.read_csv(script.RELEASED)


def test_readme_is_not_stale(script, tables, needs_files):
    part = script.results(tables, needs_files)
    assert script.renewed(README, script.RESULTS, part) == README, (
        'the results in README.md are stale: run "make readme"'
    )
    assert script.renewed(README, script.OPENING, script.opening(tables)) == README
    page, part = script.IN_FULL.read_text(), script.results(tables, needs_files, in_full=True)
    assert script.renewed(page, script.RESULTS, part) == page, 'run "make readme"'


def test_the_caption_of_the_opening_figure_follows_the_verdicts(script, tables):
    rules = tables["dcq_rules"]
    found = script.opening(tables)
    assert "looks like memory. But a rule that looks only at word frequency succeeds as often" in (
        found
    )
    assert "as well on 1 of the 10 and worse on 2. The other 7 leave the" in found
    behind = rules.assign(rule_pct=rules["model_pct"] - 1)
    assert "on average" not in script.opening(tables | {"dcq_rules": behind})
    beaten = script.opening(tables | {"dcq_rules": rules.assign(verdict=NOT_SUPPORTED)})
    assert "looks like memory" not in beaten and "on 10 of 10 datasets" in beaten


def readings(script, tables, needs_files):
    """Our reading of each claim, by the claim."""
    page = script.results(tables, needs_files)
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| [")]
    return {row[1]: row[-1] for row in rows}


def test_our_readings_are_those_of_the_tables(script, tables, needs_files):
    """Rendered from the tables and from tables that say the opposite."""
    found = readings(script, tables, needs_files)
    rules, replicas = tables["dcq_rules"], tables["dcq_reciprocal"]
    tests, success = tables["replication_published"], tables["replication_success"]
    other = readings(
        script,
        {
            **tables,
            "dcq_rules": rules.assign(verdict=NOT_SUPPORTED),
            "dcq_reciprocal": replicas.assign(n_right_best_quiz=replicas["n_replicas"]),
            "replication_published": tests.assign(significant_holm=tests["significant"]),
            "replication_success": success.assign(verdict=NOT_SUPPORTED),
        },
        needs_files.assign(value=0.7),
    )
    said = [
        ("a high share alone is no evidence of memory", "does better than the rule explains"),
        ("it spots such rows no more often than other rows", "the claim is reproduced"),
        ("of the 24 findings do not survive", "all findings survive the correction"),
        (
            "the constant answer for GPT-4; for GPT-3.5, the two tie",
            "we cannot show that the judge beats the constant answer",
        ),
        ("the wording alone could explain this AUC", ""),
        ("depends on which released scores", "reproduced"),
    ]
    for (confirmed, refuted), ours, theirs in zip(
        said, found.values(), other.values(), strict=True
    ):
        assert confirmed in ours
        assert not refuted or (refuted in theirs and confirmed not in theirs)


def test_the_reading_of_wikimia_follows_the_words_alone(script, tables, needs_files):
    words = script.wikimia_tables.wikimia_blind_table()
    with pytest.MonkeyPatch.context() as patch:
        blind = words.assign(auc=0.55)
        patch.setattr(script.wikimia_tables, "wikimia_blind_table", lambda: blind)
        found = readings(script, tables, needs_files)
    assert "the words alone do not explain this AUC" in found.values()


@pytest.fixture(scope="module")
def study(script):
    """The tables of notebook 09b that docs keeps."""
    return script.study_tables()


def test_what_detectors_see_is_not_stale(script, study):
    part, page = script.detectors(study), script.detector_page(study)
    assert script.renewed(README, script.DETECTORS, part) == README, 'run "make readme"'
    text = script.PAGE.read_text()
    assert script.renewed(text, script.WHICH, page) == text, 'run "make readme"'
    drawn = script.numbers_hash(pd.concat(script.drawn_of_study(study)).astype(object).fillna(""))
    with Image.open(ROOT / script.DETECTION) as image:
        assert image.text["Description"] == drawn, 'run "make readme"'


def test_the_kept_tables_are_those_of_the_ledger(study):
    """Recomputed from the stored scores, but for the shares, which need the lab's texts."""
    shares = made_shares()
    scores = pretraining_scores.arrange_scores(pretraining.read_parts()[0])
    again = {
        "pretraining_detection": pretraining_results.detection(scores, shares),
        "pretraining_indirect": pretraining_results.indirect(scores, shares),
        "pretraining_shift": shift.false_verdicts(shift.read_parts()[0]),
        "dice_forks": dice_forks.verdicts(dice_forks.read_parts()[0]),
    }
    for name, table in again.items():
        kept, keys = study[name], table.select_dtypes(object).columns.difference(["holds"])
        assert kept[list(keys)].astype(str).equals(table[list(keys)].astype(str)), name
        numbers = table.select_dtypes(float).columns.difference(["row_share_pct"])
        assert np.allclose(kept[numbers], table[numbers], atol=1e-9, equal_nan=True), name


def test_a_study_that_finds_nothing_says_so(script, study):
    nothing = {
        name: table.assign(verdict=NOT_SUPPORTED) if "verdict" in table else table
        for name, table in study.items()
    }
    nothing["pretraining_reference"] = study["pretraining_reference"]
    part, page = script.detectors(nothing), script.detector_page(nothing)
    assert part.count("no detector is shown to be above chance") == 2
    assert "no detector is shown to be above chance on average" in page
    for text in (part, page):
        assert "no detector is shown to take that for contamination" in text
        assert "are shown to be above chance" not in text
    assert "no detector notices" in page and "is not shown to tell" in page
    assert "2 of 15 detectors are shown to be above chance" in script.detectors(study)
    assert ": supported" not in page
    assert ": supported" in script.detector_page(study)


def test_the_page_on_verdicts_lists_every_claim(script):
    page = script.VERDICTS.read_text()
    assert script.renewed(page, script.CLAIMS_PART, script.claims()) == page
    for word in VERDICTS:
        assert f"| **{word}** |" in page


def test_released_numbers_to_expect_are_not_stale(script, tables):
    part, page = script.released_numbers(tables), script.TEACHING.read_text()
    assert script.renewed(page, script.RELEASED_NUMBERS, part) == page, 'run "make readme"'
    levels = tables["dcq_published"].assign(matches=False, max_pct=12.0)
    part = script.released_numbers(tables | {"dcq_published": levels})
    assert "| 0 of 17 | Most printed levels do not follow" in part
    assert "| 12 to 12 % | Not every level is above guessing" in part


def test_a_number_that_says_the_opposite_has_another_conclusion(script, tables):
    found = script.released_numbers(tables)
    assert (
        "is right for most pairs, so the question" in found
        and "Every level is above guessing" in found
    )
    assert "beat this rule on 4 of 10 datasets" in found and "on every dataset" in found
    assert "The test decides how many" in found and "is shown to do better" in found
    other = {
        "dcq_rules": tables["dcq_rules"].assign(verdict=SUPPORTED),
        "replication_success": tables["replication_success"].assign(verdict=NOT_SUPPORTED),
        "replication_published": tables["replication_published"].assign(
            significant_unpaired=True,
            significant=True,
            significant_sign_flip=True,
            significant_holm=True,
            significant_sign_flip_holm=True,
        ),
    }
    refuted = script.released_numbers(tables | other)
    assert "beat this rule on 0 of 10 datasets" in refuted and "on every dataset" not in refuted
    assert "All tests agree" in refuted and "is shown to do better" not in refuted
    assert script.conclude.on_words_alone(0.6, 0.72).startswith("The words alone do not explain")
    assert "not shown" in script.conclude.on_copies(1, 0.47)
    assert script.conclude.on_copies(8, 0.78).startswith("Texts that were seen 8 times tend")
    assert list(script.conclude.FIRST_LOOK) == [v for v in VERDICTS if v != NOT_RUN]


@pytest.fixture(scope="module")
def trained(script):
    """What trained models show, as notebooks 00 and 04b write it: in part, and not rounded."""
    method, setting = script.MIN_K, "random"
    return {
        "first_look": pd.DataFrame(
            [
                ("Quiz", "share", 0.96, SUPPORTED),
                ("Quiz", "share", 0.1, None),
                ("Quiz", "share", 0.3, None),
            ],
            columns=["method", "statistic", "value", "verdict"],
        ),
        "min_k_auc": pd.DataFrame(
            [
                (setting, 4.0, None, method, 0.7321, 0.63),
                (setting, 4.0, 0, method, 0.1, 0.0),  # of one model
                (setting, 4.0, None, "PPL", 0.2, 0.1),
                ("random, lengths", None, None, method, 0.3, 0.2),
            ],
            columns=["setting", "copies", "seed", "method", "auc", "ci_low"],
        ),
    }


def test_numbers_of_trained_models_are_rounded_and_have_a_tolerance(script, trained):
    lines = script.trained_numbers(trained).splitlines()[2:]
    of_finding, of_control = script.conclude.FIRST_LOOK[SUPPORTED]
    assert lines == [
        f"| 00 | Quiz, share: finding | 0.96 | ± 0.05 | {of_finding} |",
        f"| 00 | Quiz, share: highest control | 0.30 | ± 0.05 | {of_control} |",
        f"| 04b | {script.MIN_K}, AUC, copies: 4 | 0.73 | ± 0.01 | Texts that were seen 4 times "
        "tend to score above held-out ones. |",
    ]


@pytest.mark.parametrize(
    ("change", "is_within"), [(0, True), (0.01, True), (-0.01, True), (0.02, False), (-0.1, False)]
)
def test_a_page_is_kept_while_its_tolerances_cover_the_tables(script, trained, change, is_within):
    page = f"Text.\n{script.trained_numbers(trained)}\nText."
    aucs = trained["min_k_auc"].assign(auc=trained["min_k_auc"]["auc"] + change)
    part = script.trained_numbers(trained | {"min_k_auc": aucs})
    assert script.lie_within(page, part) == is_within
    assert not script.lie_within("", part) and not script.lie_within(part, part[:-1])


def test_a_page_with_another_conclusion_is_written_anew(script, trained):
    page = script.trained_numbers(trained)
    failed = trained["first_look"].assign(verdict=CONTROL_FAILS)
    part = script.trained_numbers(trained | {"first_look": failed})
    assert "no evidence" in part and not script.lie_within(page, part)


def test_numbers_to_expect_of_trained_models(script):
    """All of them stand on the page; where this checkout has been run, within the tolerances."""
    page = script.TEACHING.read_text()
    start, end = (
        page.index(f"{mark}{script.TRAINED_NUMBERS}") for mark in ("<!-- ", "<!-- end of ")
    )
    stated = page[start:end].splitlines()[3:]
    assert len(stated) == 12
    for line in stated:
        numbers = r"\| (?:00|04b) \| [^|]+ \| [01]\.\d\d \| ± 0\.0[15] \| [^|]+\. \|"
        assert re.fullmatch(numbers, line), line
    paths = [ROOT / f"outputs/demo/tables/{name}.csv" for name in ("first_look", "min_k_auc")]
    if all(path.exists() for path in paths):
        part = script.trained_numbers({path.stem: pd.read_csv(path) for path in paths})
        assert script.lie_within(page, part), 'run "make readme"'


def test_figure_is_small_and_not_stale(script, tables):
    path = ROOT / script.FIGURE
    assert path.stat().st_size < 100_000
    drawn = script.numbers_hash(script.figure_numbers(tables))
    with Image.open(path) as image:
        assert image.text["Description"] == drawn, 'the figure is stale: run "make readme"'


def test_what_is_recomputed_stands_next_to_what_is_printed(script, tables, needs_files):
    success = tables["replication_success"].copy()
    judge = success["algorithm"].eq("Algorithm 2: GPT-4 ICL") & success["model"].eq("GPT-4")
    success.loc[judge, "n_right"] = 12
    levels = tables["dcq_published"].copy()
    levels.loc[levels["dataset"] == "XSum", "max_pct"] = 99.0
    ours = script.results(tables, needs_files)
    assert "| 44 to 95 % |" in ours and "| 14 and 13 |" in ours and "| 21 of 33 |" in ours
    others = tables | {"replication_success": success, "dcq_published": levels}
    found = script.results(others, needs_files)
    assert "| 44 to 99 % |" in found and "| 12 and 13 |" in found
    assert "14 (GPT-4) and 13 (GPT-3.5) of 14 cases" in found
    assert "GPT-4 spots the original in 44 to 95 % of its quizzes" in found


def test_further_controls_are_those_of_the_tables(script, tables, needs_files):
    """Verdicts of every rule, of the tests and of the judge; other verdicts are other words."""
    rules, success = tables["dcq_rules"], tables["replication_success"]
    found = script.results(tables, needs_files, in_full=True)
    for control in controls.RULES:
        assert control in found.lower()
    assert "the claim is supported on 1, not supported on 4 and inconclusive on 5 of" in found
    assert "better is supported for GPT-4 and inconclusive for GPT-3.5." in found
    other = {
        "dcq_rules": rules.assign(verdict=SUPPORTED),
        "replication_success": success.assign(verdict=NOT_SUPPORTED),
    }
    refuted = script.results(tables | other, needs_files, in_full=True)
    assert "the claim is supported on 10 of 10 datasets" in refuted
    assert "better is not supported for GPT-4 and not supported for GPT-3.5." in refuted
    assert script.readings.FULL not in script.results(tables, needs_files)


def test_a_test_that_could_not_mark_any_row_is_no_result(script, tables, needs_files):
    """The zero of sign flips after Holm's correction stands next to its reason, in both pages."""
    tests = tables["replication_published"]
    found = script.results(tables, needs_files, in_full=True)
    assert "paired bootstrap gives 12, and sign flips can give none: their" in found
    assert "their smallest p is 1/1,024 and the strictest of 56 limits is 1/1,120." in found
    assert "sign flips with Holm cannot mark any |" in script.released_numbers(tables)
    powerful = tables | {"replication_published": tests.assign(can_reject=True)}
    assert "and sign flips give 0." in script.results(powerful, needs_files, in_full=True)
    assert "sign flips with Holm 0 |" in script.released_numbers(powerful)


def test_the_readme_says_what_each_verdict_means():
    for verdict in VERDICTS:
        assert f"**{verdict.capitalize()}**: " in README


def test_the_count_of_cells_is_the_table_s(script, tables, needs_files):
    """Of both papers what can be recomputed and what is equal; of all four what is printed."""
    cells = tables["published_vs_recomputed"].copy()
    row = cells.index[cells["paper"].eq("DCQ") & cells["matches"].eq(True)][0]
    n_both, n_equal = cells["matches"].notna().sum(), cells["matches"].eq(True).sum()
    cells.loc[row, "matches"] = False
    more = cells.assign(paper="Min-k% Prob").head(7)
    found = script.results(
        tables | {"published_vs_recomputed": pd.concat([cells, more])}, needs_files
    )
    assert f"and {n_equal - 1} of these agree" in found and f"recompute {n_both} of" in found
    assert f"(All four papers print {len(cells) + 7} numbers.)" in found


def test_tables_read_from_files_give_the_same(script, tables, needs_files, tmp_path):
    for name, table in tables.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    read = {name: pd.read_csv(tmp_path / f"{name}.csv") for name in tables}
    assert script.results(read, needs_files) == script.results(tables, needs_files)


def test_marks_are_needed_once(script):
    start, end = "<!-- facts: written by make readme -->", "<!-- end of facts -->"
    page = f"a\n{start}\nold\n{end}\nb"
    assert script.renewed(page, "facts", "new") == f"a\n{start}\nnew\n{end}\nb"
    with pytest.raises(ValueError, match="once each"):
        script.renewed(page, "others", "new")


@pytest.mark.mirror
def test_results_that_need_the_files_are_not_stale(script, needs_files):
    found = script.released_results()
    for table in (found, needs_files):
        table["printed"] = table["printed"].astype(str).replace("nan", "")
    pd.testing.assert_frame_equal(found, needs_files, rtol=1e-6)


def numbered(text):
    """Tables and figures that a text names: "Tables 1 to 3" are three.

    >>> sorted(numbered("Tables 1 to 3, Figure 4"))
    [('Figure', 4), ('Table', 1), ('Table', 2), ('Table', 3)]
    """
    found = set()
    for kind, numbers in re.findall(r"\b(Table|Figure)s? (\d[a-d]?(?:(?:,| and| to) \d)*)", text):
        for first, last in re.findall(r"(\d)(?:[a-d]?(?: to (\d)))?", numbers):
            found |= {(kind, n) for n in range(int(first), int(last or first) + 1)}
    return found


def test_the_map_names_what_the_notebook_has():
    page = (ROOT / "docs/notebooks.md").read_text().split("## What you need")[0]
    rows = [
        line for line in page.splitlines() if line.startswith("|") and "](../notebooks/" in line
    ]
    paths = [ROOT / re.search(r"notebooks/\w+\.ipynb", row)[0] for row in rows]
    assert paths == NOTEBOOKS
    for row, path in zip(rows, paths, strict=True):
        notebook = json.loads(path.read_text())
        text = "\n".join("".join(cell["source"]) for cell in notebook["cells"])
        assert numbered(row) <= numbered(text), row


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_paths_in_code_exist(page):
    text = page.read_text()
    for path in re.findall(r"`((?:params|notebooks|docs|scripts|benchmarks)/[\w./-]+)`", text):
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_make_targets_exist(page):
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)
    for command in re.findall(r"(?:`|^)make ([^`\n#]+)", page.read_text(), re.M):
        for word in shlex.split(command):
            assert "=" in word or word.startswith(("-", "$")) or word in targets, command


def test_make_lists_every_notebook():
    makefile = (ROOT / "Makefile").read_text()
    for path in NOTEBOOKS:
        assert re.search(rf"^{path.stem}: ## ", makefile, re.M)
