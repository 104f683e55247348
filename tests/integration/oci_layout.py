"""OCI images for tests, and how crun runs them here."""
import gzip
import hashlib
import io
import json
import os
import pathlib
import platform
import shutil
import tarfile

HYBRID = pathlib.Path("/sys/fs/cgroup/unified/cgroup.procs")
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
OCI = "application/vnd.oci.image."


class Layout:
    """An OCI layout, as `skopeo copy` writes it."""

    def __init__(self, path):
        self.path, self.manifests, self.layers = path, [], []
        (path / "blobs" / "sha256").mkdir(parents=True)
        (path / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')

    def blob(self, media_type, data):
        digest = hashlib.sha256(data).hexdigest()
        (self.path / "blobs" / "sha256" / digest).write_bytes(data)
        return {"mediaType": OCI + media_type, "digest": f"sha256:{digest}", "size": len(data)}

    @staticmethod
    def tar(name, data):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as archive:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
        return out.getvalue()

    def add(self, tag, config, busybox, more_layers=(), links=None, owned=None, **files):
        """`more_layers`: the contents of one file each, in a layer of its own. `links`: by their paths. `owned`: text, uid
        and mode by path."""
        tar = io.BytesIO()
        with tarfile.open(fileobj=tar, mode="w") as archive:
            archive.add(busybox, "bin/busybox")
            for name in ("sh", "id", "sleep", "pwd", "touch", "cat", "ls", "env"):
                link = tarfile.TarInfo(f"bin/{name}")
                link.type, link.linkname = tarfile.SYMTYPE, "busybox"
                archive.addfile(link)
            for name, target in (links or {}).items():
                link = tarfile.TarInfo(name)
                link.type, link.linkname = tarfile.SYMTYPE, target
                archive.addfile(link)
            for name, (text, uid, mode) in (owned or {}).items():
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode, entry.uid = len(text), mode, uid
                archive.addfile(entry, io.BytesIO(text.encode()))
            for name, text in files.items():
                entry = tarfile.TarInfo(f"data/{name}")
                entry.size, entry.mode = len(text), 0o644
                archive.addfile(entry, io.BytesIO(text.encode()))
        layers, sums = [], []
        for text in [tar.getvalue(), *(self.tar(f"data/layer{i}", data) for i, data in enumerate(more_layers))]:
            layers.append(self.blob("layer.v1.tar+gzip", gzip.compress(text, 1)))
            sums.append("sha256:" + hashlib.sha256(text).hexdigest())
        self.layers += layers
        whole = {"architecture": ARCHITECTURE, "os": "linux", "config": config,
                 "rootfs": {"type": "layers", "diff_ids": sums}}
        manifest = {"schemaVersion": 2, "config": self.blob("config.v1+json", json.dumps(whole).encode()),
                    "layers": layers}
        entry = self.blob("manifest.v1+json", json.dumps(manifest).encode())
        self.manifests.append({**entry, "annotations": {"org.opencontainers.image.ref.name": tag}})
        (self.path / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": self.manifests}))
        return "sha256-" + entry["digest"].removeprefix("sha256:")


def require_images(test, *programs):
    """Skips the test where tasks cannot run in images, or a program is missing. Returns a static busybox."""
    busybox = shutil.which("busybox")
    needs = [("root", os.getuid() == 0), ("a static busybox", busybox)]
    for need, there in [*needs, *((name, shutil.which(name)) for name in ("crun", "umoci", *programs))]:
        if not there:
            test.skipTest(f"needs {need}")
    return busybox


def crun_here(directory):
    """Debian's crun does not run with mounted hierarchies of both versions, unless one is hidden from it."""
    if not HYBRID.exists():
        return "/usr/bin/crun"
    path = directory / "crun-here"
    path.write_text("#!/bin/sh\nexec unshare -m sh -c 'umount /sys/fs/cgroup/unified; exec /usr/bin/crun \"$@\"' "
                    "crun \"$@\"\n")
    path.chmod(0o755)
    return str(path)
