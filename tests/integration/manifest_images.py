"""Stand-ins for the images that the manifests of tests/manifests name: an image store in which every image is the same
small layout. Its programs are busybox, and scripts that say how they were called in place of python, mpirun and others.
"""
import gzip
import hashlib
import io
import json
import pathlib
import re
import subprocess
import tarfile

from oci_layout import ARCHITECTURE, Layout

STAND_INS = ("python", "python3", "mpirun", "torchrun", "horovodrun", "perl", "spark-submit", "nginx", "pause", "image-command",
             "mpiexec", "ray", "curl")
STAND_IN = b'#!/bin/sh\necho "stand-in: $0 $*"\n'
BASH = b'#!/bin/sh\nexec sh "$@"\n'
IMAGE = re.compile(r'\bimage:\s*"?([^\s",}\]]+)')


def images_of(text):
    """Names of images in a manifest, as (repository, tag)."""
    for name in IMAGE.findall(text):
        repository, colon, tag = name.rpartition(":")
        yield (repository, tag) if colon and "/" not in tag else (name, "latest")


def layer(busybox):
    out = io.BytesIO()
    applets = subprocess.run([busybox, "--list"], check=True, capture_output=True, text=True).stdout.split()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.add(busybox, "bin/busybox")
        for name in sorted({*applets} - {"busybox", "bash", *STAND_INS}):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(link)
        programs = {f"bin/{name}": STAND_IN for name in STAND_INS}
        for name, text in {"bin/bash": BASH, "usr/sbin/sshd": STAND_IN, **programs}.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text), 0o755
            archive.addfile(entry, io.BytesIO(text))
    return out.getvalue()


def make_store(store, busybox, texts):
    """OCI layouts below `store` for all images of the manifests."""
    content = layer(busybox)
    tags = {}
    for repository, tag in {image for text in texts for image in images_of(text)}:
        tags.setdefault(repository, []).append(tag)
    for repository, names in tags.items():
        layout = Layout(pathlib.Path(store) / repository)
        blob = layout.blob("layer.v1.tar+gzip", gzip.compress(content, 1, mtime=0))
        configuration = {"architecture": ARCHITECTURE, "os": "linux",
                         "config": {"Env": ["PATH=/bin"], "Cmd": ["/bin/image-command"]},
                         "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(content).hexdigest()]}}
        manifest = {"schemaVersion": 2, "config": layout.blob("config.v1+json", json.dumps(configuration).encode()),
                    "layers": [blob]}
        entry = layout.blob("manifest.v1+json", json.dumps(manifest).encode())
        layout.manifests = [{**entry, "annotations": {"org.opencontainers.image.ref.name": tag}} for tag in names]
        (layout.path / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": layout.manifests}))
