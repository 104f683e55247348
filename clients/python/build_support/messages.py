"""Modules of messages, in the form that protoc 3.20 writes.

All later versions of the protobuf package load this form. What protoc itself writes from version 5 on demands a package
that is not older than protoc.
"""
import textwrap

from google.protobuf import descriptor_pb2

STATUS = "google/rpc/status.proto"


def module_of(proto):
    return proto.removesuffix(".proto").replace("/", ".") + "_pb2"


def literal(data):
    """The bytes in lines of 100 characters."""
    lines = textwrap.wrap(data.hex(), 100)
    return "bytes.fromhex(\n" + "\n".join(f'    "{line}"' for line in lines) + "\n)"


def serialized(file):
    bare = descriptor_pb2.FileDescriptorProto()
    bare.CopyFrom(file)
    bare.ClearField("source_code_info")
    return bare.SerializeToString(deterministic=True)


def message_module(file):
    lines = [f'"""Messages of {file.name}, written by the build."""', "# flake8: noqa",
             "from google.protobuf import descriptor_pool as _descriptor_pool",
             "from google.protobuf.internal import builder as _builder", ""]
    for index, name in enumerate(file.dependency):
        lines.append(f"import {module_of(name)} as _import_{index}  # registers what this file uses")
    lines += [f"from {module_of(file.dependency[index])} import *" for index in file.public_dependency]
    lines += ["", f"DESCRIPTOR = _descriptor_pool.Default().AddSerializedFile({literal(serialized(file))})", "",
              "_builder.BuildMessageAndEnumDescriptors(DESCRIPTOR, globals())",
              f'_builder.BuildTopDescriptorsAndMessages(DESCRIPTOR, "{module_of(file.name)}", globals())', ""]
    return "\n".join(lines)


def modules(files):
    """Path below the package -> text."""
    made = {"v1/__init__.py": '"""The messages of Berth\'s API, version 1."""\n'}
    for file in files:
        if file.name.startswith("berth/v1/"):
            made[f"v1/{file.name.rsplit('/', 1)[1].removesuffix('.proto')}_pb2.py"] = message_module(file)
        elif file.name == STATUS:
            made["_rpc_status.py"] = (f'"""The descriptor of {STATUS}, written by the build."""\n\n'
                                      f"SERIALIZED = {literal(serialized(file))}\n")
    return made
