"""The dataset card of a benchmark built from a wiki."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

COLUMNS = {
    "input": "the passage: the first words of the page's text, single spaces between them",
    "label": "1 member, 0 non-member; of two revisions 1 is the earlier",
    "page_id, title, url": "the page, and a lasting link to the revision used",
    "category": "where the page was found",
    "created": "time of the page's first revision",
    "revision_id, revision_timestamp": "the revision whose text is used",
    "n_words": "words of the whole text",
    "wiki, licence": "where the text comes from and under which licence",
}
_COUNTS = ["n_members", "n_non_members"]


def card(
    settings: Any,
    about: Mapping[str, Any],
    results: Mapping[str, pd.DataFrame],
    files: Sequence[str],
) -> str:
    """The card as Markdown with the front matter that dataset hubs read.

    ``about`` is ``Wiki.about``; ``results`` the tables of ``building.build``, ``files`` the names
    of the Parquet files, without ending.
    """
    general, rights = about["general"], about["rightsinfo"]
    licence = rights.get("text") or "not stated by the wiki"
    sections = [
        _front_matter(general.get("lang", "en"), licence, rights.get("url") or "", files),
        f"# Dated pages of {general['sitename']}: members and non-members",
        f"Built from {settings.wiki} ({general['generator']}), crawl {settings.crawl!r}, by the "
        "method of WikiMIA (Shi et al., arXiv:2310.16789, section 2.2). Members: pages of "
        f"{_listed(settings.member_categories)} created before {settings.member_cutoff}, as they "
        "stood before that date. Non-members: pages of "
        f"{_listed(settings.non_member_categories)} created on or after "
        f"{settings.non_member_cutoff}, as they stood before the snapshot of {settings.snapshot}. "
        f"Subcategories were followed {settings.depth} levels down.",
        "Both kinds go one way: the wiki renders the stated revision as HTML, and headings, "
        "tables, boxes, references and galleries are left out.",
        "In the set *two revisions* both passages come from one member page: before the member "
        "cut-off, and before the snapshot where that revision was saved after the non-member "
        "cut-off.",
        "## What can be told without a model",
        "These AUCs belong to classifiers that see the passages and their labels, and no model. A "
        "detector shows something about a model only where it does better than they do on the "
        "same rows.",
        _markdown(_readable(results["blind_baselines"])),
        "## Pages: found, asked, dropped, kept",
        _markdown(results["filters"]),
        "## Passages",
        _markdown(results["sizes"].astype(object).fillna("")),
        "## Columns",
        _markdown(pd.DataFrame(COLUMNS.items(), columns=["column", "meaning"])),
        "## Caveats",
        "* A page's first revision dates the page, not the event, and not each sentence.\n"
        "* Old revisions are rendered with the templates of the day of the crawl. A template that "
        "was changed since may show words that nobody saw then; one that is gone is left out. "
        "Both happen more often the older a revision is, so to members more than to non-members.\n"
        "* Whether a page is a redirect or a disambiguation page, and its title, are those of the "
        "day of the crawl.\n"
        "* A page that was deleted and written again counts as new.\n"
        "* That a page existed before a date does not prove that a given model read it.\n"
        f"* Text: {licence}. Each row names page and revision, whose history names the authors.",
    ]
    return "\n\n".join(sections) + "\n"


def _front_matter(language: str, licence: str, url: str, files: Sequence[str]) -> str:
    lines = ["---", f"language: {language}", "license: other", f'license_name: "{licence}"']
    lines += [f'license_link: "{url}"', "configs:"]
    for name in files:
        lines += [f"- config_name: {name}", f"  data_files: {name}.parquet"]
    return "\n".join([*lines, "---"])


def _readable(baselines: pd.DataFrame) -> pd.DataFrame:
    if baselines.empty:
        return baselines
    columns = ["benchmark", "length", "baseline", *_COUNTS, "auc", "ci_low", "ci_high"]
    table = baselines[[*columns, "permutation_null", "p_value"]].copy()
    rounded = ["auc", "ci_low", "ci_high", "permutation_null", "p_value"]
    table[rounded] = table[rounded].map(lambda value: "" if pd.isna(value) else f"{value:.3f}")
    return table


def _markdown(table: pd.DataFrame) -> str:
    if table.empty:
        return "Too few passages of one kind."
    rows = [list(table.columns), ["---"] * len(table.columns), *table.astype(str).to_numpy()]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
