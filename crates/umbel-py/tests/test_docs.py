"""The examples of the documentation run, and print what they show.

Blocks of `pycon` are sessions, blocks of `python` are programs with assertions. Each has names of its
own. The blocks of a page share a folder, in which blocks of `console` run before them in the shell.
"""

import doctest
import importlib
import inspect
import io
import re
import subprocess

import pytest
from conftest import ROOT, find_command, library, skip

import umbel

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
IMPORT = re.compile(r"^(?:>>> )?(?:import|from) (\w+)", re.MULTILINE)
OPTIONAL = {"duckdb", "numpy", "pandas", "polars", "pyarrow"}
# Each page, and the least number of examples that are found in it.
PAGES = {"docs/guide/python.md": 18, "crates/umbel-py/README.md": 1, "README.md": 1}


def blocks(page):
    """Yields the language, the first line and the text of each block of code."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        yield found[1], text[: found.start()].count("\n") + 1, found[2]


def play(session, name, line):
    """Runs a session, and compares what it prints."""
    # Outputs of more than one line may leave out some of it.
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    test = doctest.DocTestParser().get_doctest(session, {"__name__": "__main__"}, name, name, line)
    report = io.StringIO()
    result = doctest.DocTestRunner(optionflags=options).run(test, out=report.write)
    assert result.failed == 0, report.getvalue()
    assert result.attempted > 0, f"{name}:{line}: there is no >>> in it"


def run_in_shell(session, folder, command):
    """Runs the commands of a session. The tests of the pages compare what they print."""
    lines = [line[2:] for line in session.splitlines() if line.startswith("$ ")]
    script = f'umbel() {{ "{command}" "$@"; }}\n' + "\n".join(lines)
    subprocess.run(["sh", "-ec", script], cwd=folder, check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_the_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples = 0
    for language, line, text in blocks(page):
        if language in ("pycon", "python"):
            for name in OPTIONAL.intersection(IMPORT.findall(text)):
                library(name)
            if language == "pycon":
                play(text, page, line)
            else:
                # Empty lines, so that a traceback has the line of the page.
                program = compile("\n" * line + text, ROOT / page, "exec")
                exec(program, {"__name__": "__main__"})
            examples += 1
        elif language == "console" and page.endswith("/python.md"):
            command = find_command()
            if command is None:
                skip("there is no command umbel")
            run_in_shell(text, tmp_path, command)
    assert examples >= PAGES[page], f"only {examples} examples were found"


def test_the_guide_names_every_class_and_exception():
    text = (ROOT / "docs/guide/python.md").read_text(encoding="utf-8")
    names = set(re.findall(r"\w+", text))
    # `Structure` and `Filter` are the base classes.
    missing = set(umbel.__all__) - names - {"Structure", "Filter", "__version__"}
    assert not missing


def test_the_table_of_exceptions_has_their_base_classes():
    text = (ROOT / "docs/guide/python.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.*Error`.*?) \| (.*?) ?\| .*\|$", text, re.MULTILINE)
    found = set()
    for names, bases in rows:
        names, bases = (re.findall(r"`(\w+)`", cell) for cell in (names, bases))
        for i, name in enumerate(names):
            error = getattr(umbel, name, None)
            if error is None:
                continue
            found.add(name)
            builtin = {base.__name__ for base in error.__mro__ if base.__module__ == "builtins"}
            assert not bases or bases[i if len(bases) > 1 else 0] in builtin, name
    errors = {name for name in umbel.__all__ if name.endswith("Error")}
    assert errors - found == {"Error"}


def test_every_test_that_the_promises_name_exists():
    text = (ROOT / "docs/promises.md").read_text(encoding="utf-8")
    named = 0
    for cell in re.findall(r"[^|;]*\]\(\.\./crates/umbel-py/tests/[^)]*\)", text):
        path = re.search(r"\((\.\./crates/umbel-py/tests/[^)]*)\)", cell)[1]
        source = (ROOT / "docs" / path).read_text(encoding="utf-8")
        for name in re.findall(r"`(test_\w+)`", cell):
            assert re.search(rf"^def {name}\(", source, re.MULTILINE), f"{path} has no {name}"
            named += 1
    assert named > 10, "the promises name no tests of the package"


def test_the_pictures_of_the_guide_are_drawn_by_the_tour():
    tour = (ROOT / "crates/umbel-py/examples/tour.py").read_text(encoding="utf-8")
    guide = (ROOT / "docs/guide/python.md").read_text(encoding="utf-8")
    drawn = re.findall(r'draw\("(.*)"\)', tour)
    assert drawn == re.findall(r"\]\(\.\./(python-.*\.svg)\)", guide)
    # The labels are those of the program, so the pictures are not older than it.
    pictures = [(ROOT / "docs" / name).read_text(encoding="utf-8") for name in drawn]
    assert all("crates/umbel-py/examples/tour.py" in picture for picture in pictures)
    labels = re.findall(r'plt\.(?:[xy]label|title|text)\(.*?"(.*?)"', tour)
    assert len(labels) > 5
    for label in labels:
        assert any(f">{label}<" in picture for picture in pictures), f"draw it again: {label}"


def is_exception(value):
    return inspect.isclass(value) and issubclass(value, BaseException)


def docstrings():
    """Yields the name and the documentation of all that programs see, inherited methods included, which
    the finder of `doctest` does not see in classes written in C."""
    seen = set()
    for name in umbel.__all__:
        value = getattr(umbel, name)
        yield name, value.__doc__
        for base in value.__mro__ if inspect.isclass(value) else ():
            for member, method in vars(base).items() if base.__module__ == "umbel" else ():
                documentation = getattr(method, "__doc__", None)
                if member[0] != "_" and documentation not in seen:
                    seen.add(documentation)
                    yield f"{name}.{member}", documentation


def test_the_examples_of_the_docstrings_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {name: getattr(umbel, name) for name in umbel.__all__} | {"umbel": umbel}
    without = []
    for name, documentation in docstrings():
        if ">>>" not in documentation:
            without.append(name)
            continue
        test = doctest.DocTestParser().get_doctest(documentation, dict(names), name, name, 0)
        report = io.StringIO()
        result = doctest.DocTestRunner().run(test, out=report.write)
        assert result.failed == 0, report.getvalue()
    public = {name: getattr(umbel, name) for name in without if "." not in name and name != "__version__"}
    missing = [name for name, value in public.items() if not is_exception(value)]
    assert missing == [], f"these have no example: {missing}"
    library("polars")
    result = doctest.testmod(importlib.import_module("umbel.polars"))
    assert result.failed == 0 and result.attempted > 10


def test_every_class_and_method_has_a_docstring():
    for name in umbel.__all__:
        value = getattr(umbel, name)
        assert name == "__version__" or value.__doc__, name
        if inspect.isclass(value):
            members = {name: value for name, value in vars(value).items() if name[0] != "_"}
            missing = [name for name, value in members.items() if not value.__doc__]
            assert not missing, (name, missing)
