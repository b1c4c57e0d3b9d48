"""Which room of the package a file belongs to, and which files it imports."""

from __future__ import annotations

from pathlib import Path

from contamination.core.syntax import PACKAGE, imported_files


def folders_imported(file: Path) -> set[str]:
    """Rooms that a file imports itself, its own aside."""
    return {folder_of(found) for found in imported_files(file)} - {folder_of(file), "__init__"}


def folder_of(file: Path) -> str:
    """The folder of a file, or its own name where it lies beside the folders."""
    place = file.relative_to(PACKAGE).parts
    return place[0] if len(place) > 1 else file.stem
