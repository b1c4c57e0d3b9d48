"""Set-up: the locks, which environment satisfies them, and what every package's licence is."""

import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from notebook_files import ROOT, script
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCKS = ("requirements.txt", "requirements-torch-cpu.txt", "requirements-torch-cuda.txt")
SERVED = "torch==2.13.0 \\\n    --hash=sha256:11\n"
CPU_BUILD = "torch==2.13.0+cpu ; sys_platform == 'linux' \\\n    --hash=sha256:22\n"


lock, environment, licences = map(script, ("lock", "environment", "licences"))


def entries(name):
    return lock.blocks((ROOT / name).read_text())


def test_the_lock_holds_what_the_project_asks_for():
    pins = {}
    for name in ("requirements.txt", "requirements-torch-cuda.txt", "requirements-extra.txt"):
        pins |= {canonicalize_name(Requirement(e).name): Requirement(e) for e in entries(name)}
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    for asked in [requirement for group in groups for requirement in group]:
        requirement = Requirement(asked)
        (pin,) = pins[canonicalize_name(requirement.name)].specifier
        assert requirement.specifier.contains(pin.version), asked


def test_all_places_name_the_same_pythons():
    asked = PROJECT["requires-python"]
    assert (
        asked == f">={environment.text(environment.LOWEST)},<{environment.text(environment.BEYOND)}"
    )
    assert all(SpecifierSet(asked).contains(v) for v in ("3.11.7", "3.12.1", "3.13.0"))
    makefile = (ROOT / "Makefile").read_text()
    assert f"{environment.LOWEST} <= sys.version_info[:3] < {environment.BEYOND}" in makefile


