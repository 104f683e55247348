"""Writes the generated files of the package: messages, dataclasses and the blocking client.

    python build_support/generate.py      in a source tree of Berth; needs protoc, or grpcio-tools

An sdist contains the files already and has no protos: nothing happens there.
"""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
PACKAGE = HERE.parent / "src" / "berth"
TREE = HERE.parents[2]
PROTO = TREE / "proto"
# The services of the public API; the files that they import follow. Agents have another one.
FILES = ["access", "audit", "cluster", "explain", "history", "hypernode", "job", "node", "priority_class", "queue", "watch"]


def has_protos():
    return (PROTO / "berth" / "v1" / "job.proto").is_file()


def write(path, text):
    """Leaves a file that is current alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def version():
    found = re.search(r"project\(berth VERSION ([0-9.]+)", (TREE / "CMakeLists.txt").read_text(encoding="utf-8"))
    if found is None:
        raise RuntimeError(f"{TREE}/CMakeLists.txt does not name the version")
    return found.group(1)


def run():
    if not has_protos():
        return
    import facade
    import messages
    import model
    import protos
    files = protos.compile_files(PROTO, FILES)
    for path, text in messages.modules(files).items():
        write(PACKAGE / path, text)
    protos.write_types(PROTO, files, PACKAGE.parent)
    write(PACKAGE / "model.py", model.module(files))
    sources = ((PACKAGE / name).read_text(encoding="utf-8") for name in ("aio.py", "_cluster_calls.py", "_history_calls.py"))
    write(PACKAGE / "client.py", facade.module(*sources))
    write(PACKAGE / "_version.py", f'"""The version of the package, that of Berth."""\nVERSION = "{version()}"\n')


if __name__ == "__main__":
    run()
