"""No test and no notebook reaches off this machine: the guards that hold the suite to it."""

import socket
import subprocess
import sys

import pytest

REACH = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=1)"
ASK = "import socket; socket.getaddrinfo('huggingface.co', 443)"


@pytest.fixture
def attempts(tmp_path, monkeypatch):
    """Where children note what they tried, apart from the session's own notes."""
    monkeypatch.setenv("TESTS_OFFLINE_LOG", str(tmp_path / "log"))
    return lambda: (tmp_path / "log").read_text() if (tmp_path / "log").exists() else ""


@pytest.mark.filterwarnings("ignore:A test tried")
def test_a_test_itself_is_refused(attempts):
    # By the plugin's guard; in a worker of a parallel run, which is a child, by that of children.
    refusals = RuntimeError, ConnectionRefusedError
    with pytest.raises(refusals, match=r"tried to use|off this machine"):
        socket.create_connection(("192.0.2.1", 80), timeout=1)


@pytest.mark.parametrize(("code", "host"), [(REACH, "192.0.2.1"), (ASK, "huggingface.co")])
def test_a_child_is_refused_and_noted(attempts, code, host):
    swallowed = f"try:\n    {code}\nexcept OSError: print('refused')"
    ran = subprocess.run([sys.executable, "-c", swallowed], capture_output=True, text=True)
    assert ran.stdout.strip() == "refused"
    assert host in attempts()
