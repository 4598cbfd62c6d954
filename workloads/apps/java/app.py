"""A Java program: objects in a heap that a collector walks."""

from ..app import APPS, App, Debian, Outcome, Run, run_reporting

# Records, and operations on them.
WORK = {"small": (400_000, 2_000_000)}
# One collector with one thread: how much memory is used depends on the program alone.
OPTIONS = ["-XX:+UseSerialGC", "-Xms160m", "-Xmx160m", "-Xshare:auto"]


def _run(run: Run) -> Outcome:
    program = APPS / "java" / "Records.java"
    return run_reporting(run, ["java", *OPTIONS, program, *map(str, WORK[run.size])])


PACKAGE = Debian("default-jdk-headless", "GPL-2.0 with Classpath-exception-2.0", "javac")
JAVA = [App("java-map", "records in a hash map of Java", PACKAGE, _run)]
