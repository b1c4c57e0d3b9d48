"""The faults that make mutants puts into the code, one at a time, are of the code as it is."""

from notebook_files import ROOT, script

mutants = script("mutants")


def test_every_fault_quotes_its_file_once_and_has_tests_that_are_there():
    listed = mutants.faults()
    assert len({one.name for one in listed}) == len(listed)
    for one in listed:
        code = (ROOT / mutants.PACKAGE / one.file).read_text()
        assert mutants.with_fault(code, one) != code, one.name  # names what is not quoted as it is
        assert all((ROOT / test.split("::")[0]).is_file() for test in one.tests.split()), one.name
