"""Every public name has a docstring with an example, and every example runs against a real server."""
import doctest
import importlib.util
import inspect
import re
import unittest

import world

import berth
from berth import aio, client, frames, progress, ray
from berth.plugins import _shell

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def owners():
    """(title, object) of every public class, method and function."""
    for name in berth.__all__:
        one = getattr(berth, name)
        if inspect.isclass(one) or inspect.isfunction(one):
            yield name, one
    for module in (aio, frames, progress, ray):
        for name in module.__all__:
            yield f"{module.__name__}.{name}", getattr(module, name)


def documented():
    """Title -> docstring, of classes and their own public methods."""
    found = {}
    for title, one in owners():
        found[title] = inspect.getdoc(one)
        if inspect.isclass(one) and one.__module__ != "berth.model" and not issubclass(one, BaseException):
            for base in one.__mro__:
                if base.__module__.startswith("berth."):
                    for name, member in vars(base).items():
                        if not name.startswith("_") and (callable(member) or isinstance(member, property)):
                            found[f"{title}.{name}"] = inspect.getdoc(member)
    return found


def blocking(example):
    """An example for asyncio as one that a doctest can run: `run` and `iterate` are given."""
    source = example.source
    source = re.sub(r"\[(.*) async for (.*) in (.*)\]", r"[\1 for \2 in iterate(\3)]", source)
    source = re.sub(r"async for (\w+) in (.*):\n", r"for \1 in iterate(\2):\n", source)
    nested = r"\(await ((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))+)\)"
    source = re.sub(r"(?<!\w)" + nested, r"run(\1)", source)
    source = re.sub(nested, r"(run(\1))", source)
    source = re.sub(r"\bin await (.+)\]$", r"in run(\1)]", source, flags=re.M)
    source = re.sub(r"\bawait (.+)$", r"run(\1)", source, flags=re.M)
    return doctest.Example(source, example.want, example.exc_msg, example.lineno, example.indent, example.options)


class Docs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = world.start(agents=2)
        cls.addClassCleanup(cls.cluster.stop)
        cls.loop = client.Loop.shared()
        cls.client = berth.Client(cls.cluster.server.address)
        cls.addClassCleanup(cls.client.close)

        # The oldest versions are tested without the extras.
        cls.left_out = [f"berth.{name}." for name, needed in (("frames", "pandas"), ("progress", "tqdm"))
                        if importlib.util.find_spec(needed) is None]
        if not world.same_python():
            cls.left_out.append("Executor")

    def prepare(self):
        """The jobs that the examples name."""
        for job in self.client.jobs(active=True):
            self.client.cancel(job.name, force=True)
        for job in list(self.client.jobs()):
            self.client.job(job.name).wait(timeout=30, check=False)
            self.client.delete(job.name)
        for queue in list(self.client.queues()):
            if queue.name not in ("research", "default"):
                self.client.delete_queue(queue.name)
        self.client.submit(world.job("echo", "hello", name="hello")).wait(timeout=30)
        self.client.submit(world.job("sleep", "600", name="sleeper"))
        for name in ("waiting", "pausing"):
            group = berth.Group(command=["true"], resources=berth.R(gpu=8))
            self.client.submit(berth.Job(name, queue="research", groups=[group]))
        world.berth_harness.wait_until(lambda: self.client.get("sleeper").status.state == "Running", 30, "the sleeper")
        world.berth_harness.wait_until(lambda: self.client.explain("waiting").reasons, 30, "the reasons of a pending job")

    def run_examples(self, kinds, globs, convert=None):
        """Runs the examples of the titles that begin so, each in fresh names."""
        count, failures = 0, []
        parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=OPTIONS)
        for title, text in documented().items():
            if not kinds(title) or any(title.startswith(one) for one in self.left_out):
                continue
            test = parser.get_doctest(text or "", {**globs, "berth": berth}, title, title, 0)
            if convert:
                test.examples = [convert(example) for example in test.examples]
            out = []
            if runner.run(test, out=out.append).failed:
                failures.append(f"{title}:\n{''.join(out)}")
            count += len(test.examples)
        self.assertEqual(failures, [], "\n".join(failures))
        return count

    def test_everything_has_an_example(self):
        missing = [title for title, text in documented().items() if not text or ">>> " not in text]
        self.assertEqual(missing, [])

    def test_quoting_for_plugins(self):
        self.assertGreater(doctest.testmod(_shell).attempted, 0)
        self.assertEqual(doctest.testmod(_shell).failed, 0)

    def test_examples_of_the_blocking_client(self):
        self.prepare()
        template = world.template(self.cluster)
        globs = {"client": self.client, "template": template, "folder": str(self.cluster.home)}
        count = self.run_examples(lambda title: not title.startswith("berth.aio."), globs)
        self.assertGreater(count, 200)

    def test_examples_of_the_asyncio_client(self):
        self.prepare()
        made = aio.Client(self.cluster.server.address)
        globs = {"client": made, "run": self.loop.run, "iterate": self.loop.iterate}
        try:
            count = self.run_examples(lambda title: title.startswith("berth.aio."), globs, blocking)
        finally:
            self.loop.run(made.close())
        self.assertGreater(count, 50)


if __name__ == "__main__":
    unittest.main()
