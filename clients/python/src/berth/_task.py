"""Runs in a task: calls a pickled function, and leaves its result. Needs cloudpickle and nothing else of the package.

    python task.py VERSION DIRECTORY           calls and results are files in a shared directory
    python -c "..." VERSION NONCE PAYLOAD      the call is in the arguments, the result is the last line of standard output

VERSION is that of the Python that pickled the function, "3.11": code of another one may crash.

The index of the call is BERTH_ARRAY_INDEX. A result is a pickle of (True, value) or (False, exception, traceback)
for each element of the chunk; (None, text) if it ended its own process. A function that raises ends the task with exit code 70.
With BERTH_APART, each element has processes of its own, at most so many, until one does not crash.
"""
import os
import pickle
import sys

# The start of the process is most of the time of a short call, so what only some calls need is imported there.
RAISED, SAVED = 70, 75


def dumps(value):
    """By reference where that is possible: cloudpickle takes longer to import than Python to start."""
    try:
        return pickle.dumps(value)
    except Exception:
        import cloudpickle
        return cloudpickle.dumps(value)


def shown(error):
    """The exception as it can be pickled, with its traceback."""
    import traceback
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    error.__traceback__ = None
    try:
        pickle.loads(dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__qualname__}: {error}")
    return False, error, text


def call(function, arguments):
    """The results of a chunk, each (True, value) or (False, exception, traceback), pickled."""
    results = []
    for args, kwargs in arguments:
        try:
            results.append(dumps((True, function(*args, **kwargs), "")))
        except BaseException as error:
            if isinstance(error, SystemExit) and error.code == SAVED:
                raise
            results.append(dumps(shown(error)))
    return results


def call_apart(function, arguments):
    """As call, with a process of its own for each call: a fork of this one, which has loaded the function and run nothing."""
    results, attempts = [], int(os.environ["BERTH_APART"])
    for one in arguments:
        for _ in range(attempts):
            data, how = fork(function, one)
            if data is not None:
                break
        results.append(data if data is not None else pickle.dumps((None, f"the call ended its process with {how}", "")))
    return results


def fork(function, one):
    """The result of one call, and nothing; or None if it ended its process, and how."""
    out = os.memfd_create("result")
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            seed_again()
            with open(out, "wb", closefd=False) as file:
                file.write(call(function, [one])[0])
            import atexit
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
            code = 0
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    os.lseek(out, 0, os.SEEK_SET)
    with open(out, "rb") as file:
        data = file.read()
    code = os.waitstatus_to_exitcode(status)
    if code:
        return None, f"signal {-code}" if code < 0 else f"exit code {code}"
    return data, ""


def seed_again():
    """Python's generator has a new seed after a fork; these have not."""
    for module, seed in (("numpy.random", "seed"), ("torch", "seed")):
        if module in sys.modules:
            getattr(sys.modules[module], seed)()


def write(path, data):
    """Replaces a file as a whole."""
    following = f"{path}.{os.getpid()}"
    with open(following, "wb") as out:
        out.write(data)
    os.replace(following, path)


class Directory:
    """Calls and results in files."""

    def __init__(self, path, index):
        self.path, self.index = path, index

    def at(self, name):
        return os.path.join(self.path, name)

    def read(self):
        """(function, arguments): the checkpoint's, or those of the beginning."""
        try:
            with open(self.at(f"{self.index}.call"), "rb") as saved:
                return pickle.load(saved)
        except FileNotFoundError:
            pass
        with open(self.at("function"), "rb") as source:
            function = pickle.load(source)
        with open(self.at("calls"), "rb") as source:
            source.seek(8 * self.index)
            begin, end = (int.from_bytes(source.read(8), "little") for _ in range(2))
            source.seek(begin)
            return function, pickle.loads(source.read(end - begin))

    def save(self, function, arguments):
        """What the next attempt calls."""
        import cloudpickle
        write(self.at(f"{self.index}.call"), cloudpickle.dumps((function, arguments)))

    def result(self, results):
        write(self.at(f"{self.index}.result"), pickle.dumps(results))


class Arguments:
    """The call in the command line, the result in the output."""

    def __init__(self, nonce, payload, index):
        self.nonce, self.payload, self.index = nonce, payload, index

    def read(self):
        import base64
        import zlib
        function, calls = pickle.loads(zlib.decompress(base64.b64decode(self.payload)))
        return pickle.loads(function), pickle.loads(calls[self.index])

    def result(self, results):
        import base64
        import zlib
        sys.stdout.flush()
        line = base64.b64encode(zlib.compress(pickle.dumps(results), 1))
        os.write(1, b"\n")
        line = self.nonce.encode() + b" " + line + b"\n"
        while line:
            line = line[os.write(1, line):]


def handle_checkpoint(place, function, arguments):
    """On SIGUSR1: function.checkpoint tells what the next attempt calls."""
    import signal

    def save(number, frame):
        args, kwargs = arguments[0]
        again = function.checkpoint(*args, **kwargs)
        if again is not None:
            place.save(again.function, [(again.args, again.kwargs)])
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(SAVED)

    signal.signal(signal.SIGUSR1, save)


def check_version(version):
    """The exception if the function is of another Python."""
    mine = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if version == mine:
        return None
    return RuntimeError(f"the function was pickled by Python {version}, and the task runs Python {mine} ({sys.executable}): "
                        "choose an interpreter of the same version (Executor(python=...))")


def main(arguments):
    index = int(os.environ.get("BERTH_ARRAY_INDEX", "0"))
    place = Directory(arguments[1], index) if len(arguments) == 2 else Arguments(arguments[1], arguments[2], index)
    problem = check_version(arguments[0])
    if problem is not None:
        place.result([pickle.dumps((False, problem, f"RuntimeError: {problem}\n"))])
        sys.exit(RAISED)
    if os.environ.get("BERTH_CHECKPOINTS"):
        import signal
        signal.signal(signal.SIGUSR1, lambda number, frame: os._exit(SAVED))  # nothing has been done yet
    try:
        function, calls = place.read()
    except Exception as error:  # a module that the node does not have
        place.result([pickle.dumps(shown(error))])
        sys.exit(RAISED)
    if os.environ.get("BERTH_CHECKPOINTS"):
        handle_checkpoint(place, function, calls)
    results = (call_apart if os.environ.get("BERTH_APART") else call)(function, calls)
    place.result(results)
    sys.exit(RAISED if any(not pickle.loads(one)[0] for one in results) else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
