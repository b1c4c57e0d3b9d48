"""Keys of nine shapes, wherever one may be given or shown: none is in a file or in the output."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml
from notebook_files import ROOT, build

from contamination.audit import command_line as audit
from contamination.core import keys, run
from contamination.models.chat import ChatError, Secret
from contamination.models.exchange import Endpoint
from contamination.wikimia import building

# Put together here, so that no search for keys that were committed stops at them.
MIXED = "a1B2c3D4e5F6g7H8"
SHAPES = {
    "OpenAI": "sk-" + MIXED * 2,
    "OpenAI project": "sk-" + "proj-abcdefghijklmnop1234",
    "Anthropic": "sk-" + f"ant-api03-{MIXED}-{MIXED}",
    "Groq": "gsk" + f"_{MIXED * 3}",
    "Hugging Face": "hf" + f"_{MIXED * 2}",
    "GitHub": "ghp" + f"_{MIXED * 2}",
    "AWS": "AKIA" + "IOSFODNN7EXAMPLE",
    "hexadecimal": "0123456789abcdef" * 2,
    "password in an address": "http://me:correct-horse@127.0.0.1:9/v1",
}
SECRETS = SHAPES | {"password in an address": "correct-horse"}  # what must be seen nowhere
SAMPLE = ["--data", "params/audit/sample.jsonl", "--label", "label", "--plan", "--rows", "8"]
each_shape = pytest.mark.parametrize("shape", SHAPES)


def written(folder: Path) -> bytes:
    """Every name and every byte of the files in a folder, hidden ones too."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return b"".join(str(path).encode() + path.read_bytes() for path in files)


# Given where a name or an address belongs


def given_to_the_audit(tmp_path, shape, *words):
    model = ["--model", "m", "--served-at", "http://127.0.0.1:9/v1"]
    return audit.main([*model, *SAMPLE, *words, "--output", str(tmp_path / "out")])


@each_shape
def test_a_key_on_the_command_line_is_refused_before_anything_is_written(shape, tmp_path, capfd):
    assert given_to_the_audit(tmp_path, shape, "--key", SHAPES[shape]) == 2
    out, err = capfd.readouterr()
    assert 'model: "key_variable" must be the NAME of an environment variable' in err
    assert SECRETS[shape] not in out + err
    assert not (tmp_path / "out").exists()


@each_shape
@pytest.mark.parametrize("form", ["http://me:{}@127.0.0.1:9/v1", "http://127.0.0.1:9/v1?key={}"])
def test_so_is_a_key_in_the_address(shape, form, tmp_path, capfd):
    address = form.format(SECRETS[shape])
    assert given_to_the_audit(tmp_path, shape, "--served-at", address) == 2
    out, err = capfd.readouterr()
    assert 'model: "base_url" must hold no password, no key and no query' in err
    assert SECRETS[shape] not in out + err
    assert not (tmp_path / "out").exists()


@each_shape
def test_an_option_that_is_misspelt_does_not_repeat_the_key(shape, tmp_path, capfd):
    with pytest.raises(SystemExit):
        given_to_the_audit(tmp_path, shape, "--kye", SHAPES[shape])
    assert SECRETS[shape] not in "".join(capfd.readouterr())


def test_a_short_password_is_no_name_either_unless_it_is_set(tmp_path, capfd, monkeypatch):
    assert given_to_the_audit(tmp_path, "", "--key", "hunter2") == 2
    assert "hunter2" not in "".join(capfd.readouterr())
    assert not (tmp_path / "out").exists()
    monkeypatch.setenv("hunter2", "a value")
    assert given_to_the_audit(tmp_path, "", "--key", "hunter2") == 0
    assert given_to_the_audit(tmp_path, "", "--key", "NOT_SET_BUT_SAYS_KEY") == 0


FIELDS = {
    ("06", "own_settings: model"): [""],
    ("08", "own_settings"): ["judge_"],
    ("10", "model"): [""],
    ("10", "dcq"): ["perturber_"],
    ("10", "replication"): ["judge_"],
}
PLACES = [
    (number, parameter, f"{role}{field}")
    for (number, parameter), roles in FIELDS.items()
    for role in roles
    for field in ("key_variable", "base_url")
]


