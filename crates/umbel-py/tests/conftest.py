"""Shared by the tests: the command `umbel`, other libraries, and lines of text."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

IN_CI = os.environ.get("CI") == "true"
ROOT = Path(__file__).resolve().parents[3]

# The file of 40 000 lines: short ones, and ones that do not fit into an Arrow view.
N, P = 60_000, 0.001
LINES = [
    "",
    "a",
    "é",
    *map(str, range(20_000)),
    *(f"https://example.org/čert/{i}?longer than a view holds" for i in range(20_000)),
]


def skip(why):
    """Skips a test, but not in CI, where nothing may be missing."""
    if IN_CI:
        pytest.fail(f"cannot run in CI: {why}")
    pytest.skip(why)


def library(name):
    """Imports an optional library."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        skip(f"{name} cannot be imported: {error}")


def find_command():
    named = os.environ.get("UMBEL_COMMAND")
    if named:
        return Path(named)
    built = [ROOT / "target" / profile / "umbel" for profile in ("release", "debug")]
    built = [path for path in built if path.exists()]
    return max(built, key=lambda path: path.stat().st_mtime, default=None)


@pytest.fixture(scope="session")
def shell():
    """Runs the command `umbel` and returns its output."""
    command = find_command()
    if command is None:
        skip("there is no command umbel: run `cargo build`, or set UMBEL_COMMAND")

    def run(*args, stdin=b"", ok=True):
        done = subprocess.run(
            [command, *map(str, args)], input=stdin, capture_output=True, timeout=120
        )
        assert not ok or done.returncode == 0, done.stderr.decode()
        return done.stdout

    return run


@pytest.fixture(scope="session")
def made(shell, tmp_path_factory):
    """The path of a file that the shell has made of LINES."""
    path = tmp_path_factory.mktemp("made") / "shell.umbel"
    text = "".join(f"{line}\n" for line in LINES).encode()
    shell("build", "-n", N, "-p", P, "-o", path, stdin=text)
    return path


@pytest.fixture(scope="session")
def python(tmp_path_factory):
    """Runs a program in a Python process of its own and returns its output."""
    empty = tmp_path_factory.mktemp("cwd")

    def run(program, *args, seed="random", **env):
        done = subprocess.run(
            [sys.executable, "-c", program, *map(str, args)],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=empty,
            env={**os.environ, "PYTHONHASHSEED": str(seed), **env},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def resident():
    """The memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
