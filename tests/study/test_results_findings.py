"""Sentences of notebook 09, each from a table that confirms it and one that refutes it."""

import pandas as pd
import pytest

from contamination.core.verdicts import INCONCLUSIVE, SUPPORTED
from contamination.data.published import compare
from contamination.dice import controls
from contamination.study import results_findings as findings


def test_it_says_from_which_papers_cells_are_recomputed():
    cells = pd.DataFrame({"paper": ["A", "A", "B"], "matches": [True, None, None]})
    said = compare.summarize_papers(cells)
    assert said == (
        "The recomputed cells come from A (1 of 2). None of the 1 cells of B can be recomputed "
        "here."
    )
    assert "None of" not in compare.summarize_papers(cells.assign(matches=True))


def readings(reading):
    return pd.DataFrame(
        {"Method": ["[Quiz](https://x)"], "The paper's claim": ["it finds"], "Our reading": reading}
    )


def test_the_conclusion_is_what_the_tables_say():
    said = findings.conclusion("We recompute 3.", readings("no memory"))
    arithmetic, _, claims = said.split("\n\n")
    assert arithmetic.startswith("We recompute 3. This checks the papers' arithmetic.")
    assert claims == "- Quiz. Claim: it finds. Our reading: no memory."
    assert "Our reading: memory." in findings.conclusion("", readings("memory"))


def rules(word):
    counted = ["equal coverage", "E a quarter"]
    table = pd.DataFrame({"counted": counted, "word": [word, SUPPORTED]})
    table = table.assign(difference_pct=[0.0, 22.0], dataset="WNLI", model="M", control="words")
    return table.assign(chosen_on_others=True)


def test_two_ways_of_counting_may_disagree():
    said = findings.summarize_counting(rules(INCONCLUSIVE))
    assert "about the rule “words” on WNLI (+22 points in the first, +0 in the second)" in said
    assert "They agree" in findings.summarize_counting(rules(SUPPORTED))


@pytest.mark.parametrize(
    ("seen", "clean", "text"),
    [
        (
            (27, 21, 33),
            (29, 22, 37),
            "differ even for a model that saw none of them. The score does",
        ),
        ((52, 40, 60), (51, 45, 57), "(chance: 50 %). The score does not show"),
        ((80, 75, 85), (51, 45, 57), "score higher in contaminated models alone"),
    ],
)
def test_dice_is_held_against_clean_models(seen, clean, text):
    columns = ["auroc_pct", "ci_low", "ci_high"]
    table = pd.DataFrame([seen, clean], columns=columns)
    assert text in controls.summarize_halves(
        table.assign(control=[controls.WITHIN, controls.WITHIN_CLEAN])
    )
