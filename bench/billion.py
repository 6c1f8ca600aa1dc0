"""Builds a filter through Spark in bounded memory and asks it; see `bench/billion`."""

import argparse
import filecmp
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path


def count(text):
    return int(float(text))


def arguments():
    parser = argparse.ArgumentParser(prog="bench/billion", description=__doc__)
    parser.add_argument("--keys", type=count, default=10**9, help="keys to build from")
    parser.add_argument("--rate", type=float, default=0.01, help="false-positive rate")
    parser.add_argument("--shards", type=int, default=64, help="shards of the filter")
    parser.add_argument("--asked", type=count, default=10**7, help="members, and as many absent keys, to ask for")
    parser.add_argument("--cores", type=int, default=os.cpu_count(), help="tasks that run at a time")
    parser.add_argument("--heap", default="1g", help="heap of the Java process")
    parser.add_argument("--folder", type=Path, help="folder to keep the shards in")
    parser.add_argument("--compare", action="store_true", help="compare with the folder that the shell builds")
    parser.add_argument("--quick", action="store_true", help="ten million keys")
    parser.add_argument("--umbel", default="umbel", help="the command umbel")
    args = parser.parse_args()
    if args.quick:
        args.keys, args.asked, args.shards = min(args.keys, 10**7), min(args.asked, 10**6), min(args.shards, 8)
    return args


