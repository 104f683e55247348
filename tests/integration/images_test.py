#!/usr/bin/env python3
"""Container images from the Debian packages, deploy/compose on a real podman, and the Helm chart: validated against the
published schemas of Kubernetes, and its pod run by podman, with its own commands, users, files and rights.

    tests/integration/images_test.py           as root; some ten minutes, and the network

deploy/test leaves it out unless BERTH_ROOT_TESTS=1. Needs deploy/install-deps --images and, for the chart, Go. What
needs a cluster of Kubernetes (services, disks, several pods) is not tested.
"""
import json
import os
import pathlib
import resource
import shutil
import subprocess
import tempfile
import time
import unittest

import yaml

from berth_api import BUILD
from berth_harness import BIN, SANITIZED, SOURCE, free_port, wait_until
from packages_root_test import asked
from packages_test import build
from tls_test import Authority

HELM = "helm.sh/helm/v3/cmd/helm@v3.16.4"
PYTHON_TOOLS = ["podman-compose==1.5.0", "kubernetes-validate==1.37.0"]
KUBERNETES = ("1.25", "1.29", "1.33", "1.37")
VERSION = "0.0.3"
TOOLS = pathlib.Path(BUILD) / "image-tools"  # kept
CHART = SOURCE / "deploy" / "helm" / "berth"
PLAIN = {"image": {"repository": "localhost/berth-server", "tag": VERSION}, "berthd": {"tlsSecret": "berthd-tls"}}
SEVERAL = {**PLAIN, "berthd": {"tlsSecret": "berthd-tls", "replicas": 2, "config": {"lease": "20s"}, "priorityClassName": "high",
                               "nodeSelector": {"disk": "fast"}, "tolerations": [{"key": "control", "operator": "Exists"}]},
           "ha": {"enabled": True, "etcd": ["etcd-0:2379", "etcd-1:2379"], "etcdSecret": "etcd-tls"}, "metrics": {"enabled": True},
           "service": {"type": "LoadBalancer", "loadBalancerSourceRanges": ["10.0.0.0/8"]},
           "web": {"enabled": True, "url": "https://berth.example", "tlsSecret": "web-tls", "certificatesSecret": "users",
                   "config": {"authd": {"url": "https://login.example:7080"}}}}


def run(*command, check=True, timeout=900, **options):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=timeout, **options)
    if check and result.returncode != 0:
        raise AssertionError(f"{command}: {result.returncode}: {result.stdout[-3000:]}{result.stderr[-3000:]}")
    return result


def make_tools():
    """Of registries, in pinned versions."""
    wanted = "\n".join([HELM, *PYTHON_TOOLS])
    mark = TOOLS / "versions"
    if mark.exists() and mark.read_text() == wanted:
        return
    shutil.rmtree(TOOLS, ignore_errors=True)
    run("/usr/bin/python3", "-m", "venv", TOOLS)
    run(TOOLS / "bin/pip", "install", "--quiet", "--disable-pip-version-check", *PYTHON_TOOLS)
    run("go", "install", HELM, env={**os.environ, "GOBIN": str(TOOLS / "bin")})
    mark.write_text(wanted)


def template(values, check=True):
    return run(TOOLS / "bin/helm", "template", "blue", CHART, "--namespace", "berth", "--kube-version", "1.33.0", "--values", "-",
               input=json.dumps(values), check=check)


