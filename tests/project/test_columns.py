"""Every column of every table has a sentence in docs/columns.csv, and no sentence is left over."""

from notebook_files import CONTENTS, script

columns = script("columns")
KNOWN, HEADERS = columns.meanings(), columns.headers()
USED = {
    (column, table) for of in HEADERS.values() for table, names in of.items() for column in names
}


def test_every_column_of_every_reference_table_has_a_sentence():
    stored = {path.stem for path in (columns.REFERENCE / "tables").glob("*.csv")}
    assert stored <= {table for _, table in USED}
    without = [one for one in sorted(USED) if one not in KNOWN and (one[0], "") not in KNOWN]
    assert without == []


def test_no_sentence_is_unused():
    own = {one for one in KNOWN if one[1]}
    assert sorted(own - USED) == []
    general = {column for column, table in KNOWN if not table}
    assert sorted(general - {column for column, table in USED - own}) == []


def test_a_meaning_is_one_plain_sentence():
    whole = {one for one, text in KNOWN.items() if text.endswith(".") and ". " not in text}
    assert sorted(KNOWN.keys() - whole) == []
    assert not any("|" in text for text in KNOWN.values())


def test_a_percent_is_called_percent():
    shares = {one: text for one, text in KNOWN.items() if one[0].endswith("_pct")}
    named = {one for one, text in shares.items() if "percent" in text}
    assert sorted(shares.keys() - named) == []


def test_tables_stand_under_their_notebooks_and_the_page_is_what_the_script_writes():
    assert set(HEADERS) <= {row["notebook"] for row in CONTENTS}
    assert columns.PAGE.read_text() == columns.page(), "run python scripts/columns.py"
