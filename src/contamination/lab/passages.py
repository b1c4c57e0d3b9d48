"""Real English that every installation already holds, docstrings of the scientific packages, split
into members, non-members, held-out passages and background.
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from contamination.core import storage
from contamination.core.overlap import NGRAM_WORDS, ngrams
from contamination.core.words import WORD, first_words

PACKAGES = {"numpy": "numpy", "scipy": "scipy", "pandas": "pandas", "sklearn": "scikit-learn"}
DOCSTRING_COLUMNS = ["package", "package_version", "page", "family", "text", "n_words", "version"]
MIN_WORDS = 8
# Raise when the rules below change what a docstring becomes.
TEXTS_VERSION = 2
SIGNATURES_VERSION = 2
# Hashes of what the versions of requirements.txt give, under any version of Python.
DOCSTRINGS = "85e8af4d5d0fecb7245579e00fd33c0228c2a26ada6312f3b9c9f69afaff7afa"
SIGNATURES = "4b4c65346fcf4392ec5d6d19f63affd26e19d9efb05f057939e8d12be7f8ffd1"

_LEFT_OUT = {"tests", "externals", "_vendored", "array_api_compat", "array_api_extra", "_testing"}
_LEFT_OUT |= {"distutils"}  # of NumPy, and for Python 3.11 alone
_UNDERLINE = re.compile(r"^\s*([-=~^*#`\"'+.])\1{2,}\s*$")
_VERSION_DIRECTIVE = re.compile(
    r"^(\s*)\.\.\s*(versionadded|versionchanged|deprecated)\s*::?\s*(.*)$", re.IGNORECASE
)
_SENTENCE = re.compile(r".*?[^.]\.(?= [A-Z]|$)")
_BLANK = re.compile(r"\n\s*\n")
_VERSION = re.compile(r"v?(\d+(?:\.\d+)+)")


def collect_docstrings() -> pd.DataFrame:
    """Prose of every docstring of the four packages, one row each, in a fixed order; cached.

    Returns:
        Columns package (import name), package_version, page (module and qualified name), family
        (the module, which keeps near-duplicates together), text (one line of prose, no two
        equal), n_words, version (the latest that a ``versionadded`` or ``versionchanged``
        directive names, None without one).
    """

    def read(versions: Mapping[str, str]) -> pd.DataFrame:
        frames = [
            read_docstrings(_folder_of(name), name).assign(package_version=version)
            for name, version in versions.items()
        ]
        table = pd.concat(frames, ignore_index=True).drop_duplicates("text", ignore_index=True)
        return table[DOCSTRING_COLUMNS]

    return _collected("docstrings", TEXTS_VERSION, read, DOCSTRINGS)


def read_docstrings(folder: Path, package: str) -> pd.DataFrame:
    """Prose docstrings of ``MIN_WORDS`` words or more in the ``.py`` files of a folder, by file.

    Columns as in :func:`collect_docstrings` without package_version.
    """
    rows = []
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        if _LEFT_OUT.intersection(parts) or path.name in {"conftest.py", "setup.py"}:
            continue
        module = ".".join([package, *(part for part in parts if part != "__init__")])
        for name, docstring in _docstrings_of(ast.parse(path.read_bytes())):
            text, version = clean_docstring(docstring)
            n_words = len(text.split())
            if n_words >= MIN_WORDS:
                page = f"{module}.{name}" if name else module
                rows.append((package, page, module, text, n_words, version))
    return pd.DataFrame(rows, columns=["package", "page", "family", "text", "n_words", "version"])


def collect_signatures() -> pd.DataFrame:
    """Short functions of the four packages with one-sentence summaries, in a fixed order; cached.

    Returns:
        Columns package, signature (name and parameters as written, at most 48 characters),
        summary (first sentence of the docstring, 3 to 12 words, no two equal).
    """

    def read(versions: Mapping[str, str]) -> pd.DataFrame:
        rows = [row for name in versions for row in _signatures_of(_folder_of(name), name)]
        table = pd.DataFrame(rows, columns=["package", "signature", "summary"])
        return table.drop_duplicates("summary", ignore_index=True)

    return _collected("signatures", SIGNATURES_VERSION, read, SIGNATURES)


def _collected(
    name: str, version: int, read: Callable[[Mapping[str, str]], pd.DataFrame], locked: str
) -> pd.DataFrame:
    """What ``read`` makes of the installed packages, cached; a warning unless it is as locked."""
    versions = {name: importlib.metadata.version(PACKAGES[name]) for name in sorted(PACKAGES)}
    table = storage.cached_table("lab", name, version, versions, lambda: read(versions))
    if hash_of_table(table) != locked:
        installed = ", ".join(f"{PACKAGES[name]} {version}" for name, version in versions.items())
        warnings.warn(
            f"{name} of {installed} are not those of the lock, so every number of the lab "
            "differs: make setup installs the locked versions",
            stacklevel=3,
        )
    return table


def hash_of_table(table: pd.DataFrame) -> str:
    """SHA-256 of a table of texts and numbers, by its values; a missing one counts as null."""
    columns = {name: values.tolist() for name, values in table.astype(object).items()}
    return storage.hash_of(
        {name: [None if pd.isna(v) else v for v in values] for name, values in columns.items()}
    )


def _signatures_of(folder: Path, package: str) -> Iterator[tuple[str, str, str]]:
    for path in sorted(folder.rglob("*.py")):
        if _LEFT_OUT.intersection(path.relative_to(folder).parts):
            continue
        for node in ast.walk(ast.parse(path.read_bytes())):
            if not isinstance(node, ast.FunctionDef) or node.name.startswith(("_", "test")):
                continue
            docstring = ast.get_docstring(node, clean=False) or ""
            signature = f"{node.name}({ast.unparse(node.args)})"
            summary = _SENTENCE.match(" ".join(_BLANK.split(docstring.strip())[0].split()))
            if summary and len(signature) <= 48 and 3 <= len(summary[0].split()) <= 12:
                yield package, signature, summary[0]


def clean_docstring(docstring: str) -> tuple[str, str | None]:
    """The prose of one docstring on one line, and the latest version it names.

    A version directive is removed with its indented body, so that no date is left in the text;
    ``deprecated`` is no date of the page.

    >>> clean_docstring("Mean of x.\\n\\n.. versionadded:: 1.7\\n\\n>>> mean([1])\\n1")
    ('Mean of x.', '1.7')
    """
    kept, versions = [], []
    lines = _dedented(docstring)
    position = 0
    while position < len(lines):
        line = lines[position]
        position += 1
        directive = _VERSION_DIRECTIVE.match(line)
        if directive:
            named = _VERSION.match(directive[3].strip())
            if named and directive[2].lower() != "deprecated":
                versions.append(named[1])
            # Its body ends before the next line that is not indented deeper.
            while position < len(lines) and (
                not lines[position].strip() or _indent(lines[position]) > len(directive[1])
            ):
                position += 1
        elif line.lstrip().startswith(">>>"):
            # The output of an example ends at the next blank line, as in doctest.
            while position < len(lines) and lines[position].strip():
                position += 1
        elif not _UNDERLINE.match(line):
            kept.append(line)
    latest = max(versions, key=version_order) if versions else None
    return " ".join(" ".join(kept).split()), latest


def _dedented(docstring: str) -> list[str]:
    """Lines without their common indentation, which the first line does not have."""
    first, *rest = docstring.expandtabs().splitlines() or [""]
    margin = min((_indent(line) for line in rest if line.strip()), default=0)
    return [first.lstrip(), *(line[margin:] for line in rest)]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def version_order(version: str) -> tuple[int, ...]:
    """Sorting key of a version number, trailing zeros ignored.

    >>> version_order("1.10") > version_order("1.9.0") == version_order("1.9")
    True
    """
    return tuple(int(part) for part in re.sub(r"(\.0+)+$", "", version).split("."))


def _folder_of(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def _docstrings_of(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Qualified name and docstring of the module, its classes, functions and added docs."""
    stack: list[tuple[str, ast.AST]] = [("", tree)]
    while stack:
        name, node = stack.pop(0)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node, clean=False)
            if docstring:
                yield name, docstring
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield from _added_docstring(node.value)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                stack.append((f"{name}.{child.name}".lstrip("."), child))
            elif isinstance(child, ast.stmt):
                stack.append((name, child))


