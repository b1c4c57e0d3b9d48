"""--power: copies of a model that read known rows, and what the audit notices of them."""

import contextlib

import numpy as np
import pytest
import torch
from test_audit import prepared, tiny_folder  # noqa: F401 (a fixture)

from contamination.audit import auditing, power
from contamination.audit.finding import Finding, Target, scores_of
from contamination.audit.plan import MIN_K
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
    found = power.measure(audit, Target("m", None))
    assert found.lines == ["No copies were trained: at least 40 comparison rows are needed."]


def test_power_is_for_models_that_can_be_trained():
    told = {"data": {"dataset": "a"}, "power": True}
    served = {"names": ["m"], "base_url": "http://127.0.0.1:9/v1"}
    with pytest.raises(ValueError, match="power trains copies of a local model"):
        Settings.read(told | {"model": served})


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
    assert learned > untouched
    after = lm.model.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    with power.tuned(lm, texts, passes=1, seed=1):
        pass  # a second copy of the same model can be made


def test_copies_are_audited_by_the_same_rule_and_the_unread_rows_say_who_is_accused(monkeypatch):
    """Of sixteen passes a copy remembers what it read; of one it remembers nothing."""

    @contextlib.contextmanager
    def tuned(place, texts, passes, seed):
        yield {*texts} if passes == 16 else set()

    def findings_of(audit, target):
        values = [
            5.0 * (text in target.place) + len(text) % 7 / 10
            for rows in audit.sets
            for text in audit.scored_texts(rows)
        ]
        return {MIN_K: Finding("s", scores_of(audit.sets, values))}

    monkeypatch.setattr(power, "tuned", tuned)
    monkeypatch.setattr(power.auditing, "findings_of", findings_of)
    audit = prepared(n=60, n_passages=60)
    found = power.measure(audit, Target("m", None))
    assert [(row["passes"], row["n_noticed"]) for row in found.records] == [(1, 0), (4, 0), (16, 5)]
    assert sum(row["n_accused"] for row in found.records) <= 2
    sizes = [found.records[0][name] for name in ("n", "n_seen", "n_comparison")]
    assert sizes == [30, 10, 30]
    assert "once in 0 of 5, four times in 0 of 5, sixteen times in 5 of 5 copies" in found.lines[0]
    assert f"of {3 * power.N_COPIES} audits" in found.lines[1]


def test_a_model_that_cannot_be_audited_has_no_copies(monkeypatch):
    @contextlib.contextmanager
    def tuned(*_):
        yield None

    monkeypatch.setattr(power, "tuned", tuned)
    refused = {MIN_K: Finding(why_not="its log-probabilities are the same for every token")}
    monkeypatch.setattr(power.auditing, "findings_of", lambda *_: refused)
    found = power.measure(prepared(n=60, n_passages=60), Target("m", None))
    assert "No copies were trained: its log-probabilities are the same" in found.lines[0]
