"""CHANGELOG.md has the form of Keep a Changelog, which the release workflow reads."""

from __future__ import annotations

import re
from pathlib import Path

CHANGELOG = (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_versions_and_kinds_of_changes() -> None:
    assert CHANGELOG.startswith("# Changelog\n") and "keepachangelog.com" in CHANGELOG
    versions = re.findall(r"^## (.*)$", CHANGELOG, re.M)
    assert versions[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", each) for each in versions[1:])
    assert set(re.findall(r"^### (.*)$", CHANGELOG, re.M)) <= KINDS


def test_every_change_is_of_a_kind_and_of_a_version() -> None:
    for version in CHANGELOG.split("\n## ")[1:]:
        before, *kinds = version.split("\n### ")
        assert "\n- " not in before and all("\n- " in kind for kind in kinds)


def test_lists_and_headings_stand_apart() -> None:
    lines = CHANGELOG.splitlines()
    assert all(lines[i - 1] == "" for i, line in enumerate(lines) if i and line.startswith("#"))
    assert all(re.match(r"(- |  |#|$)", line) for line in lines[5:]), "a line belongs to a change or a heading"