@unittest.skipUnless(asked(__name__), "takes minutes and downloads a Debian; BERTH_ROOT_TESTS=1")
@unittest.skipIf(SANITIZED, "images are made of a release build")
class Images(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        missing = [tool for tool in ("buildah", "podman", "mmdebstrap", "go") if shutil.which(tool) is None]
        if os.getuid() != 0 or missing:
            raise AssertionError(f"run this as root; not installed: {missing}: deploy/install-deps --images")
        make_tools()
        cls.home = pathlib.Path(tempfile.mkdtemp(prefix="berth-images-"))
        cls.addClassCleanup(shutil.rmtree, cls.home, True)
        cls.own_containers()
        assert build(cls.home / "packages", VERSION).returncode == 0
        run(SOURCE / "deploy/images/build", "--packages", cls.home / "packages", "--out", cls.home / "images", timeout=1800)
        for image in ("server", "agent"):
            cls.podman("load", "--quiet", "--input", cls.home / "images" / f"berth-{image}.tar")

    @classmethod
    def own_containers(cls):
        """A store of images of its own, and limits that this process may give."""
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        settings = f'[containers]\ndefault_ulimits = ["nofile={files}:{files}", "nproc=4096:4096"]\n'
        if not pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists():
            settings += '[engine]\nruntime = "/usr/sbin/runc"\n'  # Debian's crun does not take both versions of control groups
        (cls.home / "containers.conf").write_text(settings)
        (cls.home / "storage.conf").write_text(
            f'[storage]\ndriver = "overlay"\ngraphroot = "{cls.home}/storage"\nrunroot = "{cls.home}/run"\n')
        cls.environment = {**os.environ, "CONTAINERS_CONF": str(cls.home / "containers.conf"),
                           "CONTAINERS_STORAGE_CONF": str(cls.home / "storage.conf")}
        cls.addClassCleanup(cls.podman, "system", "prune", "--all", "--force", "--volumes", check=False)
        cls.addClassCleanup(cls.podman, "rm", "--all", "--force", "--time", "1", check=False)

    @classmethod
    def podman(cls, *arguments, check=True):
        return run("podman", *arguments, check=check, env=cls.environment)

    def test_images_hold_the_programs_and_say_who_they_are(self):
        for image, programs in {"server": ["berthd", "berth-web", "berth-authd", "berth"], "agent": ["berth-agent"]}.items():
            name = f"localhost/berth-{image}:{VERSION}"
            config = json.loads(self.podman("inspect", name).stdout)[0]
            self.assertEqual(config["Config"].get("User", ""), "7070:7070" if image == "server" else "")
            self.assertEqual(config["Labels"]["org.opencontainers.image.version"], VERSION)
            for program in programs:
                said = self.podman("run", "--rm", "--network=none", "--read-only", "--cap-drop=all", name, program, "--version").stdout
                self.assertRegex(said, r"^(berthd )?\d+\.\d+\.\d+\n$")
            # Nothing that only the build needed.
            self.podman("run", "--rm", "--network=none", name, "sh", "-c", 'test ! -e /packages && test -z "$(ls /var/lib/apt/lists)"')

    # ---- deploy/compose

    def compose(self, *arguments):
        return run(TOOLS / "bin/podman-compose", "--file", SOURCE / "deploy/compose/compose.yaml", *arguments,
                   env={**self.environment, **self.ports, "BERTH_VERSION": VERSION})

    def test_compose_runs_jobs_and_keeps_them(self):
        self.ports = {name: str(free_port()) for name in ("BERTH_PORT", "BERTH_HTTP_PORT", "BERTH_WEB_PORT")}
        self.compose("up", "-d")
        self.addCleanup(self.compose, "down", "--volumes")
        server = f"127.0.0.1:{self.ports['BERTH_PORT']}"

        def berth(*arguments, check=True):
            return run(BIN / "berth", *arguments, check=check, env={**os.environ, "BERTH_SERVER": server})

        def nodes():
            result = berth("node", "list", "-o", "name", check=False)
            return len(result.stdout.split()) if result.returncode == 0 else 0

        wait_until(lambda: nodes() == 9, 60, "nine nodes")
        berth("apply", "-f", SOURCE / "deploy/examples/queues.yaml")
        berth("submit", SOURCE / "deploy/examples/allreduce.yaml")
        berth("job", "wait", "allreduce", "--timeout", "60s")
        self.assertIn("ranks is 6: right", berth("job", "logs", "allreduce", "--task", "worker-1").stdout)
        run("curl", "-fsS", f"http://127.0.0.1:{self.ports['BERTH_WEB_PORT']}/healthz")
        for service in ("berthd", "web"):
            self.podman("healthcheck", "run", f"berth_{service}_1")
            told = json.loads(self.podman("inspect", f"berth_{service}_1").stdout)[0]
            self.assertTrue(told["HostConfig"]["ReadonlyRootfs"])
            self.assertEqual((told["Config"]["User"], told["EffectiveCaps"]), ("7070:7070", None))
        berth("submit", "--name", "later", "--queue", "vision", "--gpus", "8", "--replicas", "9", "--", "x")
        self.podman("kill", "berth_berthd_1")
        self.compose("up", "-d")
        wait_until(lambda: nodes() == 9, 60, "nine nodes again")
        self.assertEqual(berth("job", "get", "later", "-o", "name").stdout.strip(), "job/later")

    # ---- deploy/helm

    def test_the_chart_fits_the_schemas_of_kubernetes(self):
        for values in (PLAIN, SEVERAL):
            text = template(values).stdout
            file = self.home / "rendered.yaml"
            file.write_text(text)
            for version in KUBERNETES:
                said = run(TOOLS / "bin/kubernetes-validate", "--strict", "--kubernetes-version", version, file)
                self.assertEqual(len([line for line in (said.stdout + said.stderr).splitlines() if "passed for resource" in line]),
                                 len([document for document in yaml.safe_load_all(text) if document]))
        run(TOOLS / "bin/helm", "lint", "--strict", CHART, "--values", "-", input=json.dumps(SEVERAL))

    def test_the_chart_refuses_values_that_do_not_fit(self):
        for change, said in (({"image": {}}, "image.repository"), ({"berthd": {"tlsSecret": "t", "replicas": 2}}, "several servers need ha.enabled"),
                             ({"berthd": {"tlsSecret": "t", "confg": {}}}, "confg"),
                             ({"berthd": {"tlsSecret": "t", "config": {"listen": "0.0.0.0:1"}}}, "berthd.config"),
                             ({"ha": {"enabled": True}}, "ha.etcd"), ({"ha": {"initialize": True}}, "needs ha.enabled"),
                             ({"web": {"enabled": True, "url": "https://b", "tlsSecret": "w"}}, "people sign in by")):
            result = template({**PLAIN, **change}, check=False)
            self.assertNotEqual(result.returncode, 0, change)
            self.assertIn(said, result.stderr)

    def test_the_pod_of_the_chart_runs(self):
        """As the kubelet would start it: the init container, then the others in its network."""
        pki = self.home / "pki"
        pki.mkdir()
        authority = Authority(pki)
        authority.add("ca")
        authority.issue("server", names="DNS:blue.berth.svc")
        authority.issue("operator")
        (pki / "tls").mkdir()
        for source, name in (("server.pem", "tls.crt"), ("server.key", "tls.key"), ("ca.pem", "ca.crt")):
            shutil.copy(pki / source, pki / "tls" / name)
            shutil.chown(pki / "tls" / name, 7070, 7070)
        objects = [each for each in yaml.safe_load_all(template({**PLAIN, "metrics": {"enabled": True}}).stdout) if each]
        config = next(each for each in objects if each["kind"] == "ConfigMap")
        pod = next(each for each in objects if each["kind"] == "StatefulSet")["spec"]["template"]["spec"]
        folders = {"tls": pki / "tls", "config": self.home / "config", "run": self.home / "pod-run", "store": self.home / "pod-store",
                   "tmp": self.home / "pod-tmp"}
        for name in ("config", "run", "store", "tmp"):
            folders[name].mkdir()
            shutil.chown(folders[name], 7070, 7070)
        for name, text in config["data"].items():
            (folders["config"] / name).write_text(text)
        for index, container in enumerate(pod["initContainers"] + pod["containers"]):
            self.start(container, pod, folders, first=index == len(pod["initContainers"]), wait=index < len(pod["initContainers"]))
        berthd = next(each for each in pod["containers"] if each["name"] == "berthd")
        wait_until(lambda: self.podman("exec", "berthd", *berthd["readinessProbe"]["exec"]["command"], check=False).returncode == 0, 60, "ready")
        address = json.loads(self.podman("inspect", "berthd").stdout)[0]["NetworkSettings"]["Networks"]["podman"]["IPAddress"]
        certificates = ["--cacert", pki / "ca.pem", "--cert", pki / "operator.pem", "--key", pki / "operator.key"]
        reach = ["--connect-to", f"blue.berth.svc:17071:{address}:17071"]
        wait_until(lambda: run("curl", "-fsS", *reach, *certificates, "https://blue.berth.svc:17071/metrics", check=False).returncode == 0,
                   30, "metrics over TLS")
        refused = run("curl", "-fsS", *reach, "--cacert", pki / "ca.pem", "https://blue.berth.svc:17071/metrics", check=False)
        self.assertNotEqual(refused.returncode, 0, "metrics without a certificate")
        said = self.podman("run", "--rm", "--add-host", f"blue.berth.svc:{address}", "--volume", f"{pki}:/pki:ro", "--user", "0",
                           "--env", "BERTH_SERVER=blue.berth.svc:7070", f"localhost/berth-server:{VERSION}", "berth", "cluster", "info",
                           "--tls-certificate=/pki/operator.pem", "--tls-key=/pki/operator.key", "--tls-ca=/pki/ca.pem").stdout
        self.assertIn("Accepts work:  yes", said)
        begin = time.monotonic()
        self.podman("stop", "--time", str(pod["terminationGracePeriodSeconds"]), "berthd")
        self.assertLess(time.monotonic() - begin, pod["terminationGracePeriodSeconds"] - 10)
        self.assertEqual(json.loads(self.podman("inspect", "berthd").stdout)[0]["State"]["ExitCode"], 0)

    def start(self, container, pod, folders, first, wait):
        rights, who = container["securityContext"], pod["securityContext"]
        self.assertEqual(rights, {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}})
        options = ["--name", container["name"], "--read-only", "--read-only-tmpfs=false", "--cap-drop=all", "--security-opt=no-new-privileges",
                   "--user", f"{who['runAsUser']}:{who['runAsGroup']}", "--env", "POD_NAME=blue-berthd-0"]
        for mount in container["volumeMounts"]:
            options += ["--volume", f"{folders[mount['name']]}:{mount['mountPath']}:{'ro' if mount.get('readOnly') else 'rw'}"]
        if not wait:
            options += ["--detach", "--network", "podman" if first else "container:berthd"]
        self.podman("run", *options, container["image"], *container["command"])
        self.addCleanup(self.podman, "rm", "--force", "--time", "1", container["name"], check=False)


if __name__ == "__main__":
    unittest.main()
