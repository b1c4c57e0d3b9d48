"""How faults are put into the code and counted; make mutants runs those of scripts/mutants.yaml."""

import pytest
from notebook_files import ROOT, script

mutants = script("mutants")
CODE = "def mean(values):\n    total = sum(values)\n    n = len(values)\n    return total / n\n"


def fault(now, wrong, file="a.py"):
    return mutants.Fault("a wrong mean", file, now, wrong, "test_a.py")


def test_a_fault_stands_in_the_code_indented_like_its_first_line():
    one = mutants.with_fault(CODE, fault("total / n", "total / (n - 1)"))
    assert one == CODE.replace("/ n", "/ (n - 1)")
    two = fault("n = len(values)\nreturn total / n", "n = 1 + len(values)\nreturn total / n")
    assert mutants.with_fault(CODE, two) == CODE.replace("= len", "= 1 + len")


@pytest.mark.parametrize("now", ["median(values)", "values", "total = sum(values)\nreturn total"])
def test_a_place_that_is_not_found_exactly_once_is_named(now):
    with pytest.raises(ValueError, match=r'"a wrong mean": its text occurs \d+ times in a\.py and'):
        mutants.with_fault(CODE, fault(now, "0"))


def test_a_fault_is_killed_by_a_test_that_fails_and_by_nothing_else(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.py").write_text(CODE)
    outcomes = []
    for test in ("assert a.mean([1, 3]) == 2", "assert a.mean([1, 3]) > 2", "import b"):
        path = tmp_path / f"test_{len(outcomes)}.py"
        path.write_text(f"import a\n{test}\n" if "b" in test else f"import a\ndef test(): {test}\n")
        outcomes.append(mutants.tested(tmp_path, path.name)[0])
    assert outcomes == [mutants.SURVIVED, mutants.KILLED, "no test decided"]


def test_every_fault_quotes_its_file_once_and_has_tests_that_are_there():
    listed = mutants.faults()
    assert len({one.name for one in listed}) == len(listed)
    for one in listed:
        code = (ROOT / mutants.PACKAGE / one.file).read_text()
        assert mutants.with_fault(code, one) != code, one.name  # names what is not quoted as it is
        assert all((ROOT / test.split("::")[0]).is_file() for test in one.tests.split()), one.name
