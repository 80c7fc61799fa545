"""`trelliswork serve`: a page and an HTTP API for models, on this machine."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from trelliswork.cli.early import check_paths
from trelliswork.cli.options import Device, DeviceName, Threads
from trelliswork.lazy import named, optional
from trelliswork.models.loading import known_kind


def serve(
    models: Annotated[
        list[str], typer.Argument(metavar="MODEL...", help="Directories of models; NAME=DIR assigns a name.")
    ],
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on. Other than localhost requires --token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 selects a free one.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(help="Require `Authorization: Bearer TOKEN` (also TRELLISWORK_TOKEN)."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Host name under which the server is reachable, such as a proxy's."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Number of worker processes.")] = 1,
    timeout: Annotated[float, typer.Option(min=0.1, max=3600, help="Time limit per request, in seconds.")] = 30.0,
    at_once: Annotated[
        int, typer.Option(min=1, max=100_000, help="Maximum number of concurrent requests; others get status 429.")
    ] = 256,
    teach: Annotated[str, typer.Option(metavar="DIR", help="Directory for annotations made on the page.")] = "teaching",
    train: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Additional training data for models trained on the page.", show_default="of the model"
        ),
    ] = None,
    dev: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Validation data for models trained on the page.", show_default="of the model"
        ),
    ] = None,
    open_page: Annotated[
        bool | None,
        typer.Option(
            "--open/--no-open",
            help="Open the page in a browser.",
            show_default="at a terminal with a display and a browser",
        ),
    ] = None,
    threads: Threads = 1,
    device: Device = DeviceName.auto,
) -> None:
    """Serve models to a web page and to programs.

    The page shows the predictions for any text as spans, trees or
    alignments with exact probabilities. Correct one part and all other
    probabilities are recomputed given the correction. /docs describes the
    HTTP API.

    Only this machine can connect unless --host says otherwise, which
    requires a token. On SIGTERM or Ctrl-C, pending requests are finished.

    \b
    Examples:
      trelliswork serve ner
      trelliswork serve ner parser --port 8080 --no-open
      trelliswork serve small=models/a large=models/b --workers 4
      trelliswork serve ner --host 0.0.0.0 --token "$SECRET" --allow-host tags.example.org
    """
    check_paths(read=[train, dev])
    for package in ("starlette", "uvicorn", "prometheus_client"):
        optional(package, "serve", "web")
    limits = named("trelliswork.web.requests:Limits")(seconds=timeout, at_once=at_once)
    settings = named("trelliswork.web.server:ServerSettings")(
        host, port, token or os.environ.get("TRELLISWORK_TOKEN") or None, tuple(allow_host or ()), workers, threads,
        limits, open_page, teach, {"train": train, "dev": dev}, device,
    )  # fmt: skip
    for folder in named("trelliswork.web.server:named_models")(models).values():
        known_kind(folder)
    named("trelliswork.web.server:serve")(models, settings)
