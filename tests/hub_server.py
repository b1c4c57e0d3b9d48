"""A Hugging Face hub on 127.0.0.1, as far as its own clients ask: HF_ENDPOINT names it."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "c0ffee" + "0" * 34


class HubServer:
    """A context manager; ``asked`` holds method and path of every request.

    ``datasets`` maps an id to its files, path to content; every dataset stands at ``COMMIT``.
    ``models`` maps an id to what the hub says about it.
    """

    def __init__(
        self, datasets: Mapping[str, Mapping[str, bytes]], models: Mapping[str, dict[str, Any]]
    ):
        self.datasets, self.models, self.asked = datasets, models, []

    def __enter__(self) -> HubServer:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_HEAD(self):
                hub.asked.append(f"{self.command} {self.path}")
                n = int(self.headers.get("content-length", 0))
                status, body, headers = hub.answer(self.path, self.rfile.read(n))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_POST = do_HEAD

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, address: str, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        parts = unquote(urlsplit(address).path).strip("/").split("/")
        is_api = parts[0] == "api"
        kind, name, rest = parts[is_api], "/".join(parts[is_api + 1 : is_api + 3]), None
        rest = parts[is_api + 3 :]
        if is_api and kind == "models" and name in self.models:
            return _json({"id": name, "sha": COMMIT} | self.models[name])
        if "/".join(parts[:2]) in self.models and parts[-1] == "config.json":
            config = b'{"model_type": "llama"}'
            return 200, config, {"etag": f'"{_sha(config)}"', "x-repo-commit": COMMIT}
        if kind != "datasets" or name not in self.datasets:
            return _missing("RepoNotFound")
        files = self.datasets[name]
        if not is_api:  # resolve, commit, path
            path = "/".join(rest[2:])
            if path not in files:
                return _missing("EntryNotFound")
            return 200, files[path], {"etag": f'"{_sha(files[path])}"', "x-repo-commit": COMMIT}
        if rest[:1] == ["tree"]:
            return _json(_tree(files, "/".join(rest[2:]), "recursive=True" in address))
        if rest[:1] == ["paths-info"]:
            wanted = [path.strip("/") for path in parse_qs(body.decode()).get("paths", [])]
            every = _tree(files, "", True)
            return _json([entry for entry in every if entry["path"] in wanted])
        siblings = [{"rfilename": path} for path in files]
        return _json({"id": name, "sha": COMMIT, "siblings": siblings, "tags": []})


def _tree(files: Mapping[str, bytes], folder: str, is_recursive: bool) -> list[dict[str, Any]]:
    found = {}
    for path, content in files.items():
        if folder and not path.startswith(f"{folder}/"):
            continue
        entry = {"type": "file", "path": path, "size": len(content), "oid": _sha(content)}
        found[path] = entry
        parents = path.split("/")[:-1]
        for n in range(1, len(parents) + 1):
            above = "/".join(parents[:n])
            found[above] = {"type": "directory", "path": above, "size": 0, "oid": _sha(b"")}
    depth = folder.count("/") + 1 if folder else 0
    return [e for path, e in found.items() if is_recursive or path.count("/") == depth]


def _sha(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()


def _json(value: Any) -> tuple[int, bytes, dict[str, str]]:
    return 200, json.dumps(value).encode(), {"content-type": "application/json"}


def _missing(code: str) -> tuple[int, bytes, dict[str, str]]:
    return 404, b"{}", {"x-error-code": code, "content-type": "application/json"}
