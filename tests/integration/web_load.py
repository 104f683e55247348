#!/usr/bin/env python3
"""web_load.py [JOBS] [NODES]: how quick the page is on a large cluster, and what open pages cost the control plane.

Not part of deploy/test: filling the cluster takes minutes. Prints the figures of docs/developers/web.md, "How quick".
"""
import contextlib
import http.client
import os
import sys
import threading
import time

from berth_api import job_pb2
from berth_harness import Cluster, wait_until
from web_browser import MISSING, Browser, Web

PAGES = 200
# By the page's own clock: how an action ends in another first row; when its first data had come.
DRAWN = """(async () => {
  const first = () => document.querySelector('tbody th')?.textContent, before = first(), begin = performance.now();
  %s;
  while (!first() || first() === before) await new Promise(r => requestAnimationFrame(r));
  return performance.now() - begin;
})()"""
READ = "Math.min(...performance.getEntriesByType('resource').filter(e => /Service.(List|GetCl)/.test(e.name)).map(e => e.responseEnd))"


def job(name, kind, labels):
    group = job_pb2.TaskGroup(name="w", command=["true"])
    group.resources.cpu_millis = 100
    group.resources.memory_bytes = 1 << 20
    group.resources.devices.add(kind=kind, count=1)
    return job_pb2.Job(name=name, spec=job_pb2.JobSpec(queue=f"q{len(name) % 2}", groups=[group], labels=labels))


def fill(cluster, jobs):
    """Nearly all wait for a kind of device that no node has."""
    begin = time.monotonic()
    for first in range(0, jobs, 1000):
        batch = [job(f"load-{i:07d}", "npu", {"team": f"t{i % 50}"}) for i in range(first, min(jobs, first + 1000))]
        cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=f"fill-{first}", jobs=batch), timeout=120)
    print(f"{jobs} jobs submitted in {time.monotonic() - begin:.0f} s", flush=True)


def cpu_s(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def measure_pages(browser, origin):
    page = browser.page(origin)
    page.set_default_timeout(60_000)
    for path, ready in (("/", "Overview"), ("/jobs", "Jobs"), ("/nodes", "Nodes"), ("/queues", "Queues"), ("/timeline", "Timeline")):
        times = []
        for _ in range(10):
            page.goto(path)
            page.get_by_role("heading", name=ready, exact=True).wait_for()
            page.get_by_role("table").first.wait_for()
            times.append(browser.evaluate(page, READ))
        paint = browser.evaluate(page, "performance.getEntriesByName('first-contentful-paint')[0].startTime")
        print(f"{path}: its data is there after ms p50 {percentile(times, .5):.0f} p95 {percentile(times, .95):.0f}; first paint {paint:.0f}", flush=True)
    begin = time.monotonic()
    page.goto("/topology")
    page.locator("canvas").wait_for()
    print(f"/topology: drawn after ms {1000 * (time.monotonic() - begin):.0f}", flush=True)
    page.goto("/jobs")
    page.get_by_role("table").first.wait_for()
    press = "[...document.querySelectorAll('nav button')].find(b => b.textContent === '%s').click()"
    choose = "(s => { s.value = '%s'; s.dispatchEvent(new Event('change', {bubbles: true})); })(document.querySelectorAll('select')[%d])"
    acts = [press % "Next page"] * 10 + [choose % ("oldest", 1), choose % ("", 1), press % "Next page", press % "First page"]
    steps = [browser.evaluate(page, DRAWN % act) for act in acts]
    print(f"changing order or page, until drawn: ms p50 {percentile(steps, .5):.0f} p95 {percentile(steps, .95):.0f}", flush=True)
    page.context.close()


def follow(port, answer):
    """What the page of jobs does: after a change it reads its list again, at most every 0.7 seconds."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    last = 0
    with contextlib.suppress(http.client.HTTPException, OSError):  # the end
        while line := answer.readline():
            if line != b"event: changes\n" or time.monotonic() - last < 0.7:
                continue
            last = time.monotonic()
            connection.request("POST", "/berth.v1.JobService/ListJobs", '{"pageSize": 100, "order": "NEWEST_FIRST"}',
                               {"Host": f"127.0.0.1:{port}", "Content-Type": "application/json"})
            assert connection.getresponse().read()


def listen(port, streams):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/api/watch", headers={"Host": f"127.0.0.1:{port}"})
    streams.append((connection, connection.getresponse()))


def measure_streams(cluster, web):
    """200 pages of jobs, while the cluster changes ten times a second."""
    def change(seconds):
        end = time.monotonic() + seconds
        number = 0
        while time.monotonic() < end:
            cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(
                request_id=f"c-{time.monotonic_ns()}", jobs=[job(f"c-{time.monotonic_ns()}", "npu", {})]), timeout=30)
            number += 1
            time.sleep(0.1)
        return number
    costs = []
    streams = []
    for pages in (0, PAGES):
        for _ in range(pages):
            listen(web.port, streams)
        for _, answer in streams:
            threading.Thread(target=follow, args=(web.port, answer), daemon=True).start()
        time.sleep(3)
        before = cpu_s(cluster.server.process.pid), cpu_s(web.process.pid)
        begin = time.monotonic()
        change(20)
        passed = time.monotonic() - begin
        costs.append([(after - first) / passed for first, after in zip(before, (cpu_s(cluster.server.process.pid), cpu_s(web.process.pid)))])
    print(f"share of a core, berthd: {costs[0][0]:.3f} without pages, {costs[1][0]:.3f} with {PAGES}; berth-web: {costs[1][1]:.3f}", flush=True)


def measure_delay(browser, cluster, origin):
    page = browser.page(origin)
    page.goto("/jobs")
    page.get_by_text("Live", exact=True).wait_for()
    times = []
    for i in range(20):
        time.sleep(1.6)
        cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=f"seen-{i}", jobs=[job(f"seen-{i}", "npu", {})]), timeout=30)
        begin = time.monotonic()
        page.get_by_role("link", name=f"seen-{i}", exact=True).wait_for()
        times.append(1000 * (time.monotonic() - begin))
    print(f"a durable change is drawn after ms p50 {percentile(times, .5):.0f} p95 {percentile(times, .95):.0f}", flush=True)
    page.context.close()


def main():
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    nodes = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    with Cluster({"limits": {"activeJobs": jobs + 10_000, "activeTasks": jobs + 10_000}}) as cluster, contextlib.ExitStack() as stack:
        cluster.server.start()
        cluster.add_simulation([{"name": f"n[{first:05d}-{first + 99:05d}]", "cpu": 64, "memory": "512Gi", "devices": {"gpu": 8},
                                 "runTime": "1h"} for first in range(0, nodes, 100)])
        wait_until(lambda: cluster.api.cluster.GetClusterInfo(_info(), timeout=10).nodes.get("READY") == nodes, 300, "all nodes", 1)
        for queue in ("q0", "q1"):
            cluster.create_queue(queue)
        fill(cluster, jobs)
        web = Web(cluster.home, server=cluster.server.address).start()
        stack.callback(web.stop)
        browser = Browser()
        stack.callback(browser.close)
        measure_pages(browser, f"http://{web.address}")
        measure_delay(browser, cluster, f"http://{web.address}")
        measure_streams(cluster, web)
        print("problems of the page:", browser.problems)


def _info():
    from berth_api import cluster_pb2
    return cluster_pb2.GetClusterInfoRequest()


if __name__ == "__main__":
    if MISSING:
        sys.exit(MISSING)
    main()
