"""What the ledger's files and the spot check refuse."""

import numpy as np
import pandas as pd
import pytest

from contamination.core import storage
from contamination.study import spot_check, store
from contamination.study.protocol import SET_COLUMNS


def test_other_texts_are_another_world_only_with_other_packages():
    there = {"hashes": {"background": "a"}, "packages": {"numpy": "1"}}
    assert not spot_check.is_another_world(there, there)
    assert not spot_check.is_another_world(there | {"packages": {"numpy": "2"}}, there)
    assert not spot_check.is_another_world(there | {"hashes": {"background": "b"}}, there)
    elsewhere = {"hashes": {"background": "b"}, "packages": {"numpy": "2"}}
    assert spot_check.is_another_world(elsewhere, there)


def test_one_altered_score_is_caught_by_the_checksum(tmp_path):
    key = {"detector": "A", "unit": 0, "benchmark": "topics", "model": "dosed"}
    key |= {"condition": "verbatim", "copies": 3, "is_read": True}
    scores = pd.DataFrame({"row": range(9), "score": np.arange(9) / 7}).assign(**key)
    store.write(tmp_path, "tried", store.Ledger(scores, pd.DataFrame(columns=SET_COLUMNS), {}))
    store.read("tried", tmp_path)
    path = tmp_path / "tried_scores.parquet"
    table = pd.read_parquet(path)
    table.loc[7, "score"] = np.nextafter(table.loc[7, "score"], np.float32(9))
    storage.write_parquet(path, table)
    with pytest.raises(ValueError, match=r"tried_scores.* was changed"):
        store.read("tried", tmp_path)
