"""The licence of every installed package, those that are not permissive first: make licences."""

from __future__ import annotations

import re
from importlib import metadata

# By name or SPDX identifier; what matches neither pattern is listed first as well.
PERMISSIVE = re.compile(
    r"\b(apache|mit|0?bsd|isc|psf|python software foundation|cc0|zlib|unlicense|hpnd|bsl-1\.0)\b",
    re.I,
)
OTHER = re.compile(r"\b([al]?gpl|gnu|mpl|mozilla|eupl|cddl|proprietary|nvidia|commercial)", re.I)


def licence(package: metadata.PackageMetadata) -> str:
    """What a package says of its licence: its SPDX expression, classifiers or first line."""
    expression = package.get("License-Expression")
    if expression:
        return expression
    classifiers = [c for c in package.get_all("Classifier", []) if c.startswith("License ::")]
    names = [c.rsplit(" :: ", 1)[1] for c in classifiers if c != "License :: OSI Approved"]
    if names:
        return ", ".join(names)
    lines = (package.get("License") or "").strip().splitlines()
    return lines[0] if lines else "not stated"


def first_line(distribution: metadata.Distribution) -> str:
    """The first line of a package's licence file, which may say more than its metadata."""
    for file in distribution.files or []:
        if "dist-info" in str(file) and re.match(r"(licen[cs]e|copying)", file.name, re.IGNORECASE):
            lines = file.locate().read_text(errors="replace").split("\n")
            return next((line.strip() for line in lines if line.strip()), "")
    return ""


def is_permissive(text: str) -> bool:
    """Whether a licence asks for no more than a notice.

    >>> is_permissive("BSD-3-Clause"), is_permissive("MPL-2.0 AND MIT"), is_permissive("not stated")
    (True, False, False)
    """
    return bool(PERMISSIVE.search(text)) and not OTHER.search(text)


def main() -> None:
    rows = set()
    for distribution in metadata.distributions():
        name, text = distribution.metadata["Name"], licence(distribution.metadata)
        permissive = is_permissive(text)
        begins = "" if permissive else first_line(distribution)
        text += f'; its licence file begins "{begins}"' if begins else ""
        rows.add((permissive, name.lower(), distribution.version, text))
    others = sum(not permissive for permissive, *_ in rows)
    print(f"{len(rows)} packages; {others} ask for more than a notice, or do not say:\n")
    before = False
    for permissive, name, version, text in sorted(rows):
        if permissive and not before:
            print()
        before = permissive
        print(f"{name:28} {version:14} {text[:120]}")


if __name__ == "__main__":
    main()
