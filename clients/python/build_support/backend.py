"""Build backend: setuptools, after the generated files were written (generate.py)."""
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import generate
from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403


def _needs():
    """An sdist has the generated files already; a source tree needs a protoc, if the machine has none."""
    return ["grpcio-tools>=1.51"] if generate.has_protos() and shutil.which("protoc") is None else []


def get_requires_for_build_wheel(config_settings=None):
    return [*build_meta.get_requires_for_build_wheel(config_settings), *_needs()]


def get_requires_for_build_sdist(config_settings=None):
    return [*build_meta.get_requires_for_build_sdist(config_settings), *_needs()]


def get_requires_for_build_editable(config_settings=None):
    return [*build_meta.get_requires_for_build_editable(config_settings), *_needs()]


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    generate.run()
    return build_meta.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def prepare_metadata_for_build_editable(metadata_directory, config_settings=None):
    generate.run()
    return build_meta.prepare_metadata_for_build_editable(metadata_directory, config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    generate.run()
    return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    generate.run()
    return build_meta.build_editable(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory, config_settings=None):
    generate.run()
    return build_meta.build_sdist(sdist_directory, config_settings)
