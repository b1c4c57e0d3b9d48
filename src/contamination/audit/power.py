"""What would this audit have noticed: in the study's models, and in copies of this one?

The study's table comes from simulation (``scripts/audit_simulation.py``) on models of which we know
how often they saw each row.

With ``--power`` the comparison rows are dealt at random: one half stays for comparison, the other
half takes the place of the suspected rows, and a copy of the model reads a third of these 1, 4 or
16 times, by adapters, as the last thing that it learns. Then the same methods and the same rule
decide. The rows of the suspected half that the copy did not read, against the comparison rows,
tell how often a clean model is accused.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from contamination.audit import auditing, decision
from contamination.audit.finding import Finding, Target
from contamination.audit.plan import Audit
from contamination.audit.rows import Rows
from contamination.audit.verdict import decide
from contamination.core import storage
from contamination.core.statistics import share_interval
from contamination.core.tables import listed
from contamination.core.verdicts import SHOWN

if TYPE_CHECKING:
    from contamination.models.local import CausalLM

PATH = Path(__file__).with_name("noticed.csv")
TIMES = {1: "once", 4: "four times", 16: "sixteen times"}


# Of docs/audit_simulation.csv, which tests hold this sentence to.
WRONG = (
    "About one in twenty models that saw no row would be accused: in simulated audits of such "
    "models, this rule said shown in 4.6 % of them on average, and in at most 6.6 % in any setting "
    "(docs/audit.md). That is not the chance that this verdict is wrong, which also depends on how "
    "likely it was before. And the rule cannot see a difference between the two files in topic, "
    "style or date that no check of the text finds."
)
INTRODUCTION = (
    "This is not about your model. In our study of small models (1.4 and 29 million parameters), "
    "which saw a third of the rows verbatim among much other text, audits of this size noticed it "
    "as often as this:"
)


def describe(table: pd.DataFrame, method: str, n: int, n_comparison: int) -> str:
    """One sentence on what an audit of this size notices; it reassures nobody.

    It quotes the largest tabulated sizes that are not above these.
    """
    found = table.query("method == @method and n <= @n and n_comparison <= @n_comparison")
    if found.empty:
        return f"{method}: not measured for so few rows."
    said = []
    for row in found[found["n"].eq(found["n"].max())].itertuples():
        low, high = f"{100 * row.lowest:.0f}", f"{100 * row.highest:.0f}"
        said.append(f"{TIMES[row.copies]} in {low}{f' to {high}' * (low != high)} %")
    sizes = f"{row.n} rows and {row.n_comparison} comparison rows"
    if (row.n, row.n_comparison) != (n, n_comparison):
        sizes = f"measured with {sizes}, fewer than here"
    return f"{method}, {sizes}: seen {listed(said)} of audits."


def noticed_lines(methods: pd.DataFrame) -> list[str]:
    """What an audit of this size would have noticed: what it is, and a line for each method."""
    table = storage.read_csv(PATH)
    found = methods[methods["n_comparison"].gt(0)].drop_duplicates("method")
    if found.empty:
        return []
    return [INTRODUCTION] + [
        describe(table, row.method, row.n, row.n_comparison) for row in found.itertuples()
    ]


PASSES, N_COPIES, SHARE = (1, 4, 16), 5, 1 / 3
RANK, LEARNING_RATE = 16, 1e-3  # of the adapters; fixed before any copy was scored


@dataclass(frozen=True)
class Power:
    """What copies of one model showed."""

    model: str
    records: Sequence[dict[str, Any]] = ()  # for each number of passes, as ``verdict.json`` has it
    why_not: str = ""  # why no copy was made

    @property
    def lines(self) -> list[str]:
        """The same in sentences."""
        if self.why_not:
            return [f"No copies were trained: {self.why_not}."]
        sizes = self.records[0]
        said = [
            f"{TIMES[one['passes']]} in {one['n_noticed']} of {one['n_copies']}"
            for one in self.records
        ]
        n_clean = sum(one["n_copies"] for one in self.records)
        n_accused = sum(one["n_accused"] for one in self.records)
        low, high = (100 * end for end in share_interval(n_accused, n_clean))
        return [
            f"Copies that were trained on {sizes['n_seen']} of {sizes['n']} rows, with "
            f"{sizes['n_comparison']} for comparison, were noticed if they read them "
            f"{', '.join(said)} copies. The rows are yours for comparison, and the training was "
            "the last thing that a copy learned, at a high rate: most trainings leave less.",
            f"A copy was accused of rows that it had not read in {n_accused} of {n_clean} audits "
            f"(95 % interval {low:.0f} to {high:.0f} %).",
        ]


def measure(audit: Audit, target: Target) -> Power:
    """Trains copies of a local model and audits each; the model itself is left as it was."""
    if audit.unseen is None or len(audit.unseen.rows) < 2 * decision.FEWEST_COMPARISON:
        needed = 2 * decision.FEWEST_COMPARISON
        return Power(target.name, why_not=f"at least {needed} comparison rows are needed")
    records: list[dict[str, Any]] = []
    for passes in PASSES:
        words = []
        for copy in range(N_COPIES):
            suspected, rest, seen = deal(audit.unseen, audit.told.seed, copy)
            try:
                words.append(_audit_copy(audit, target, passes, copy, suspected, rest, seen))
            except ValueError as error:
                return Power(target.name, why_not=str(error))
        noticed, accused = (sum(one) for one in zip(*words, strict=True))
        record = {"model": target.name, "passes": passes, "n_copies": N_COPIES}
        record |= {"n": len(suspected.rows), "n_comparison": len(rest.rows)}
        record |= {"n_seen": len(seen.rows), "n_noticed": noticed, "n_accused": accused}
        records.append(record)
    return Power(target.name, records)


def deal(unseen: Rows, seed: int, copy: int) -> tuple[Rows, Rows, Rows]:
    """Comparison rows dealt at random: suspected ones, those for comparison, those to train on.

    The last are a third of the suspected ones.
    """
    generator = np.random.default_rng([seed, 40, copy])
    order = generator.permutation(len(unseen.rows))
    half = len(order) // 2
    suspected, rest = order[:half], order[half:]
    seen = generator.permutation(suspected)[: round(SHARE * half)]

    def part(places: np.ndarray) -> Rows:
        return replace(unseen, rows=unseen.rows.iloc[places].reset_index(drop=True))

    return part(suspected), part(rest), part(seen)


def _audit_copy(
    audit: Audit, target: Target, passes: int, copy: int, suspected: Rows, rest: Rows, seen: Rows
) -> tuple[bool, bool]:
    """Whether a copy is noticed, and whether it is accused of rows that it has not read."""
    # Both are of one draw, so nothing tells them apart.
    of_copy = replace(audit, rows=suspected, unseen=rest, refusal="")
    texts = audit.scored_texts(seen)
    with tuned(target.place, texts, passes, audit.told.seed + copy) as lm:
        found = auditing.findings_of(of_copy, replace(target, place=lm))
    if all(one.why_not for one in found.values()):
        raise ValueError("; ".join(dict.fromkeys(one.why_not for one in found.values())))
    read = {*seen.rows["index"]}
    others = suspected.rows[~suspected.rows["index"].isin(read)].reset_index(drop=True)
    clean = replace(of_copy, rows=replace(suspected, rows=others))
    unread = {name: _without(one, read) for name, one in found.items()}
    pairs = ((of_copy, found), (clean, unread))
    noticed, accused = (decide(one, "", "", of_one).word == SHOWN for one, of_one in pairs)
    return noticed, accused


def _without(found: Finding, read: set) -> Finding:
    """A finding without the suspected rows of these numbers."""
    scores = found.scores
    if scores is None:
        return found
    is_read = scores["index"].isin(read) & ~scores["is_unseen"]
    return replace(found, scores=scores[~is_read].reset_index(drop=True))


@contextlib.contextmanager
def tuned(lm: CausalLM, texts: Sequence[str], passes: int, seed: int) -> Iterator[CausalLM]:
    """The model with adapters that have read the texts so many times, a row a step.

    Afterwards the model is as it was. ValueError for an architecture that peft does not know.
    """
    import torch
    from peft import LoraConfig, get_peft_model

    rows = [lm.begin + lm.tokenizer(t, add_special_tokens=False).input_ids for t in texts]
    longest = lm.context_length
    torch.manual_seed(seed)
    config = LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules="all-linear")
    adapted = get_peft_model(lm.model, config)  # puts the adapters into ``lm.model``
    try:
        weights = [weight for weight in adapted.parameters() if weight.requires_grad]
        optimizer = torch.optim.AdamW(weights, lr=LEARNING_RATE)
        generator = np.random.default_rng([seed, 41])
        for _ in range(passes):
            for place in generator.permutation(len(rows)):
                ids = torch.tensor([rows[place][:longest]], device=lm.device)
                adapted(input_ids=ids, labels=ids).loss.backward()
                optimizer.step()
                optimizer.zero_grad()
        known = [lm.identity["revision"], [*texts], passes, seed, RANK, LEARNING_RATE]
        yield replace(lm, identity=lm.identity | {"revision": f"tuned:{storage.hash_of(known)}"})
    finally:
        adapted.unload()
        vars(lm.model).pop("peft_config", None)  # or the next copy would be called a second one