def test_conda_installs_the_lock_and_one_of_the_pythons():
    conda = yaml.safe_load((ROOT / "environment.yml").read_text())
    plain = [item for item in conda["dependencies"] if isinstance(item, str)]
    (pip,) = [item["pip"] for item in conda["dependencies"] if isinstance(item, dict)]
    assert f"python{PROJECT['requires-python']}" in plain and "pip" in plain
    files = [line.removeprefix("-r ") for line in pip]
    assert "requirements.txt" in files and set(files) & set(LOCKS[1:])
    # A file with hashes puts pip into a mode that takes files with hashes alone.
    assert all((ROOT / file).exists() for file in files)


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A lock of three packages, one of them for another platform."""
    (tmp_path / "requirements.txt").write_text(
        f"# head\npytest-xdist=={metadata.version('pytest-xdist')} \\\n    --hash=sha256:00\n"
        "colorama==0.1 ; sys_platform == 'nowhere' \\\n    --hash=sha256:00\n"
    )
    public = metadata.version("torch").split("+")[0]
    (tmp_path / "requirements-torch-cpu.txt").write_text(
        f"torch=={public}+cpu ; sys_platform != ''\n"
    )
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    return tmp_path


def test_an_environment_that_satisfies_the_lock_has_no_difference(small):
    assert environment.differences() == []
    assert environment.summary([]) is None


def test_the_first_difference_is_named(small):
    with (small / "requirements.txt").open("a") as file:
        file.write("nobody-has-this==1.0\npackaging==0.0.1\n")
    (small / "requirements-torch-cpu.txt").write_text("torch==0.1+cpu\n")
    found = environment.differences()
    assert found[0] == "nobody-has-this is missing"
    assert found[1] == f"packaging is {metadata.version('packaging')}, not 0.0.1"
    assert found[2].startswith("torch is ") and found[2].endswith("not 0.1")
    assert environment.summary(found) == "nobody-has-this is missing, and 2 more"


def pip_that_finds(url):
    """A pip whose dry run would install torch from this address; None where nothing serves it."""

    def run(python, arguments, check=True):
        if url is None:
            said = "ERROR: no version satisfies the requirement torch==2 (from versions: 1.9, 2.0)"
            return SimpleNamespace(returncode=1, stderr=said)
        report = arguments[arguments.index("--report") + 1]
        with open(report, "w") as file:
            json.dump({"install": [{"download_info": {"url": url}}]}, file)
        return SimpleNamespace(returncode=0)

    return run


@pytest.fixture
def locked_wheel(small):
    """A wheel and a lock that names its hash."""
    wheel = small / "torch 1.whl"
    wheel.write_bytes(b"a build")
    digest = hashlib.sha256(b"a build").hexdigest()
    text = f"torch==2.13.0+cpu ; sys_platform == 'linux' \\\n    --hash=sha256:{digest}\n"
    (small / "requirements-torch-cpu.txt").write_text(text)
    return wheel


def test_torch_without_cuda_is_taken_where_an_index_serves_it(locked_wheel, monkeypatch, capsys):
    for url in ("https://index/torch.whl", locked_wheel.as_uri()):
        monkeypatch.setattr(environment, "run_pip", pip_that_finds(url))
        assert environment.torch_build("python", "", []) == ("cpu", None)
    assert capsys.readouterr().out == ""


def test_a_local_wheel_that_the_lock_does_not_name_is_said(locked_wheel, monkeypatch, capsys):
    locked_wheel.write_bytes(b"another build")
    monkeypatch.setattr(environment, "run_pip", pip_that_finds(locked_wheel.as_uri()))
    assert environment.torch_build("python", "", []) == ("cpu", locked_wheel)
    printed = capsys.readouterr().out
    assert printed.startswith("a local wheel stands in for torch: ")
    assert len(printed.splitlines()) == 1


def test_where_no_index_serves_it_cuda_is_taken_and_said(locked_wheel, monkeypatch, capsys):
    monkeypatch.setattr(environment, "run_pip", pip_that_finds(None))
    assert environment.torch_build("python", "", []) == ("cuda", None)
    assert "several GB" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        environment.torch_build("python", "cpu", [])
    assert environment.torch_build("python", "cuda", []) == ("cuda", None)


@pytest.fixture
def only_index(tmp_path, monkeypatch):
    """A function that names the one package index that pip uses."""
    for name in list(os.environ):
        if name.startswith(("PIP_", "VIRTUAL_ENV", "CONDA_PREFIX")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_RETRIES", "0")
    return lambda url: monkeypatch.setenv("PIP_INDEX_URL", url)


REFUSES = "http://127.0.0.1:9/simple"  # nothing listens there


def test_without_a_network_set_up_stops_with_one_line_that_promises_nothing(tmp_path, only_index):
    only_index(REFUSES)
    command = [sys.executable, str(ROOT / "scripts/environment.py"), str(tmp_path / "venv")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("error: no package index can be reached: connect to a network, ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("torch", ["", "cpu"])
def test_an_index_without_the_cpu_build_is_told_from_one_without_torch(
    tmp_path, only_index, capsys, torch
):
    served = tmp_path / "simple/torch"
    served.mkdir(parents=True)
    only_index(served.parent.as_uri())
    with pytest.raises(SystemExit):
        environment.torch_build(Path(sys.executable), torch, [])
    printed = capsys.readouterr()
    assert printed.out == "" and len(printed.err.splitlines()) == 1
    assert re.match(r"error: no package index in use serves torch==\S+: name one", printed.err)
    (served / "index.html").write_text('<a href="torch-1.0-py3-none-any.whl">torch</a>')
    if torch:
        with pytest.raises(SystemExit):
            environment.torch_build(Path(sys.executable), torch, [])
        assert capsys.readouterr().err == printed.err
    else:
        assert environment.torch_build(Path(sys.executable), torch, []) == ("cuda", None)
        assert "several GB" in capsys.readouterr().out


def test_where_pip_fails_otherwise_all_that_it_printed_is_shown(only_index, capsys):
    with pytest.raises(SystemExit):
        environment.run_pip(Path(sys.executable), ["install", "--no-such-option"])
    assert "no such option" in capsys.readouterr().err


@pytest.fixture
def calls(monkeypatch):
    """What set-up would do: environments made, locks installed, calls of pip."""
    done = []
    monkeypatch.setattr(environment.subprocess, "run", lambda c, **_: done.append("venv"))
    monkeypatch.setattr(environment, "install_lock", lambda *a: done.append("lock"))
    monkeypatch.setattr(environment, "run_pip", lambda python, a, **_: done.append(a[0]))
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    return done


def prefix(folder, conda=False):
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/python").touch()
    if conda:
        (folder / "conda-meta").mkdir()
    return folder


def test_set_up_completes_an_environment_that_satisfies_the_lock(tmp_path, monkeypatch, calls):
    monkeypatch.setattr(environment, "unlike_lock", lambda python: "")
    environment.set_up(prefix(tmp_path / "conda", conda=True), "", [])
    assert calls == ["install"]  # this project alone


def test_set_up_leaves_a_conda_environment_that_does_not(tmp_path, monkeypatch, calls, capsys):
    monkeypatch.setattr(environment, "unlike_lock", lambda python: "numpy is 1.0, not 2.0")
    with pytest.raises(SystemExit):
        environment.set_up(prefix(tmp_path / "conda", conda=True), "", [])
    assert "numpy is 1.0, not 2.0" in capsys.readouterr().err
    assert calls == []


def test_set_up_says_why_the_active_environment_is_not_used(tmp_path, monkeypatch, calls, capsys):
    monkeypatch.setenv("CONDA_PREFIX", str(prefix(tmp_path / "base", conda=True)))
    monkeypatch.setattr(environment, "unlike_lock", lambda python: "numpy is missing")
    environment.set_up(tmp_path / ".venv", "", [])
    assert calls == ["venv", "lock", "install"]
    assert capsys.readouterr().out.endswith("base does not satisfy the lock: numpy is missing\n")


def test_packages_that_come_as_source_are_built_with_tools_of_the_lock(tmp_path, monkeypatch):
    commands = []
    monkeypatch.setattr(environment, "torch_build", lambda *a: ("cpu", None))
    monkeypatch.setattr(environment, "run_pip", lambda python, a, **_: commands.append(a))
    environment.install_lock("python", "", ["--flag"])
    assert [a[0] for a in commands] == ["install", "install", "check"]
    for command in commands[:2]:
        assert {"--require-hashes", "--no-deps", "--flag"} <= set(command)
    assert "--no-build-isolation" in commands[1]
    assert [c for c in commands[1] if c.endswith(".txt")] == [str(ROOT / n) for n in LOCKS[:2]]


def test_the_lock_of_torch_without_cuda_keeps_or_renews_its_hashes():
    kept = lock.cpu_lock(SERVED, "", CPU_BUILD)
    assert list(lock.blocks(kept)) == [
        "torch==2.13.0 ; sys_platform != 'linux'",
        "torch==2.13.0+cpu ; sys_platform == 'linux'",
    ]
    assert "sha256:11" in kept and "sha256:22" in kept
    listed = "torch==2.13.0+cpu \\\n    --hash=sha256:33\n"
    renewed = lock.cpu_lock(SERVED, listed, CPU_BUILD)
    assert "sha256:33" in renewed and "sha256:22" not in renewed
    with pytest.raises(ValueError, match="cannot be written"):
        lock.cpu_lock(SERVED, "", CPU_BUILD.replace("2.13.0", "2.12.0"))


def distribution(folder, fields, licence_file=""):
    info = folder / "thing-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: thing\nVersion: 1.0\n{fields}\n")
    (info / "LICENSE").write_text(licence_file)
    (info / "RECORD").write_text("thing-1.0.dist-info/LICENSE,,\n")
    return metadata.PathDistribution(info)


@pytest.mark.parametrize(
    ("fields", "text", "permissive"),
    [
        ("License-Expression: BSD-3-Clause AND MIT", "BSD-3-Clause AND MIT", True),
        ("License-Expression: MPL-2.0 AND MIT", "MPL-2.0 AND MIT", False),
        (
            "Classifier: License :: OSI Approved :: GNU Lesser General Public License v3 (LGPLv3)",
            "GNU Lesser General Public License v3 (LGPLv3)",
            False,
        ),
        ("License: LicenseRef-NVIDIA-Proprietary", "LicenseRef-NVIDIA-Proprietary", False),
        ("License: Apache 2.0", "Apache 2.0", True),
        ("Summary: says nothing", "not stated", False),
    ],
)
def test_a_licence_is_read_and_judged(tmp_path, fields, text, permissive):
    found = licences.licence(distribution(tmp_path, fields).metadata)
    assert found == text
    assert licences.is_permissive(found) is permissive


def test_what_is_not_permissive_comes_first_with_its_licence_file(tmp_path, monkeypatch, capsys):
    thing = distribution(tmp_path, "Summary: says nothing", "\nSome Licence\ntext")
    monkeypatch.setattr(licences.metadata, "distributions", lambda: [thing])
    licences.main()
    printed = capsys.readouterr().out
    assert printed.startswith("1 packages; 1 ask for more than a notice, or do not say:")
    assert 'not stated; its licence file begins "Some Licence"' in printed


def test_binder_installs_the_lock_with_torch_without_cuda():
    folder = ROOT / ".binder"
    lines = (folder / "requirements.txt").read_text().splitlines()
    files = [line.removeprefix("-r ") for line in lines if line.startswith("-r ")]
    assert [(folder / file).resolve() for file in files] == [ROOT / name for name in LOCKS[:2]]
    python = (folder / "runtime.txt").read_text().strip().removeprefix("python-")
    assert f"Programming Language :: Python :: {python}" in PROJECT["classifiers"]
    assert os.access(folder / "postBuild", os.X_OK)
