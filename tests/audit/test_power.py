"""--power: copies of a model that read known rows, and what the audit notices of them."""

import numpy as np
import pytest
import torch
from test_audit import prepared, tiny_folder, unchecked  # noqa: F401 (fixtures)

from contamination.audit import auditing, power
from contamination.audit.settings import Settings


def test_rows_are_dealt_without_overlap_and_a_third_of_one_half_is_read():
    audit = prepared(n_passages=60, n=60)
    suspected, rest, seen = (
        {*part.rows["index"]} for part in power.deal(audit.unseen, seed=0, copy=0)
    )
    assert (len(suspected), len(rest), len(seen)) == (30, 30, 10)
    assert not suspected & rest and seen < suspected
    others = power.deal(audit.unseen, seed=0, copy=1)
    assert {*others[0].rows["index"]} != suspected


def test_too_few_comparison_rows_are_said_and_nothing_is_trained():
    audit = prepared(n_passages=39, n=8)
    found = power.measure(audit, auditing.Target("m", None))
    assert found.lines == ["No copies were trained: at least 40 comparison rows are needed."]


def test_power_is_for_models_that_can_be_trained():
    told = {"data": {"dataset": "a"}, "power": True}
    served = {"names": ["m"], "base_url": "http://127.0.0.1:9/v1"}
    with pytest.raises(ValueError, match="power trains copies of a local model"):
        Settings.read(told | {"model": served}).check()


def test_a_copy_has_learned_its_texts_and_the_model_is_as_it_was(tiny_folder):  # noqa: F811
    audit = prepared(model={"names": [str(tiny_folder)]})
    lm = auditing.target_of(audit, str(tiny_folder)).place
    texts = audit.unseen.passages[:2]
    before = {name: value.clone() for name, value in lm.model.state_dict().items()}

    def score(one):
        from contamination.models.local import token_log_probs

        return np.mean([s.token_log_probs.mean() for s in token_log_probs(one, texts)])

    untouched = score(lm)
    with power.tuned(lm, texts, passes=8, seed=0) as copy:
        assert copy.identity != lm.identity  # so no cached score of one is taken for the other
        learned = score(copy)
    assert learned > untouched + 0.1
    after = lm.model.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    with power.tuned(lm, texts, passes=1, seed=1):
        pass  # a second copy of the same model can be made


@pytest.mark.usefixtures("unchecked")
def test_copies_that_read_rows_are_told_from_rows_that_they_did_not_read(tiny_folder, monkeypatch):  # noqa: F811
    monkeypatch.setattr(power, "N_COPIES", 2)
    monkeypatch.setattr(power, "PASSES", (1, 16))
    monkeypatch.setattr(power, "LEARNING_RATE", 1e-2)
    blocks = {"methods": ["min_k"]}
    audit = prepared(model={"names": [str(tiny_folder)]}, n=60, n_passages=60, blocks=blocks)
    found = power.measure(audit, auditing.target_of(audit, str(tiny_folder)))
    assert not found.why_not
    assert [row["passes"] for row in found.records] == [1, 16]
    assert found.records[1]["n_noticed"] == 2
    assert (found.n, found.n_seen, found.n_comparison) == (30, 10, 30)
    assert "sixteen times in 2 of 2 copies" in found.lines[0]
    assert f"of {2 * 2} audits" in found.lines[1]
