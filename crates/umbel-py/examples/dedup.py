"""Removes repeated lines from a corpus of documents, and counts the lines that are lost by mistake.

    python crates/umbel-py/examples/dedup.py /usr/share/doc 'copyright*'

writes the files of that name below a folder to a corpus in JSONL, one document per row, and removes every
line that came before, in this or another document. Then it compares the result with an exact set.
"""

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from umbel import Bloom, Distinct


def write_corpus(folder: Path, pattern: str, corpus: Path) -> None:
    """Writes the files below a folder as a corpus: one JSON object per row."""
    with corpus.open("w", encoding="utf-8") as file:
        for path in sorted(folder.rglob(pattern)):
            if path.is_file() and not path.is_symlink():
                text = path.read_bytes().decode(errors="replace")
                file.write(json.dumps({"name": str(path), "text": text}) + "\n")


def documents(corpus: Path) -> Iterator[dict[str, str]]:
    """Yields the documents of a corpus, one at a time."""
    with corpus.open(encoding="utf-8") as file:
        for row in file:
            yield json.loads(row)


def deduplicate(corpus: Path, output: Path, rate: float) -> Bloom:
    """Writes a corpus without its repeated lines, and returns the filter of the lines.

    Empty lines stay, since they separate paragraphs.
    """
    # The first pass counts the distinct lines in 16 KiB, so that the filter is no larger than it has to
    # be. Three standard errors more than the estimate are enough for all but one corpus in 700.
    lines = Distinct(0.01)
    for document in documents(corpus):
        lines.update(document["text"].splitlines())
    seen = Bloom(round(lines.count() * 1.03) + 1, rate)
    with output.open("w", encoding="utf-8") as file:
        for document in documents(corpus):
            new = [line for line in document["text"].splitlines() if not line or seen.add(line)]
            file.write(json.dumps(document | {"text": "\n".join(new)}) + "\n")
    return seen


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder, pattern = Path(sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory() as scratch:
        corpus, output = Path(scratch, "corpus.jsonl"), Path(scratch, "deduplicated.jsonl")
        write_corpus(folder, pattern, corpus)
        lines = [line for document in documents(corpus) for line in document["text"].splitlines() if line]
        exact = set(lines)
        size = sys.getsizeof(exact) + sum(map(sys.getsizeof, exact))
        print(f"{corpus.stat().st_size / 1e6:.1f} MB, {len(lines):,} lines, {len(exact):,} distinct")
        print(f"exact set: {size / 1024:,.0f} KiB")
        for rate in (0.01, 0.0001, 0.000001):
            start = time.process_time()
            seen = deduplicate(corpus, output, rate)
            seconds = time.process_time() - start
            kept = [line for document in documents(output) for line in document["text"].splitlines() if line]
            assert len(set(kept)) == len(kept), "a line is kept once"
            lost = len(exact) - len(kept)
            filter_size = f"{seen.stats()['bytes'] / 1024:,.0f} KiB"
            print(f"filter at a rate of {rate:g}: {filter_size}, {lost} lines lost, {seconds:.1f} s")


if __name__ == "__main__":
    main()
