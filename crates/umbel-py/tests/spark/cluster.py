"""Sessions of Spark for the tests: small, on 127.0.0.1, and silent."""

import os
import sys
from pathlib import Path


def settings(folder, **more):
    """The settings of a session that writes nothing outside a folder."""
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.cores.max": "2",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={folder}",
        "spark.executor.extraJavaOptions": f"-Djava.io.tmpdir={folder}",
    } | more


def environment(folder):
    """The variables of a process that starts a session."""
    return {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_WORKER_DIR": str(folder / "work"),
    }


def start(folder, master="local-cluster[2,1,1024]", **more):
    """Starts a session: by default, on a cluster of two executors with a core each."""
    from pyspark.sql import SparkSession

    os.environ.update(environment(folder))
    return SparkSession.builder.master(master).config(map=settings(folder, **more)).getOrCreate()


def bare_python(folder):
    """Makes an environment like this one, but without umbel, and returns its interpreter."""
    import venv

    import pyspark

    venv.create(folder, with_pip=False, symlinks=True)
    [packages] = folder.glob("lib/python*/site-packages")
    for entry in Path(pyspark.__file__).parents[1].iterdir():
        if not entry.name.startswith("umbel") and not (packages / entry.name).exists():
            (packages / entry.name).symlink_to(entry)
    return folder / "bin/python"
