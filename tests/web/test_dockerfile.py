"""The Dockerfile, read: the rules that a linter of such files has, and that what it names is there."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.web.conftest import Served
from trelliswork.cli.main import run
from trelliswork.web import Client, ServerError

ROOT = Path(__file__).parents[2]
KNOWN = {
    "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "RUN", "SHELL", "STOPSIGNAL",
    "USER", "VOLUME", "WORKDIR",
}  # fmt: skip


def instructions() -> list[tuple[str, str]]:
    """Each instruction with what it says, lines that go on put together."""
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.lstrip().startswith("#")]
    text = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in text.splitlines() if line.strip())]


def last_stage() -> list[tuple[str, str]]:
    found = instructions()
    begins = max(i for i, (name, _) in enumerate(found) if name == "FROM")
    return found[begins:]


def test_it_is_built_of_known_parts() -> None:
    found = instructions()
    assert found[0][0] == "FROM" and {name for name, _ in found} <= KNOWN
    for name, rest in found:
        if name == "FROM":
            assert re.fullmatch(r"python:3\.\d+-slim( AS \w+)?", rest), rest  # a version, not the latest
        if name == "RUN":
            assert "sudo" not in rest and "apt-get upgrade" not in rest
            assert "pip install" not in rest or ("--no-cache-dir" in rest and "-c constraints.txt" in rest)
        if name == "WORKDIR":
            assert rest.startswith("/")
        if name in ("CMD", "ENTRYPOINT", "VOLUME"):
            assert all(isinstance(each, str) for each in json.loads(rest))  # arguments, not a shell that eats signals


def test_what_it_copies_is_there() -> None:
    stages = {rest.rpartition(" AS ")[2] for name, rest in instructions() if name == "FROM" and " AS " in rest}
    for name, rest in instructions():
        if name == "COPY":
            *sources, _ = rest.split()
            if sources[0].startswith("--from="):
                assert sources[0].removeprefix("--from=") in stages
            else:
                assert all((ROOT / each).exists() for each in sources), rest


def test_it_runs_without_rights_and_is_watched() -> None:
    found = dict(last_stage())
    assert found["USER"] not in ("root", "0") and f" {found['USER']}" in found["RUN"]
    names = [name for name, _ in last_stage()]
    assert names.index("USER") < names.index("ENTRYPOINT") and found["STOPSIGNAL"] == "SIGTERM"
    port = found["EXPOSE"]
    assert f"127.0.0.1:{port}/healthz" in found["HEALTHCHECK"]
    check = json.loads(found["HEALTHCHECK"].partition("CMD ")[2])
    compile(check[2], "health check", "exec")
    written = json.loads(found["VOLUME"])
    assert "NUMBA_CACHE_DIR=/kernels" in found["ENV"] and set(written) == {"/kernels", "/teaching"}
    for place in written:
        assert place in found["RUN"], "the folder must be there, and of that user, before it is a volume"
    program, *arguments = json.loads(found["ENTRYPOINT"])
    assert program == "trelliswork" and arguments[arguments.index("--port") + 1] == port
    assert arguments[arguments.index("--teach") + 1] in written
    assert arguments[arguments.index("--host") + 1] == "0.0.0.0", "a published port leads to all addresses"
    said = (ROOT / "docs" / "deploy.md").read_text()
    assert f"-p 127.0.0.1:{port}:{port}" in said and f"0.0.0.0:{port}" in said


def test_it_listens_and_answers_where_it_says(serve: Callable[..., Served], tagger: Path) -> None:
    """With the arguments of the container, others are answered by the address that they call, with the token."""
    _, *arguments = json.loads(dict(last_stage())["ENTRYPOINT"])
    host = arguments[arguments.index("--host") + 1]
    server = serve(tagger, options=("--host", host, "--token", "secret"))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.connect(("192.0.2.1", 9))  # nothing is sent; the system says by which address it would be
        own = line.getsockname()[0]
    for name in {"127.0.0.1", own}:
        with Client(f"http://{name}:{server.port}", token="secret") as client:
            assert client.get("/healthz")["status"] == "ok"
            assert client.predict(text="Ann met Bob.")["results"]
    client = Client(server.address, token="secret")
    client._headers["Host"] = "192.0.2.1"
    with pytest.raises(ServerError, match="not called by that name"):
        client.models()


def test_its_command_is_one_that_the_program_reads(capsys: object) -> None:
    found = dict(last_stage())
    arguments = [*json.loads(found["ENTRYPOINT"])[1:], *json.loads(found["CMD"])]
    assert run(arguments) == 2  # without the model
    assert "/models/model: expected a model folder" in capsys.readouterr().err  # type: ignore[attr-defined]
