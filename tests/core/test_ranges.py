"""Rules of parameters: each part by hand, and bad files for every notebook, refused at once."""

from __future__ import annotations

import time

import pytest
from notebook_files import ROOT

from contamination.audit import settings as own
from contamination.cases import settings as cases
from contamination.core import run
from contamination.core.parameters import (
    TYPES,
    OwnSettings,
    ParameterError,
    declared_in,
    parts_of,
    violated_rule,
)

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
CLASSES = [
    kind
    for module in (own, cases)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, OwnSettings)
]


@pytest.mark.parametrize(
    ("value", "rule", "is_kept"),
    [
        (0, "0 to 1e9", True),
        (-1, "0 to 1e9", False),
        (1e9 + 1, "0 to 1e9", False),
        (0.0, "above 0 to 100", False),
        (100.0, "above 0 to 100", True),
        (10**400, "0 or more", True),
        ([1, 2, 0], "1 to 9", False),
        ([], "1 to 9", False),
        ([], "1 to 9, 0 to 2 values", True),
        ([1, 2, 3], "1 to 9, 0 to 2 values", False),
        ([1, 2], "1 to 9, 2 values", True),
        ([0, 0], "0 to 9, distinct", False),
        ([2, 1], "0 to 9, rising", False),
        ([1, 1], "0 to 9, rising", False),
        ([1, 2], "0 to 9, some 0", False),
        ([0, 0], "0 to 9, some 0", False),
        ([0, 2], "0 to 9, some 0", True),
        (6, "4 to 9, multiple of 4", False),
        (8, "4 to 9, multiple of 4", True),
        ([0, 2], "within seeds", False),
        ([1], "within seeds", True),
        (5, "1 to width", False),
        (4, "1 to width", True),
        (20, "above 5 width to 1e5", False),
        (21, "above 5 width to 1e5", True),
        (30, "1 to 1000, times width to 100", False),
        (30, "1 to 1000, times seeds to 100", True),  # 30 x (0 + 1)
        ("b", "a or b", True),
        ("c", "a or b", False),
        ("", "a or empty", True),
        ("one-sentence summary", "summary or one-sentence summary", True),
        ([32, 33], "32 or 64", False),
        ("2024-02-29", "a day YYYY-MM-DD", True),
        ("2023-02-29", "a day YYYY-MM-DD", False),
        ("", "a day YYYY-MM-DD", True),
        ("anything", "", True),
    ],
)
def test_each_part_of_a_rule(value, rule, is_kept):
    comment = f"what it is [{rule}]" if rule else "what it is"
    assert (not violated_rule(value, comment, {"width": 4, "seeds": [0, 1]})) == is_kept


def declared_everywhere():
    for path in NOTEBOOKS:
        for name, field in declared_in(path).model_fields.items():
            (type_name,) = (each for each, kind in TYPES.items() if kind == field.annotation)
            yield path.stem, name, type_name, field.description
    for kind in CLASSES:
        for name, field in kind.model_fields.items():
            type_name = next((each for each, its in TYPES.items() if its == field.annotation), "")
            yield kind.__name__, name, type_name, field.description


def test_every_number_and_every_notebook_s_dictionary_has_a_rule():
    without = [
        (where, name)
        for where, name, type_name, comment in declared_everywhere()
        if (type_name in ("int", "float", "list[int]", "list[float]") and not parts_of(comment))
        or (type_name == "dict" and where[0].isdigit() and not parts_of(comment))
    ]
    assert without == []


def test_defaults_keep_their_own_rules():
    for kind in CLASSES:
        kind.read({})


def test_files_of_ones_own_fit_their_notebooks(tmp_path):
    rooms = {"audit": "10", "dice": "05b"}
    named = {"replication_released": "03b", "books_local": "06", "books_served": "06"}
    named |= {"08_case_unlearning": "08"}
    by_number = {path.stem.partition("_")[0]: path for path in NOTEBOOKS}
    files = [*(ROOT / "params/full").rglob("*.yaml"), *(ROOT / "params/audit").glob("*.yaml")]
    for file in files:
        number = rooms.get(file.parent.name) or named.get(file.stem)
        is_template = "$" in file.read_text()  # filled in, and checked, in tests/papers
        if file.stem != "wikimia" and not is_template:  # read by contamination.wikimia
            filled_in = tmp_path / file.name  # with a hosted model, where none is named
            filled_in.write_text(
                file.read_text().replace("names: []  # fill in", "names: [some-model]  #")
            )
            run.check(by_number[number], filled_in)


BAD = [
    ("00", "copies: 0", '"copies" is 0, want 1 to 1000'),
    ("01", "world_seed: -1", '"world_seed" is -1, want 0 to 1e9'),
    ("02", "n_resamples: -5", '"n_resamples" is -5, want 10 to 1e5'),
    ("02b", "copies: []", '"copies" is [], want 1 to 1000 values'),
    ("10", "dcq: {answer_tokens: 1, answer_tokens: 2}", '"answer_tokens" occurs twice'),
    ("03", "n_resamples: 5", '"n_resamples" is 5, want 10 to 1e5'),
    ("03b", "copies: [4, 16]", "want some 0"),
    ("05b", "own_settings: {model: {dtype: int8}}", 'own_settings: model: "dtype" is'),
    ("04b", "reference_size: L", "is 'L', want XS or S or M"),
    ("04", "k_percent: 0", '"k_percent" is 0, want above 0 to 100'),
    ("05", "lesson_instances: 1", '"lesson_instances" is 1, want 4 to 1000'),
    ("06", "n_books: 10", "want multiple of 4"),
    ("07", "ablation_seeds: [7]", '"ablation_seeds" is [7], want within training_seeds'),
    ("08", "ratio_window: 1.0", "want above 1 to 100"),
    ("09", "max_rows: 0", "want 1 to 1000"),
    ("09b", "copies: 3", "want 1 or 4 or 16"),
    ("11", "max_models: 21", "want 0 to 20"),
    ("12", "only: [taste]", "want quiz or completions or judge or dates or copies"),
]


@pytest.mark.parametrize(("number", "text", "message"), BAD)
def test_a_bad_file_is_one_line_at_once_and_nothing_is_written(number, text, message, tmp_path):
    (notebook,) = (path for path in NOTEBOOKS if path.stem.partition("_")[0] == number)
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    started = time.process_time()
    with pytest.raises(ParameterError) as caught:
        run.run_notebook(notebook, file, tmp_path / "outputs")
    assert time.process_time() - started < 1
    said = str(caught.value)
    assert message in said
    assert "bad.yaml" in said
    assert "\n" not in said
    assert list(tmp_path.iterdir()) == [file]
