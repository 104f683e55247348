"""Runs protoc."""
import importlib.util
import pathlib
import shutil
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2


def protoc():
    """The command: that of the machine, else that of grpcio-tools."""
    if shutil.which("protoc"):
        return ["protoc"]
    if importlib.util.find_spec("grpc_tools"):
        include = pathlib.Path(importlib.util.find_spec("grpc_tools").origin).parent / "_proto"
        return [sys.executable, "-m", "grpc_tools.protoc", f"-I{include}"]
    raise RuntimeError("neither protoc nor grpcio-tools is installed: install protobuf-compiler, or pip install grpcio-tools")


def names(files):
    return [f"berth/v1/{name}.proto" for name in files]


def compile_files(root, files):
    """The descriptors of these files and of all that they import, with comments, each after its imports."""
    with tempfile.TemporaryDirectory() as place:
        out = pathlib.Path(place) / "set"
        subprocess.run([*protoc(), f"-I{root}", "--include_imports", "--include_source_info",
                        f"--descriptor_set_out={out}", *names(files), "google/rpc/status.proto"], check=True)
        return descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file


def write_types(root, files, out):
    """The .pyi of the messages of compile_files, in `out`/berth/v1."""
    of_berth = [file.name for file in files if file.name.startswith("berth/v1/")]
    subprocess.run([*protoc(), f"-I{root}", f"--pyi_out={out}", *of_berth], check=True)