@pytest.mark.parametrize(
    ("shape", "number", "parameter", "field"),
    [
        *((shape, "10", "model", "key_variable") for shape in SHAPES),
        *((shape, "10", "model", "base_url") for shape in SHAPES),
        *(("Groq", *place) for place in PLACES),
        *(("hunter2", *place) for place in PLACES if place[-1].endswith("key_variable")),
    ],
)
def test_in_a_parameter_file_it_is_refused_before_a_kernel(
    shape, number, parameter, field, tmp_path, capfd
):
    is_name = field.endswith("key_variable")
    secret = SECRETS.get(shape, shape)  # a short password is of no shape
    given = SHAPES.get(shape, shape) if is_name else f"https://me:{secret}@host/v1"
    file = tmp_path / "p.yaml"
    values = {field: given}
    for name in reversed(parameter.split(": ")):
        values = {name: values}
    file.write_text(yaml.safe_dump(values))
    (notebook,) = (ROOT / "notebooks").glob(f"{number}_*.ipynb")
    assert run.main([str(notebook), str(file), str(tmp_path / "out")]) == 1
    out, err = capfd.readouterr()
    want = "be the NAME of an environment variable" if is_name else "hold no password"
    assert f'{parameter}: "{field}" must {want}' in err
    assert secret not in out + err
    assert [path.name for path in tmp_path.iterdir()] == ["p.yaml"]


@pytest.mark.parametrize("field", ["paraphrase_key_variable", "paraphrase_base_url", "wiki"])
@pytest.mark.parametrize("shape", ["AWS", "hexadecimal"])
def test_so_it_is_where_a_benchmark_is_built(shape, field, tmp_path, capfd):
    is_name = field.endswith("key_variable")
    given = SHAPES[shape] if is_name else f"https://me:{SECRETS[shape]}@host/v1"
    pages = {"member_categories": ["2014"], "non_member_categories": ["2024"]}
    (tmp_path / "wikimia.yaml").write_text(yaml.safe_dump({**pages, field: given}))
    assert building.main([str(tmp_path / "wikimia.yaml")]) == 1
    out, err = capfd.readouterr()
    assert f'"{field}" must' in err
    assert SECRETS[shape] not in out + err


@pytest.mark.parametrize(
    "text",
    [
        "model: {key_variable: [KEY]}",  # another type
        "model: KEY",  # the setting's name forgotten
        "KEY: 1",  # in place of a parameter
        "model: {KEY: 1}",
        "{KEY: 1, KEY: 2}",
        "model: {base_url: 'http://me:KEY@host/v1",  # a quote that is not closed
        "model: {key_variable: !!int KEY}",
    ],
)
def test_no_other_fault_of_a_file_repeats_the_key(text, tmp_path, capfd):
    file = tmp_path / "p.yaml"
    for shape in SHAPES:
        file.write_text(text.replace("KEY", json.dumps(SHAPES[shape])))
        notebook = ROOT / "notebooks/10_audit.ipynb"
        assert run.main([str(notebook), str(file), str(tmp_path / "out")]) == 1
        assert SECRETS[shape] not in "".join(capfd.readouterr())


@each_shape
def test_an_endpoint_refuses_it_without_repeating_it(shape):
    for fields in (
        {"base_url": "https://host/v1", "key_variable": SHAPES[shape]},
        {"base_url": f"https://me:{SECRETS[shape]}@host/v1"},
        {"base_url": f"https://{SECRETS[shape]}@host/v1"},
    ):
        with pytest.raises(ValueError, match=r"(key_variable|base_url) must") as refused:
            Endpoint(model="m", **fields)
        assert SECRETS[shape] not in str(refused.value)


# Shown by a run

SHOWN = """
import os, sys, warnings
from IPython.display import HTML, display
from contamination.core.storage import record
values = [os.environ[name] for name in names]
print(*values)
print(values, file=sys.stderr)
print("\\x1b[31m" + "\\x1b[32m".join(values))
display(HTML("<b>" + "</b><b>".join(values) + "</b>"), {"key": values})
for value in values:
    record("input", name=value, sha256=value)
    warnings.warn(value)
model
"""
RAISES = """
def ask(url, key):
    raise ConnectionError(f"{url} refused the key {key!r}")

ask("http://me:" + values[0] + "@host/v1", values)
"""


@pytest.fixture
def environment(monkeypatch):
    """A key of each shape in a variable; of one variable only the parameters say that it is one."""
    names = [f"MY_KEY_{number}" for number in range(len(SHAPES))]
    for name, key in zip(names, SHAPES.values(), strict=True):
        monkeypatch.setenv(name, key)
    monkeypatch.setenv("PLACE", "ordinary words, and a password")
    monkeypatch.setenv("HTTPS_PROXY", "http://somebody:p%40ssword!@proxy:8080")
    return [*names, "PLACE"]


def assert_nowhere(folder: Path, *outputs: str) -> None:
    everything = written(folder) + "".join(outputs).encode()
    assert b"***" in everything
    shown = [*SECRETS.values(), "ordinary words, and", "p%40ssword!", "p@ssword!"]
    assert not [secret for secret in shown if secret.encode() in everything]


