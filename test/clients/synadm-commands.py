"""
Runs synadm with the arguments of each line on the standard input, a list in JSON, and writes its exit code and output
as a line of JSON. Each command is a process of its own, but the modules of synadm are loaded once for all of them.
"""

import json
import os
import sys
from importlib.metadata import distribution
from tempfile import TemporaryFile

synadm = next(entry for entry in distribution("synadm").entry_points if entry.name == "synadm").load()


def run(arguments, stdout, stderr):
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(stdout.fileno(), 1)
    os.dup2(stderr.fileno(), 2)
    sys.argv = ["synadm", *arguments]
    sys.exit(synadm())


def text(file):
    file.seek(0)
    return file.read().decode()


for line in sys.stdin:
    with TemporaryFile() as stdout, TemporaryFile() as stderr:
        process = os.fork()
        if process == 0:
            run(json.loads(line), stdout, stderr)
        _, status = os.waitpid(process, 0)
        result = {"code": os.waitstatus_to_exitcode(status), "stdout": text(stdout), "stderr": text(stderr)}
    print(json.dumps(result), flush=True)
