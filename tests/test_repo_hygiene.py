"""The repository itself: packages, hosts and paths in files, file lengths, pins, and targets that exist."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
TEXT = {".py", ".md", ".toml", ".txt", ".yml", ".yaml", ".jsonl", ".json", ".html", ".sh", ""}
CODE = {".py", ".yml", ".yaml", ".toml"}
MAX_LINES = 500

# Written in halves, so that this file passes its own checks.
HOSTS = re.compile(
    "|".join(("pypi" + r"\.org", "python" + r"hosted\.", "npmjs" + r"\.", "download" + r"\.pytorch", "index" + "-url"))
)
MACHINE_PATH = re.compile(r"(?<![\w./~$}-])/(?:" + "|".join(("work", "root", "home", "Users")) + r")/\w")
UNFINISHED = re.compile("|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")))


@cache
def tracked() -> list[Path]:
    """Every file that git tracks, or would."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = [ROOT / name for name in listed.stdout.splitlines()]
    return [path for path in paths if path.is_file()]


def texts() -> dict[str, str]:
    return {name(path): path.read_text() for path in tracked() if path.suffix in TEXT}


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def lines_with(pattern: re.Pattern, files: dict[str, str]) -> list[str]:
    return [
        f"{file}:{number}: {line.strip()}"
        for file, text in files.items()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def make_targets() -> set[str]:
    found: set[str] = set()
    for line in re.findall(r"^([a-z0-9][a-z0-9 -]*):", (ROOT / "Makefile").read_text(), re.MULTILINE):
        found.update(line.split())
    return found


def test_every_tests_directory_is_a_package():
    folders = {path.parent for path in tracked() if path.suffix == ".py" and path.is_relative_to(ROOT / "tests")}
    assert sorted(name(f) for f in folders if not (f / "__init__.py").exists()) == []


def test_no_registry_host_is_named():
    assert lines_with(HOSTS, texts()) == []


def test_no_machine_path_is_named():
    assert lines_with(MACHINE_PATH, texts()) == []


@pytest.mark.parametrize(
    ("pattern", "line", "found"),
    [
        (HOSTS, "--index" + "-url x", True),
        (MACHINE_PATH, "cd /" + "root/x", True),
        (MACHINE_PATH, "runs/wo" + "rk/x ~/wo" + "rk/y $HOME/wo" + "rk/z", False),
        (UNFINISHED, "# TO" + "DO: later", True),
    ],
)
def test_the_patterns_find_what_they_name(pattern, line, found):
    assert bool(lines_with(pattern, {"file": line})) == found


def test_files_stay_readable():
    long = {name(p): n for p in tracked() if p.suffix in CODE and (n := len(p.read_text().splitlines())) > MAX_LINES}
    assert not long


def test_source_has_nothing_unfinished():
    assert lines_with(UNFINISHED, {f: text for f, text in texts().items() if f.startswith("src/")}) == []


def test_changelog_has_an_unreleased_section():
    assert "\n## Unreleased\n" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("path", sorted((ROOT / "requirements").glob("*.txt")), ids=lambda p: p.name)
def test_requirements_are_pinned_and_name_no_source(path):
    pin = re.compile(r"(#.*|-r \w+\.txt|[\w.-]+(\[[\w,-]+\])?==[\w.]+( ; .+)?|)")
    assert [line for line in path.read_text().splitlines() if not pin.fullmatch(line)] == []


def test_a_package_is_pinned_once():
    pins: dict[str, set[str]] = {}
    for path in (ROOT / "requirements").glob("*.txt"):
        for package, version in re.findall(r"^([\w.-]+)==(\S+)", path.read_text(), re.MULTILINE):
            pins.setdefault(re.sub(r"[-_.]+", "-", package).lower(), set()).add(version)
    assert {package: versions for package, versions in pins.items() if len(versions) > 1} == {}


def workflow_targets() -> list[tuple[str, str]]:
    """(workflow, make target) for every target that a workflow or `.ci/run` runs."""
    found = [(".ci/run", t) for t in re.findall(r"^step ([a-z0-9-]+)", (ROOT / ".ci/run").read_text(), re.MULTILINE)]
    for path in sorted((ROOT / ".github/workflows").glob("*.yml")):
        for job in yaml.safe_load(path.read_text())["jobs"].values():
            found += [(path.name, t) for t in job.get("strategy", {}).get("matrix", {}).get("target", [])]
            for step in job.get("steps", []):
                found += [(path.name, t) for t in re.findall(r"\bmake ([a-z0-9-]+)", step.get("run", ""))]
    return found


def test_workflows_run_targets_that_exist():
    found = workflow_targets()
    assert {workflow for workflow, _ in found} >= {".ci/run", "ci.yml", "slow.yml"}
    assert [pair for pair in found if pair[1] not in make_targets()] == []


def test_the_required_job_needs_every_other():
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]
    assert sorted(jobs["required"]["needs"]) == sorted(set(jobs) - {"required"})


def test_the_shards_of_the_slow_tier_are_all_run():
    count = int(re.search(r"^SLOW_SHARDS := (\d+)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1])
    jobs = yaml.safe_load((ROOT / ".github/workflows/slow.yml").read_text())["jobs"]
    assert jobs["slow"]["strategy"]["matrix"]["shard"] == list(range(count))
