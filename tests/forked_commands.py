"""Run the commands of a shell script in forks of one process that has imported everything, each in tenths of a second.

    with commands_in(folder) as programs:
        subprocess.run(["sh", "script.sh"], env={"PATH": f"{programs}:{PATH}", ...})

`bleurt-repro`, `python` and `torchrun` in that folder hand their words, folder, environment and streams to the server, which
forks a process that runs the same code as the real program does; torchrun's processes are forks, too.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import runpy
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PROGRAMS = ("bleurt-repro", "python", "torchrun")
CLIENT = """#!{python} -SE
import json, os, socket, sys
words = [os.path.basename(sys.argv[0]), *sys.argv[1:]]
server = socket.socket(socket.AF_UNIX)
server.connect({socket_path!r})
request = json.dumps([words, os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(server, [len(request).to_bytes(4, "big")], [0, 1, 2])
server.sendall(request)
sys.exit(int(server.recv(16) or b"1"))
"""
# What the commands import when they need it.
PRELOADED = (
    "PIL.GifImagePlugin", "PIL.JpegImagePlugin", "accelerate", "bert_score", "datasets", "datasets.io.generator",
    "datasets.packaged_modules.generator.generator", "matplotlib.backends.backend_svg", "matplotlib.figure", "pandas",
    "pyarrow.parquet", "pydantic.type_adapter", "sacrebleu.metrics", "scipy.io", "scipy.optimize", "scipy.stats", "sentencepiece",
    "tabulate", "torch.distributed", "transformers", "transformers.models.auto.modeling_auto",
    "transformers.models.bert.modeling_bert", "transformers.models.marian.modeling_marian", "transformers.trainer", "yaml",
)  # fmt: skip
# Not for training, and slow to import.
NOT_PRELOADED = ("bleurt_repro.metric.demo", "bleurt_repro.metric.bleurt_repro", "bleurt_repro.metric.examples")


@contextmanager
def commands_in(folder: Path) -> Iterator[Path]:
    """Start the server, and yield the folder of programs to put on PATH.

    Args:
        folder: to work in; it must not exist.
    """
    programs = folder / "bin"
    programs.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as short:  # the path of a socket may have a hundred letters
        socket_path = Path(short) / "socket"
        for name in PROGRAMS:
            (programs / name).write_text(CLIENT.format(python=sys.executable, socket_path=str(socket_path)))
            (programs / name).chmod(0o755)
        module_file = Path(__file__).resolve()
        command = [sys.executable, "-m", f"tests.{module_file.stem}", str(socket_path)]
        with subprocess.Popen(command, cwd=module_file.parents[1], stdout=subprocess.PIPE) as server:
            assert server.stdout is not None and server.stdout.readline() == b"ready\n"
            try:
                yield programs
            finally:
                server.terminate()


def serve(socket_path: str) -> None:
    """Import everything, then run what is asked for, each command in a fork."""
    for name in PRELOADED:
        importlib.import_module(name)
    import bleurt_repro

    packages = ["metric", "datasets_builders", "training", "hub_cards"]
    roots = [importlib.import_module(f"bleurt_repro.{package}") for package in packages]
    for root in [bleurt_repro, *roots]:
        for module in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
            if not module.name.startswith(NOT_PRELOADED) and not module.name.endswith("__main__"):
                with suppress(ImportError):  # an extra that is not installed
                    importlib.import_module(module.name)
    gc.freeze()  # what is collected in a fork would be copied for it
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(socket_path)
    listener.listen(64)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        caller, _ = listener.accept()
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not os.fork():
            listener.close()
            _answer(caller)
        caller.close()


def _answer(caller: socket.socket) -> None:
    head, streams, _, _ = socket.recv_fds(caller, 4, 3)
    size, request = int.from_bytes(head, "big"), b""
    while len(request) < size:
        request += caller.recv(size - len(request))
    command, folder, environment = json.loads(request)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    code = _exit_code(command)
    caller.sendall(str(code).encode())
    os._exit(0)


def _exit_code(command: list[str]) -> int:
    code: object = 0
    try:
        _run(command)
    except SystemExit as stop:
        code = stop.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    if not isinstance(code, int):
        sys.stderr.write(f"{code}\n")
        sys.stderr.flush()
    return code if isinstance(code, int) else 1


def _run(command: list[str]) -> None:
    """Run a command as the program of its name does."""
    if command[0] == "torchrun":
        count, command = int(command[command.index("--nproc-per-node") + 1]), command[command.index("-m") :]
        _run_together(["python", *command], count)
    elif command[0] == "bleurt-repro":
        sys.argv = command
        from bleurt_repro.cli import main

        main()
    elif command[1] == "-m":
        sys.argv = command[2:]
        sys.modules.pop(command[2], None)  # a new process would not have imported it before it runs it
        runpy.run_module(command[2], run_name="__main__", alter_sys=True)
    else:
        sys.argv = command[1:]
        sys.path.insert(0, str(Path(command[1]).parent))
        runpy.run_path(command[1], run_name="__main__")


def _run_together(command: list[str], count: int) -> None:
    """Run a command in several processes, which find each other as torchrun's do."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children = []
    for rank in range(count):
        child = os.fork()
        if not child:
            os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(count))
            os.environ.update(LOCAL_WORLD_SIZE=str(count), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
            os._exit(_exit_code(command))
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    sys.exit(max(map(abs, codes)))


if __name__ == "__main__":
    serve(sys.argv[1])