class Watch(threading.Thread):
    """Watches the processes that this one has started: their largest memory and their processor time."""

    def __init__(self):
        super().__init__(daemon=True)
        # By name and number of the process: KiB, and seconds since it started.
        self.largest = {}
        self.seconds = {}
        self.together = 0
        self.ended = threading.Event()
        self.look()
        self.before = dict(self.seconds)
        self.start()

    def run(self):
        while not self.ended.wait(0.2):
            self.look()

    def look(self):
        children = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                # The name is in parentheses and may contain any character.
                name, numbers = (folder / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
                status = (folder / "status").read_text()
            except OSError:
                continue  # It has ended.
            memory = dict(line.split(":", 1) for line in status.splitlines() if line.startswith("Vm"))
            if memory:
                numbers = numbers.split()
                seconds = (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")
                kib = [int(memory[field].split()[0]) for field in ("VmHWM", "VmRSS")]
                children.setdefault(int(numbers[1]), []).append((int(folder.name), name, seconds, *kib))
        pids, together = [os.getpid()], 0
        for pid in pids:
            for child, name, seconds, peak, resident in children.get(pid, []):
                pids.append(child)
                together += resident
                self.largest[name, child] = peak
                self.seconds[name, child] = seconds
        self.together = max(self.together, together)

    def end(self):
        """Returns the seconds that the processes have used since the start."""
        self.ended.set()
        self.join()
        self.look()
        return sum(seconds - self.before.get(process, 0) for process, seconds in self.seconds.items())

    def peaks(self):
        """Returns the number of processes of each name, and the largest memory of one."""
        by_name = {}
        for (name, _), peak in self.largest.items():
            by_name.setdefault(name, []).append(peak)
        return {name: (len(peaks), max(peaks)) for name, peaks in sorted(by_name.items())}


def session(args, work):
    """Starts a session that writes nothing outside a folder and listens on 127.0.0.1 only."""
    from pyspark.sql import SparkSession

    os.environ |= {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(work / "local"),
    }
    settings = {
        "spark.driver.memory": args.heap,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={work}",
        "spark.ui.port": "0",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": str(args.shards),
        "spark.sql.warehouse.dir": str(work / "warehouse"),
    }
    return SparkSession.builder.master(f"local[{args.cores}]").config(map=settings).getOrCreate()


def stages(spark):
    """Returns the stages that Spark has completed, as its interface describes them."""
    context = spark.sparkContext
    url = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages?status=complete"
    with urllib.request.urlopen(url) as answer:
        return json.load(answer)


def timed(work):
    """Returns the result of some work and the seconds that it took on the clock."""
    start = time.monotonic()
    result = work()
    return result, time.monotonic() - start


def watched(args, name, work):
    """Prints the time of some work on the clock and on the processor, and returns the latter and the watch."""
    watch = Watch()
    _, took = timed(work)
    used = watch.end()
    print(f"{name}: {took:.1f} s on {args.cores} cores; {per_key(args, used)}")
    return used, watch


def per_key(args, seconds):
    return f"{seconds:.1f} s of processor time, {seconds / args.keys * 1e9:.0f} ns per key"


def check_count(name, found, asked, rate):
    """Prints a count of wrong answers, and whether chance explains it: five standard deviations."""
    expected = asked * rate
    most = expected + 5 * math.sqrt(expected) + 5
    print(f"{name}: {found} of {asked}, expected {expected:.0f} at most, {'as planned' if found <= most else 'TOO MANY'}")
    return found <= most


def keys_as_lines(umbel, first, number, *command):
    """Passes numbers as lines to the command, and returns its output."""
    numbers = subprocess.Popen(["seq", str(first), str(first + number - 1)], stdout=subprocess.PIPE)
    done = subprocess.run([umbel, *command], stdin=numbers.stdout, stdout=subprocess.PIPE, check=False)
    numbers.stdout.close()
    numbers.wait()
    if done.returncode > 1:
        sys.exit(f"umbel {command[0]} failed")
    return done.stdout


def build(args, folder, work):
    import umbel.spark

    spark = session(args, work)

    def rows(number):
        return spark.range(number).selectExpr("cast(id as string) as id")

    def read(number):
        # The same rows to the same processes of Python, which do nothing with them.
        rows(number).mapInArrow(Nothing(), "n int").collect()

    # Java compiles its code while it runs for the first time.
    read(args.keys // 10)
    reading, _ = watched(args, "Spark without a filter", lambda: read(args.keys))
    before = {stage["stageId"] for stage in stages(spark)}
    used, watch = watched(
        args,
        "build_sharded",
        lambda: umbel.spark.build_sharded(
            rows(args.keys), "id", n=args.keys, p=args.rate, shards=args.shards, path=folder
        ),
    )
    print(f"the filter alone: {per_key(args, used - reading)}")
    own = [stage for stage in stages(spark) if stage["stageId"] not in before]
    shuffled = sum(stage["shuffleWriteBytes"] for stage in own)
    print(f"shuffled: {shuffled} bytes, {shuffled / args.keys:.3f} per key, by {sum(s['numTasks'] for s in own)} tasks")
    for name, (processes, peak) in watch.peaks().items():
        print(f"memory of {name}: at most {peak / 1024:.0f} MiB in each of {processes} processes")
    print(f"memory of all of them together: at most {watch.together / 1024:.0f} MiB")
    spark.stop()


class Nothing:
    """Reads the rows and returns none."""

    def __call__(self, batches):
        for _ in batches:
            pass
        return iter(())


def ask(args, folder):
    """Asks for members and absent keys from Python and from the shell."""
    import pyarrow as pa
    import umbel

    seen = umbel.open(folder)
    ok = True
    wrong = 0
    step = 10**6
    took = 0.0
    for start in range(0, args.asked, step):
        size = min(step, args.asked - start)
        # Members that are spread over all that were built from.
        members = pa.array([str(i * (args.keys // args.asked)) for i in range(start, start + size)])
        absent = pa.array([str(args.keys + i) for i in range(start, start + size)])
        if not all(seen.contains_many(members)):
            print("MEMBERS ARE MISSING")
            ok = False
        answers, seconds = timed(lambda absent=absent: seen.contains_many(absent))
        took += seconds
        wrong += sum(answers)
    print(f"asked from Python: {took / args.asked * 1e9:.1f} ns per absent key")
    ok &= check_count("absent keys that Python finds", wrong, args.asked, args.rate)
    lines, seconds = timed(lambda: keys_as_lines(args.umbel, args.keys, args.asked, "check", str(folder)))
    print(f"asked from the shell: {seconds / args.asked * 1e9:.1f} ns per absent key")
    ok &= check_count("absent keys that the shell finds", lines.count(b"\n"), args.asked, args.rate)
    if lines.count(b"\n") != wrong:
        print("PYTHON AND THE SHELL DIFFER")
        ok = False
    return ok


def compare(args, folder, work):
    """Compares the folder with the one that the shell builds of the same keys."""
    other = work / "shell"
    command = ["build", "--shards", args.shards, "-n", args.keys, "-p", args.rate, "-o", other]
    _, seconds = timed(lambda: keys_as_lines(args.umbel, 0, args.keys, *map(str, command)))
    names = sorted(os.listdir(folder))
    same, differ, errors = filecmp.cmpfiles(folder, other, names, shallow=False)
    equal = names == sorted(os.listdir(other)) and len(same) == args.shards + 1 and not differ and not errors
    print(f"umbel build --shards: {seconds:.1f} s; the files are {'equal' if equal else 'DIFFERENT'}")
    return equal


def main():
    args = arguments()
    sys.stdout.reconfigure(line_buffering=True)
    with tempfile.TemporaryDirectory(prefix="billion-") as name:
        work = Path(name)
        folder = (args.folder or work / "shards").resolve()
        build(args, folder, work)
        size = sum(file.stat().st_size for file in folder.iterdir())
        print(f"folder: {size} bytes, {8 * size / args.keys:.2f} bits per key")
        ok = ask(args, folder)
        if args.compare:
            ok &= compare(args, folder, work)
        shutil.rmtree(work / "local", ignore_errors=True)
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
