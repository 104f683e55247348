"""A real server with real agents, for the tests of this package."""
import os
import pathlib
import shutil
import subprocess
import sys
import threading

SOURCE = pathlib.Path(os.environ.get("BERTH_SOURCE", pathlib.Path(__file__).resolve().parents[3]))
os.environ.setdefault("BERTH_SOURCE", str(SOURCE))
sys.path.append(str(SOURCE / "tests" / "integration"))  # has tests of the same names

import berth_harness  # noqa: E402

import berth  # noqa: E402


def same_python():
    """Whether tasks have this version of Python. The interpreter of a virtual environment may be out of their user's reach."""
    theirs = subprocess.run(["/usr/bin/python3", "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, text=True,
                            check=True).stdout.strip()
    return theirs == str(sys.version_info[:2])


def start(agents=2, config=None, addresses=False, **agent_config):
    """The cluster, with a queue "research"; the caller ends it. `addresses`: each node has one of its own."""
    cluster = berth_harness.Cluster(config)
    try:
        cluster.server.start()
        cluster.berth("queue", "create", "research")
        for number in range(1, agents + 1):
            address = {"address": f"127.0.0.{number}"} if addresses else {}
            cluster.add_agent(f"n{number}", **address, **agent_config)
        with berth.Client(cluster.server.address) as client:
            berth_harness.wait_until(lambda: client.cluster().nodes.get("READY") == agents, 30, "agents")
    except BaseException:
        cluster.__exit__(AssertionError, None, None)
        raise
    return cluster


def job(*command, name="", **spec):
    """A job of one task in the queue "research"."""
    group = berth.Group(command=list(command), resources=berth.R(cpu="50m", memory="32Mi"))
    return berth.Job(name, queue="research", groups=[group], **spec)


def template(cluster):
    """For executors: tasks find cloudpickle in a directory that their user may read."""
    place = cluster.home / "modules"
    if not place.exists():
        import cloudpickle
        shutil.copytree(pathlib.Path(cloudpickle.__file__).parent, place / "cloudpickle",
                        ignore=shutil.ignore_patterns("__pycache__"))
        subprocess.run(["/usr/bin/python3", "-m", "compileall", "-q", str(place)], check=True)
    group = berth.Group("call", resources=berth.R(cpu="500m", memory="64Mi"), env={"PYTHONPATH": str(place)})
    return berth.Job(groups=[group])


def shared_folder(cluster, name="shared"):
    """A directory in which tasks of any user may write."""
    place = cluster.home / name
    place.mkdir(exist_ok=True)
    place.chmod(0o777)
    return place


def as_task_user():
    """Before a command: it runs as the user of the tasks, whose files are for their owner alone.

    Not by `user` of subprocess: that forks, and a fork of a process with connections of gRPC may end in an assertion of it.
    """
    return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.getuid() == 0 else []


def in_thread(function, *arguments):
    """Runs beside the test; `join` raises what it raised."""
    result = {}

    def run():
        try:
            result["value"] = function(*arguments)
        except BaseException as error:
            result["error"] = error

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def join(timeout=60):
        thread.join(timeout)
        assert not thread.is_alive(), f"{function} has not ended after {timeout} s"
        if "error" in result:
            raise result["error"]
        return result["value"]

    return join
