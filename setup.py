"""What a wheel carries from outside ``src/``: the sample of the audit.

Outside a checkout ``contamination audit --data sample`` has to find the sample. So the build
copies these files into the package, under the names that they have here; in a checkout and in an
editable install ``storage.project_root`` names the checkout, and nothing is copied. All else
about the build is in pyproject.toml.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

CARRIED = ("params/audit/*.jsonl",)
FOLDER = "contamination/project_files"  # ``storage.CARRIED``


def carried_files() -> list[str]:
    """The files of ``CARRIED``, as paths from this folder."""
    return sorted(path.as_posix() for pattern in CARRIED for path in Path().glob(pattern))


class BuildWithCarriedFiles(build_py):
    """The modules and data of the package, and the files that it carries."""

    def run(self) -> None:
        super().run()
        for name in [] if self.editable_mode else carried_files():
            target = Path(self.build_lib, FOLDER, name)
            self.mkpath(str(target.parent))
            self.copy_file(name, str(target))

    def get_source_files(self) -> list[str]:
        """Those of a source distribution too, so that a wheel can be built from it."""
        return [*super().get_source_files(), *carried_files()]


setup(cmdclass={"build_py": BuildWithCarriedFiles})
