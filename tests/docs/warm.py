"""A warm process that forks what the documentation runs: loading torch for each command would take most of the time.

    python -IS warm.py SOCKET weakspot … | python -c … | python script.py …

hands over to the process that listens at that socket: words, folder, environment, and the three standard files; it ends
with the same exit status as the command would by itself. Python's code is run with warnings as errors.
"""

import json
import os
import socket
import sys
from pathlib import Path

HEAVY = ["torch._dynamo", "scipy.optimize", "scipy.stats", "sklearn.linear_model", "sklearn.metrics", "pyarrow.parquet"]
"""What weakspot loads where it is first needed, and what takes longest of that."""


def hand_over(path, words):
    """The exit status."""
    order = {"words": words, "folder": str(Path.cwd()), "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        socket.send_fds(connection, [b"order:"], [0, 1, 2])
        connection.sendall(json.dumps(order).encode() + b"\n")
        status = connection.recv(1)
    return status[0] if status else "the process ended without a word"


def serve(path):
    """Fork a process for each order that comes."""
    import signal

    preload()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children
        print("ready", flush=True)
        while True:
            connection, _ = listening.accept()
            _, files, *_ = socket.recv_fds(connection, len(b"order:"), 3)
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                obey(connection, files)
            connection.close()
            for file in files:
                os.close(file)


def preload():
    """What nearly every command loads; not Ray, which keeps for good what it finds when it is first loaded."""
    import pkgutil
    import warnings
    from importlib import import_module

    import weakspot

    rooms = [found.name for found in pkgutil.walk_packages(weakspot.__path__, "weakspot.")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in (*rooms, *HEAVY):
            import_module(name)


def obey(connection, files):
    """Be the process that was asked for, to its end."""
    try:
        with connection.makefile() as told:
            order = json.loads(told.readline())
        for number, file in enumerate(files):
            os.dup2(file, number)
        os.chdir(order["folder"])
        os.environ.clear()
        os.environ.update(order["environment"])
        sys.path[:0] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
        connection.sendall(bytes([status_of(order["words"]) & 255]))
    finally:
        os._exit(0)


def status_of(words):
    """Run it, and end as Python would; the exit status."""
    import atexit
    import threading
    import traceback

    status = 0
    try:
        run_weakspot(words) if words[0] == "weakspot" else run_python(words[1:])
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        print(ended.code, file=sys.stderr) if isinstance(ended.code, str) else None
    except BaseException:
        traceback.print_exc()
        status = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def run_weakspot(words):
    from weakspot.cli import main

    sys.argv = words
    main.run()


def run_python(words):
    import runpy
    import types
    import warnings

    warnings.simplefilter("error")
    if words[0] == "-c":
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        sys.argv, sys.path[:0] = ["-c"], [""]
        exec(compile(words[1], "<string>", "exec"), main.__dict__)
    else:
        sys.argv, sys.path[:0] = words, [str(Path(words[0]).parent)]
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    _, where, *given = sys.argv
    sys.exit(hand_over(where, given) if given else serve(where))
