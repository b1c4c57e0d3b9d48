"""WikiMIA built anew from any MediaWiki, for other cut-offs than the paper's.

Shi et al., arXiv:2310.16789, section 2.2: pages of events, created before one
date (members) or after another (non-members), cut to lengths in words. The
authors' collector is not public.

    python -m contamination.wikimia.building params/full/wikimia.yaml
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pandas as pd

from contamination.core import storage
from contamination.core.parameters import ParameterError, load_parameter_file
from contamination.models.chat import REFUSED, ChatError, Endpoint, Price, Secret
from contamination.wikimia import pages, sets
from contamination.wikimia.pages import KEPT, MEMBER, NON_MEMBER, Settings
from contamination.wikimia.wiki import Wiki, WikiError


def build(wiki: Wiki, settings: Settings, progress: bool = True) -> dict[str, pd.DataFrame]:
    """Collect, cut, judge and write everything into ``settings.output_folder``.

    A Parquet file for each set and length, the dataset card ``README.md``, and the tables that
    are returned by name: ``filters``, ``sizes``, ``blind_baselines``.

    Raises:
        WikiError, ChatError, ValueError: with one line that names cause and cure.
    """
    folder = Path(settings.output_folder)
    # A missing key must not show after the crawl.
    paraphraser = _paraphraser(settings) if settings.paraphrase_model else {}
    crawled = pages.collect(wiki, settings, progress)
    results = {"filters": pages.outcome_counts(crawled)}
    storage.write_csv(folder / "filters.csv", results["filters"])
    for kind in (MEMBER, NON_MEMBER):
        if not ((crawled["kind"] == kind) & (crawled["outcome"] == KEPT)).any():
            raise WikiError(f"no {kind} page is kept: {folder}/filters.csv says why")
    tables, sizes = {}, []
    for length in sorted(set(settings.lengths)):
        whole = tables[sets.WIKIMIA, length] = sets.passages(crawled, length)
        pairs, fates = sets.revision_pairs(crawled, length)
        tables[sets.TWO_REVISIONS, length] = pairs
        sizes.append(_size(sets.WIKIMIA, length, whole))
        note = ", ".join(f"{n} {fate}" for fate, n in fates.items())
        sizes.append(_size(sets.TWO_REVISIONS, length, pairs, note=note))
        if paraphraser:
            table, statuses = sets.paraphrased(whole, length, **paraphraser, progress=progress)
            tables[sets.PARAPHRASED, length] = table
            counted = {"n_valid": len(table), "n_refused": statuses.get(REFUSED, 0)}
            counted["n_error"] = sum(statuses.values()) - sum(counted.values())
            sizes.append(_size(sets.PARAPHRASED, length, table, **counted))
    columns = ["benchmark", "length", "n_members", "n_non_members"]
    columns += ["n_valid", "n_refused", "n_error", "note"]
    counts = dict.fromkeys(columns[4:7], "Int64")
    results["sizes"] = pd.DataFrame(sizes, columns=columns).astype(counts)
    results["blind_baselines"] = sets.blind_baselines(
        tables, settings.n_permutations, settings.seed
    )
    about = wiki.about()
    # A wiki may give its server without http or https.
    page = urljoin(wiki.address, about["general"]["server"] + about["general"]["script"])
    licence = about["rightsinfo"].get("text") or "not stated by the wiki"
    files = {f"{_STEMS[name]}_length{length}": table for (name, length), table in tables.items()}
    for name, table in files.items():
        provenance = {"url": f"{page}?oldid=" + table["revision_id"].astype(str)}
        provenance |= {"wiki": wiki.address, "licence": licence}
        storage.write_parquet(folder / f"{name}.parquet", table.assign(**provenance))
    for name, table in results.items():
        storage.write_csv(folder / f"{name}.csv", table)
    storage.write_text(folder / "README.md", sets.card(settings, about, results, list(files)))
    return results


_STEMS = {sets.WIKIMIA: "wikimia", sets.TWO_REVISIONS: "two_revisions"}
_STEMS |= {sets.PARAPHRASED: "wikimia_paraphrased"}


def _size(name: str, length: int, table: pd.DataFrame, **more: Any) -> dict[str, Any]:
    n_members = int((table["label"] == 1).sum())
    counts = {"n_members": n_members, "n_non_members": len(table) - n_members}
    return {"benchmark": name, "length": length, **counts, **more}


def _paraphraser(told: Settings) -> dict[str, Any]:
    Secret(key_variable := told.paraphrase_key_variable or None)
    endpoint = Endpoint(told.paraphrase_base_url, told.paraphrase_model, key_variable)
    price = Price(told.input_price_per_million, told.output_price_per_million, told.price_date)
    return {"endpoint": endpoint, "price": price, "cap": told.cost_cap, "run": "wikimia"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Build a benchmark from the command line; returns the exit status, 0 or 1."""
    parser = argparse.ArgumentParser(
        prog="python -m contamination.wikimia.building",
        description="Build a dated membership benchmark from a MediaWiki.",
    )
    parser.add_argument("parameters", type=Path, help="YAML file, such as params/full/wikimia.yaml")
    path = parser.parse_args(arguments).parameters
    try:
        settings = Settings.read(load_parameter_file(path), str(path))
        wiki = Wiki(settings.wiki, settings.user_agent, settings.crawl)
        results = build(wiki, settings)
    except (WikiError, ChatError, ParameterError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted; run again, what was asked is stored", file=sys.stderr)
        return 130
    print(f"{wiki.n_asked} requests to the wiki, {wiki.n_stored} answered from the store")
    for table in results.values():
        print(f"\n{table.to_string(index=False, float_format='{:.3f}'.format)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
