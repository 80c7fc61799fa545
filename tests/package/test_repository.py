"""The files around the package: citation, forms, workflows and pages of the repository say what is true of it."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import trelliswork

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FORMS = sorted(file for file in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if file.name != "config.yml")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PAGES = ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md")


def read(file: Path) -> dict[str, Any]:
    """A YAML file; the key `on` of workflows is a truth value to YAML."""
    return {"on" if key is True else key: value for key, value in yaml.safe_load(file.read_text("utf-8")).items()}


def steps(workflow: dict[str, Any], job: str) -> list[dict[str, Any]]:
    return list(workflow["jobs"][job]["steps"])


def supported() -> list[str]:
    return [each.split()[-1] for each in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", each)]


def test_the_citation_is_of_this_version() -> None:
    cited = read(ROOT / "CITATION.cff")
    assert (cited["version"], cited["license"]) == (trelliswork.__version__, PROJECT["license"])
    assert {"cff-version", "message", "title", "authors"} <= cited.keys() and cited["type"] == "software"
    assert all("name" in each or "family-names" in each for each in cited["authors"])


@pytest.mark.parametrize("file", FORMS, ids=lambda file: file.stem)
def test_a_form_asks_and_says_why(file: Path) -> None:
    form = read(file)
    assert form["name"] and form["description"] and form["labels"]
    asked = [each for each in form["body"] if each["type"] != "markdown"]
    assert len({each["id"] for each in asked}) == len(asked) > 1
    assert {each["type"] for each in asked} <= {"textarea", "input", "checkboxes", "dropdown"}
    assert all(each["attributes"]["label"] for each in asked)
    assert asked[0]["validations"]["required"] is True
    assert all((ROOT / name).is_file() for name in re.findall(r"[A-Z_]+\.md", file.read_text("utf-8")))


def test_there_is_a_form_for_each_kind_of_issue() -> None:
    assert [file.stem for file in FORMS] == ["bug", "feature", "question"]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_a_workflow_uses_what_is_there(file: Path) -> None:
    workflow, targets = read(file), set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    assert workflow["permissions"] == {"contents": "read"}, "what a job needs beyond it, the job says"
    for job in workflow["jobs"].values():
        commands = "\n".join(step.get("run", "") for step in job["steps"])
        assert set(re.findall(r"\bmake (\w+)", commands)) <= targets
        assert all((ROOT / script).is_file() for script in re.findall(r"\bpython ([\w/]+\.py)", commands))
        assert all("@" in step["uses"] for step in job["steps"] if "uses" in step)
        assert job.get("strategy", {}).get("matrix", {}).get("python", supported()) == supported()


def test_tests_run_for_every_change() -> None:
    workflow = read(ROOT / ".github" / "workflows" / "test.yml")
    assert set(workflow["on"]) == {"push", "pull_request"}
    assert any(step.get("run", "").startswith("make test") for step in steps(workflow, "test"))


def test_a_release_needs_only_a_tag() -> None:
    file = ROOT / ".github" / "workflows" / "release.yml"
    workflow = read(file)
    assert workflow["on"] == {"push": {"tags": ["v*"]}} and "secrets." not in file.read_text("utf-8")
    assert workflow["jobs"]["installed"]["needs"] == "build"
    assert workflow["jobs"]["publish"]["needs"] == ["installed", "wheels"]
    commands = [step.get("run", "") for step in steps(workflow, "build")]
    assert "python -m build" in commands and "python -m twine check --strict dist/*" in commands
    publish = workflow["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write", "attestations": "write", "contents": "write"}
    used = [step["uses"].partition("@")[0] for step in publish["steps"] if "uses" in step]
    assert used.index("actions/attest-build-provenance") < used.index("pypa/gh-action-pypi-publish")


def test_a_release_has_a_wheel_with_kernels_for_each_python_and_platform() -> None:
    workflow = read(ROOT / ".github" / "workflows" / "release.yml")
    job, published = workflow["jobs"]["wheels"], steps(workflow, "publish")
    assert {"x86_64", "aarch64", "arm64"} == {
        each["tag"].split("_", 3)[-1] for each in job["strategy"]["matrix"]["machine"]
    }
    commands = [step["run"] for step in job["steps"] if "run" in step]
    order = ["trelliswork.runtime.build", "build --wheel", "wheel tags", "find dist", "installed.py"]
    places = [next(i for i, command in enumerate(commands) if part in command) for part in order]
    assert places == sorted(places), "kernels first, and nothing is published that was not tried"
    (kept,) = [step["with"]["name"] for step in job["steps"] if "upload" in step.get("uses", "")]
    assert kept.startswith("wheel-") and {"pattern": "wheel-*", "path": "dist", "merge-multiple": True} in [
        step.get("with") for step in published
    ]


@pytest.mark.parametrize(
    ("tag", "log", "notes"),
    [
        ("v1.2.0", "# Changelog\n\n## [1.2.0] - 2030-01-01\n\n- New.\n\n## [1.1.0] - 2029-01-01\n- Old.\n", "- New."),
        ("v1.1.0", "## [1.2.0] - 2030-01-01\n- New.\n", None),  # the wheel is of another version
        ("v1.2.0", "## [1.2.0] - 2030-01-01\n\n## [1.1.0] - 2029-01-01\n- Old.\n", None),  # nothing is said of it
    ],
)
def test_a_tag_must_fit_the_version_and_the_changelog(tag: str, log: str, notes: str | None, tmp_path: Path) -> None:
    workflow = read(ROOT / ".github" / "workflows" / "release.yml")
    (check,) = [step["run"] for step in steps(workflow, "build") if "The tag is the version" in step.get("name", "")]
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "trelliswork-1.2.0-py3-none-any.whl").touch()
    (tmp_path / "CHANGELOG.md").write_text(log)
    environment = {"GITHUB_REF_NAME": tag, "PATH": "/usr/bin:/bin"}
    done = subprocess.run(["bash", "-e", "-c", check], cwd=tmp_path, env=environment)
    assert done.returncode == 0 if notes else done.returncode != 0
    assert notes is None or (tmp_path / "notes.md").read_text().strip() == notes


@pytest.mark.parametrize("name", PAGES)
def test_links_of_the_pages_lead_somewhere(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    links = [each for each in re.findall(r"\]\(([^)#\s]+)", text) if not re.match(r"\w+:", each)]
    assert [each for each in links if not (ROOT / each).exists()] == []
