"""Found by every Python that a test starts, kernels of notebooks too: no socket off this machine.

An attempt is refused, and noted in the file that ``TESTS_OFFLINE_LOG`` names, since a library may
swallow the refusal; the session fails if anything stands there (``tests/conftest.py``).
"""

import os
import sys

_AT = {"socket.connect": 1, "socket.sendto": 1, "socket.getaddrinfo": 0, "socket.gethostbyname": 0}


def _is_own(host):
    """Whether this is an address of this machine, on which alone a socket can be bound."""
    import ipaddress
    import socket

    try:
        family = socket.AF_INET6 if ipaddress.ip_address(host).version == 6 else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as own:
            own.bind((host, 0))
    except (ValueError, OSError):  # a name, or another machine
        return False
    return True


def _guard(event, given):
    if event not in _AT:
        return
    address = given[_AT[event]]
    host = address[0] if isinstance(address, tuple) else address
    # None and "" stand for this machine; a Unix socket's address is a path.
    if not host or not isinstance(host, str) or host.startswith(("/", "127.", "localhost")):
        return
    if host in ("::1", "0.0.0.0", os.uname().nodename) or _is_own(host):  # noqa: S104
        return
    if log := os.environ.get("TESTS_OFFLINE_LOG"):
        with open(log, "a") as file:
            who = os.environ.get("PYTEST_CURRENT_TEST") or " ".join(sys.orig_argv[:4])
            file.write(f"{event} {host} by {who}\n")
    raise ConnectionRefusedError(f"off this machine: {event} {host}")


sys.addaudithook(_guard)
