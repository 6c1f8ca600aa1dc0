"""The types: the stubs describe the module, and type checkers accept and reject what they should."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import library

PROGRAMS = Path(__file__).parent / "typing"
# Types of pyspark, which are taken for names of the module where that is not installed. Where it is,
# tests/spark checks the module.
NOT_INSTALLED = r"umbel\.spark\.(DataFrame|SparkSession)"


def check(*args, cwd):
    library("mypy")
    done = subprocess.run(
        [sys.executable, "-m", *map(str, args)], capture_output=True, text=True, cwd=cwd, timeout=300
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("module", ["umbel", "umbel._umbel", "umbel.polars"])
def test_the_stubs_describe_the_module(module, tmp_path):
    (tmp_path / "allowed").write_text(NOT_INSTALLED)
    allowed = ["--allowlist", "allowed", "--ignore-unused-allowlist"]
    code, report = check("mypy.stubtest", module, *allowed, cwd=tmp_path)
    assert code == 0, report


def test_a_strict_checker_accepts_the_types_of_a_program(tmp_path):
    code, report = check("mypy", "--strict", PROGRAMS / "accepted.py", cwd=tmp_path)
    assert code == 0, report


def test_a_strict_checker_finds_every_error(tmp_path):
    text = (PROGRAMS / "rejected.py").read_text(encoding="utf-8").splitlines()
    wrong = {number for number, line in enumerate(text, 1) if line.endswith("# error")}
    code, report = check("mypy", "--strict", PROGRAMS / "rejected.py", cwd=tmp_path)
    found = set(map(int, re.findall(r"^.*?rejected\.py:(\d+): error:", report, re.MULTILINE)))
    assert (code, found) == (1, wrong), report