@pytest.mark.parametrize("cells", [[], [RAISES]], ids=["done", "failed"])
def test_a_run_that_shows_its_keys_leaves_none_of_them(cells, tmp_path, environment, capfd):
    parameters = "names: list[str] = []  # variables\nmodel: dict = {}  # has no rule"
    file = tmp_path / "p.yaml"
    for_models = [
        {"key_variable": "PLACE", "base_url": SHAPES["password in an address"]},
        {"key_variable": SHAPES["hexadecimal"]},
    ]
    file.write_text(yaml.safe_dump({"names": environment, "model": {"each": for_models}}))
    notebook = build(tmp_path / "01_x.ipynb", parameters, SHOWN, *cells)
    code = run.main([str(notebook), str(file), str(tmp_path / "out")])
    output = capfd.readouterr()
    kept = "failed" if cells else "notebooks"
    assert (code, (tmp_path / f"out/{kept}/01_x.ipynb").exists()) == (len(cells), True), output.err
    assert_nowhere(tmp_path / "out", *output)
    # Names of variables stay: they say which one was meant.
    assert b"MY_KEY_0" in written(tmp_path / "out") and b"PLACE" in written(tmp_path / "out")


# What is a key, and what is none


@pytest.mark.parametrize("shape", [name for name in SHAPES if "address" not in name])
def test_known_shapes_are_told_from_names(shape):
    assert keys.is_like(SHAPES[shape])


@pytest.mark.parametrize(
    "name",
    [
        *("OPENAI_API_KEY", "openai_key", "HF_TOKEN", "MY_KEY_2", "hf_token_of_mine"),
        *("GPT4_KEY_2024", "TOKENIZERS_KEY"),
    ],
)
def test_names_are_told_from_keys(name):
    assert keys.why_no_variable(name) == ""


@pytest.mark.parametrize("name", ["2_KEYS", "MY-KEY", "a key", "", "KEY\n", "Clé", "https://host"])
def test_what_no_variable_can_be_called_is_no_name(name):
    assert "is not a name of letters, digits and _" in keys.why_no_variable(name)


def test_random_strings_of_every_alphabet_are_keys():
    import random
    import string

    draw = random.Random(0)
    for alphabet in (string.hexdigits, string.ascii_letters + string.digits):
        drawn = ["".join(draw.choices(alphabet, k=32)) for _ in range(100)]
        assert all(map(keys.is_like, drawn))


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("https://api.openai.com/v1", ""),
        ("http://[::1]:8000/v1/", ""),
        ("http://user:1/2@host/v1", "no password"),  # the password holds a slash
        ("https://host/v1#word", "no password"),
        ("https://host/sk-" + MIXED, "no password"),
        ("host/v1", "must begin"),
        ("ftp://host/v1", "must begin"),
        ("http://host:word/v1", "must begin"),
        ("http://[::1/v1", "must begin"),
        ("http:// host/v1", "must begin"),
        ("", "must begin"),
    ],
)
def test_an_address_is_a_host_and_nothing_secret(address, why):
    said = keys.why_no_address(address)
    assert why in said
    assert bool(why) == bool(said)


def test_a_variable_that_is_not_set_is_named_only_where_that_is_safe(monkeypatch):
    for name, shown in (("MY_KEY", "MY_KEY"), ("hunter2", "the variable that key_variable names")):
        with pytest.raises(ChatError, match=f"^{shown} is not set"):
            Secret(name)
    monkeypatch.setenv("hunter2", "clé")
    with pytest.raises(ChatError, match=r"^hunter2 contains characters that no key has"):
        Secret("hunter2")


def test_hashes_of_commits_and_placeholders_are_no_secrets(monkeypatch):
    for name in list(os.environ):
        monkeypatch.delenv(name)
    monkeypatch.setenv("GITHUB_SHA", "0123456789" * 4)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("HOME", "/root")
    assert keys.secrets() == []
    monkeypatch.setenv("MY_VARIABLE", SHAPES["hexadecimal"])
    assert keys.secrets() == [SHAPES["hexadecimal"]]
    monkeypatch.setenv("OPENAI_API_KEY", 'a "quoted" <key>')
    assert 'a \\"quoted\\" <key>' in keys.secrets()
    assert "a &quot;quoted&quot; &lt;key&gt;" in keys.secrets()


def test_words_that_begin_like_a_key_stay():
    # Put together here, so that nothing in the repository itself looks like a key.
    words = ["de" + "-".join(["sk", "0123456789abcdef"])]
    words += ["ta" + "-".join(["sk", "specific", "tuning"])]
    words += ["-".join(["hf", "internal", "testing"]) + "/tiny", "a@b.org"]
    text = ", ".join(words)
    assert keys.remove_keys(text) == text