def _added_docstring(call: ast.Call) -> Iterator[tuple[str, str]]:
    """The text of ``add_newdoc(..., name, text)`` or ``add_newdoc(..., (name, text))``."""
    if getattr(call.func, "id", getattr(call.func, "attr", "")) != "add_newdoc":
        return
    arguments: list[ast.expr] = []
    for argument in call.args:
        arguments.extend(argument.elts if isinstance(argument, ast.Tuple) else [argument])
    values = [argument.value for argument in arguments if isinstance(argument, ast.Constant)]
    strings = [value for value in values if isinstance(value, str)]
    if len(strings) == len(arguments) >= 2:
        yield strings[-2], strings[-1]


LENGTHS = (32, 64, 128, 256)
SHARES = {"background": 0.4, "member": 0.2, "non-member": 0.2, "held-out": 0.2}
COLUMNS = ["role", "package", "page", "family", "version", "n_words", "text"]

# Raise it when the code below or ``overlap.ngrams`` changes which passages are taken.
PASSAGES_VERSION = 1


def split_by_family(docstrings: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Random membership without leakage: whole families, no 13-gram twice; ``COLUMNS``.

    Families are dealt to the background first (whole docstrings). Every other docstring then gives
    its longest passage (256, 128, 64 or 32 words, the earliest such window) that shares no 13-gram
    with the background or with a passage already taken, in a random order that knows nothing of
    membership, so that the loss is the same for all roles. Families are dealt to the roles last.
    """
    background, pool = _background_and_pool(docstrings, seed)
    passages = clean_passages(pool, background["text"], seed)
    families = np.sort(pool["family"].unique())
    roles = dict(zip(families, _drawn_roles(len(families), seed), strict=True))
    passages["role"] = passages["family"].map(roles)
    return _stack(background, passages)


def split_by_version(docstrings: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Membership by date: of each package, the older dated pages are members.

    Passages are cleaned as in :func:`split_by_family`. The cut of a package is the version that
    comes closest to halving its passages.
    """
    background, pool = _background_and_pool(docstrings, seed)
    dated = pool[pool["version"].notna()]
    passages = clean_passages(dated, background["text"], seed)
    for _, group in passages.groupby("package"):
        order = group["version"].map(version_order)
        cuts = sorted(set(order))
        n_older = [sum(version <= cut for version in order) for cut in cuts]
        cut = cuts[int(np.argmin(np.abs(np.array(n_older) - len(group) / 2)))]
        is_older = np.array([version <= cut for version in order])
        passages.loc[group.index, "role"] = np.where(is_older, "member", "non-member")
    return _stack(background, passages)


def split_raw(docstrings: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Random membership as it is often made: page by page, repeated text left in.

    A passage is the beginning of its docstring, 256 words at most.
    """
    background, pool = _background_and_pool(docstrings, seed)
    passages = pool[pool["n_words"] >= min(LENGTHS)].copy()
    passages["n_words"] = [max(n for n in LENGTHS if n <= there) for there in passages["n_words"]]
    passages["text"] = list(map(first_words, passages["text"], passages["n_words"]))
    passages["role"] = _drawn_roles(len(passages), seed)
    return _stack(background, passages)


def passages_of_length(passages: pd.DataFrame, n_words: int) -> pd.DataFrame:
    """The first ``n_words`` words of every passage that holds as many; background left out."""
    long_enough = (passages["n_words"] >= n_words) & (passages["role"] != "background")
    if not long_enough.any():
        raise ValueError(f"no passage has {n_words} words: lengths are {LENGTHS}")
    chosen = passages[long_enough].reset_index(drop=True)
    chosen["text"] = [first_words(text, n_words) for text in chosen["text"]]
    return chosen.assign(n_words=n_words)


def clean_passages(docstrings: pd.DataFrame, background: Iterable[str], seed: int) -> pd.DataFrame:
    """The docstrings that give a passage, with its text and n_words; cached.

    No 13-gram is in two passages, or in a passage and a background text; the seed is of the order
    in which docstrings are served.
    """
    background = list(background)

    def passages() -> pd.DataFrame:
        taken = set().union(*(ngrams(text) for text in background))
        texts, chosen = docstrings["text"].tolist(), {}
        for row in np.random.default_rng([seed, 1]).permutation(len(docstrings)):
            passage = _longest_clean_window(texts[row].split(), taken)
            if passage:
                chosen[row] = passage
                taken |= ngrams(" ".join(passage))
        kept = sorted(chosen)
        result = docstrings.iloc[kept].reset_index(drop=True)
        result["n_words"] = [len(chosen[row]) for row in kept]
        result["text"] = [" ".join(chosen[row]) for row in kept]
        return result

    inputs = [hash_of_table(docstrings), background, seed, LENGTHS, NGRAM_WORDS, np.__version__]
    return storage.cached_table("lab", "passages", PASSAGES_VERSION, inputs, passages)


def _longest_clean_window(words: list[str], taken: set[tuple[str, ...]]) -> list[str]:
    """Earliest window of the greatest length without a taken 13-gram; empty if there is none."""
    pieces = [WORD.findall(word.lower()) for word in words]
    tokens = [token for piece in pieces for token in piece]
    # first_token[i] is where word i begins, in tokens.
    first_token = np.concatenate([[0], np.cumsum([len(piece) for piece in pieces])])
    is_taken = [
        tuple(tokens[start : start + NGRAM_WORDS]) in taken
        for start in range(len(tokens) - NGRAM_WORDS + 1)
    ]
    n_taken = np.concatenate([[0], np.cumsum(is_taken)]).astype(int)
    for length in sorted(LENGTHS, reverse=True):
        starts = np.arange(len(words) - length + 1)
        if not len(starts):
            continue
        begin = np.minimum(first_token[starts], len(is_taken))
        end = np.clip(first_token[starts + length] - NGRAM_WORDS + 1, begin, len(is_taken))
        clean = np.flatnonzero(n_taken[end] == n_taken[begin])
        if len(clean):
            return words[clean[0] : clean[0] + length]
    return []


def _background_and_pool(docstrings: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    families = np.sort(docstrings["family"].unique())
    n_background = round(SHARES["background"] * len(families))
    dealt = np.random.default_rng([seed, 0]).permutation(families)[:n_background]
    in_background = docstrings["family"].isin(dealt)
    return docstrings[in_background].assign(role="background"), docstrings[~in_background]


def _drawn_roles(n: int, seed: int) -> np.ndarray:
    roles = [role for role in SHARES if role != "background"]
    weights = np.array([SHARES[role] for role in roles])
    return np.random.default_rng([seed, 2]).choice(roles, size=n, p=weights / weights.sum())


def _stack(background: pd.DataFrame, passages: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([background[COLUMNS], passages[COLUMNS]], ignore_index=True)
