import { useState } from "preact/hooks";
import { call, type Job as JobMessage, type Task } from "../api";
import { clock, duration, number, reasonText, secondsOf, shortUuid, stateText, taskName } from "../format";
import { type Change, useChanges, useLoad } from "../live";
import { type Action, ActionDialog, Ago, Facts, Show, State, Table, Time, useMay } from "../parts";
import { pathTo, place, setQuery } from "../router";
import { Explain } from "./explain";
import { Logs } from "./logs";
import { Terminal } from "./terminal";

const ENDED = ["JOB_SUCCEEDED", "JOB_FAILED", "JOB_CANCELLED"];
const TABS: [string, string][] = [
  ["", "Tasks"],
  ["why", "Why it waits"],
  ["logs", "Output"],
  ["terminal", "Terminal"],
  ["places", "Places"],
  ["events", "Events"],
  ["spec", "Manifest"],
];
const TASKS_OF_PAGE = 200;

interface TaskPage {
  tasks?: Task[];
  nextPageToken?: string;
}

function jobFacts(job: JobMessage): [string, preact.ComponentChildren][] {
  const status = job.status ?? {};
  const rows: [string, preact.ComponentChildren][] = [
    ["State", <State of={status.state} />],
    ["Queue", <a href={`/jobs?queue=${encodeURIComponent(job.spec?.queue ?? "")}`}>{job.spec?.queue}</a>],
    ["Owner", <bdi>{status.owner || "–"}</bdi>],
    ["Priority", number(job.spec?.priority)],
    ["Submitted", <Time at={status.submitTime} />],
    ["Started", <Time at={status.startTime} />],
  ];
  const walltime = secondsOf(job.spec?.walltime);
  if (walltime !== undefined) rows.push(["Walltime", duration(walltime)]);
  if (status.endTime) rows.push(["Ended", <Time at={status.endTime} />]);
  if (status.reservation?.start) rows.push(["Starts at the latest", <Time at={status.reservation.start} />]);
  if (status.message) rows.push(["Message", <bdi>{status.message}</bdi>]);
  if (status.cancelReason) rows.push(["Cancelled because", <bdi>{status.cancelReason}</bdi>]);
  if (status.retries) rows.push(["Retries used", number(status.retries)]);
  if (status.evictions) {
    const last = status.lastEviction;
    rows.push([
      "Evicted",
      <>
        {number(status.evictions)} times; last <Ago at={last?.time} />, {(last?.reason ?? "").toLowerCase()} for <bdi>{last?.beneficiary || "another job"}</bdi>
        {last?.detail ? `: ${last.detail}` : ""}
      </>,
    ]);
  }
  for (const condition of status.conditions ?? []) rows.push([stateText(condition.kind).replaceAll("_", " "), <bdi>{condition.detail}</bdi>]);
  if (status.progress?.step !== undefined) rows.push(["Progress", `step ${number(status.progress.step)}${status.progress.status ? `: ${status.progress.status}` : ""}`]);
  return rows;
}

function Tasks({ name }: { name: string }) {
  const token = place.value.query.get("page") ?? "";
  const loaded = useLoad(
    (signal) => call<TaskPage>("JobService.ListTasks", { job: name, pageSize: TASKS_OF_PAGE, pageToken: token }, signal),
    [name, token],
    (change) => change.job === name,
  );
  return (
    <Show of={loaded}>
      {({ tasks = [], nextPageToken }) => (
        <>
          <Table
            caption="Tasks"
            head={["Task", "Rank", "State", "Node", "Devices", "Attempt", "Started", "Ended", "Result"].map((head) => (
              <th scope="col" key={head}>
                {head}
              </th>
            ))}
          >
            {tasks.map((task) => (
              <tr key={taskName(task)}>
                <th scope="row">
                  <a href={`${pathTo("job", name)}?tab=logs&task=${encodeURIComponent(taskName(task))}`}>{taskName(task)}</a>
                </th>
                <td class="number">{(task.rank ?? 0) < 0 ? "–" : (task.rank ?? 0)}</td>
                <td>
                  <State of={task.state} />
                </td>
                <td>{task.node ? <a href={pathTo("node", task.node)}>{task.node}</a> : "–"}</td>
                <td>{(task.devices ?? []).map(shortUuid).join(", ")}</td>
                <td class="number">{task.attempt ?? 0}</td>
                <td>
                  <Time at={task.startTime} />
                </td>
                <td>
                  <Time at={task.endTime} />
                </td>
                <td>
                  <bdi>{[task.exitSignal ? `signal ${task.exitSignal}` : task.exitCode !== undefined ? `exit ${task.exitCode}` : "", task.message].filter(Boolean).join(": ")}</bdi>
                </td>
              </tr>
            ))}
          </Table>
          {(token || nextPageToken) && (
            <div class="row">
              <button type="button" disabled={!token} onClick={() => setQuery({ page: "" })}>
                First page
              </button>
              <button type="button" disabled={!nextPageToken} onClick={() => setQuery({ page: nextPageToken ?? "" })}>
                Next page
              </button>
            </div>
          )}
        </>
      )}
    </Show>
  );
}

// Where the gang lies: its nodes in their domains, with a square for each device that it has there.
function Places({ name }: { name: string }) {
  const loaded = useLoad(
    async (signal) => {
      const { tasks = [], nextPageToken } = await call<TaskPage>("JobService.ListTasks", { job: name, pageSize: 1000 }, signal);
      const byNode = new Map<string, Task[]>();
      for (const task of tasks) if (task.node) byNode.set(task.node, [...(byNode.get(task.node) ?? []), task]);
      const nodes = [...byNode.keys()].slice(0, 64);
      const domains = await Promise.all(
        nodes.map(async (node) => {
          const found = await call<{ status?: { domains?: Record<string, string> } }>("NodeService.GetNode", { name: node }, signal).catch(() => undefined);
          return found?.status?.domains?.["network"] ?? "";
        }),
      );
      const byDomain = new Map<string, string[]>();
      nodes.forEach((node, i) => byDomain.set(domains[i] ?? "", [...(byDomain.get(domains[i] ?? "") ?? []), node]));
      return { byNode, byDomain, left: byNode.size - nodes.length, more: !!nextPageToken };
    },
    [name],
    (change) => change.job === name,
    3000,
  );
  return (
    <Show of={loaded}>
      {({ byNode, byDomain, left, more }) =>
        byNode.size === 0 ? (
          <p>It is on no node.</p>
        ) : (
          <>
            {[...byDomain.entries()].sort().map(([domain, nodes]) => (
              <section class="domain" key={domain} aria-label={domain || "No domain"}>
                <h3>{domain || "In no domain"}</h3>
                <ul class="plain places">
                  {nodes.sort().map((node) => (
                    <li key={node}>
                      <a href={pathTo("node", node)}>{node}</a>
                      <ul class="plain">
                        {byNode.get(node)?.map((task) => (
                          <li key={taskName(task)}>
                            <span class="squares" role="img" aria-label={`${(task.devices ?? []).length} devices`}>
                              {"■".repeat(Math.min(16, (task.devices ?? []).length))}
                            </span>{" "}
                            {taskName(task)} <span class="faint">rank {task.rank ?? 0}</span>
                          </li>
                        ))}
                      </ul>
                    </li>
                  ))}
                </ul>
              </section>
            ))}
            {(left > 0 || more) && <p class="faint">Only 64 nodes of the first 1,000 tasks are drawn.</p>}
          </>
        )
      }
    </Show>
  );
}

// From the job's own facts, and what has happened since this page was opened.
function Events({ job }: { job: JobMessage }) {
  const [seen, setSeen] = useState<Change[]>([]);
  useChanges(
    (changes) => {
      if (changes === "all") return;
      const own = changes.filter((change) => change.job === job.name);
      if (own.length > 0) setSeen((before) => [...own.reverse(), ...before].slice(0, 200));
    },
    [job.name],
  );
  const status = job.status ?? {};
  const facts: [string | undefined, string][] = [
    [status.endTime, `ended: ${stateText(status.state)}`],
    [status.hang?.time, `no progress; task ${status.hang?.task ?? ""}`],
    [status.checkpoint?.time, "reported a checkpoint"],
    [status.lastEviction?.time, `evicted, ${(status.lastEviction?.reason ?? "").toLowerCase()}, for ${status.lastEviction?.beneficiary || "another job"}: ${status.lastEviction?.detail ?? ""}`],
    [status.startTime, `started (start ${status.startCount ?? 1})`],
    [status.submitTime, "submitted"],
  ];
  return (
    <>
      <h3>Since this page was opened</h3>
      <ol class="plain" aria-live="polite">
        {seen.map((change, i) => (
          <li key={`${change.time}-${i}`}>
            <Time at={change.time} /> {change.task ? `task ${change.task}: ${stateText(change.taskState)}` : `${change.type.toLowerCase().replaceAll("_", " ")}: ${stateText(change.jobState)}`}
            {change.node ? ` on ${change.node}` : ""} <bdi>{change.message}</bdi>
          </li>
        ))}
      </ol>
      {seen.length === 0 && <p class="faint">Nothing.</p>}
      <h3>Known of the job</h3>
      <ol class="plain">
        {facts
          .filter(([time]) => time)
          .map(([time, text]) => (
            <li key={text}>
              <Time at={time} /> <bdi>{text}</bdi>
            </li>
          ))}
      </ol>
    </>
  );
}

function Actions({ job, act }: { job: JobMessage; act: (action: Action) => void }) {
  const may = useMay("job.change", { job: job.name });
  if (!may) return null;
  const state = job.status?.state ?? "";
  const ended = ENDED.includes(state);
  const simple = (title: string, verb: string, method: string, danger: boolean) => (
    <button
      type="button"
      class={danger ? "danger" : undefined}
      onClick={() => act({ title: `${title} ${job.name}`, command: `berth job ${verb} ${job.name}`, danger, run: (id) => call(method, { name: job.name }, undefined, id) })}
    >
      {title}
    </button>
  );
  return (
    <div class="row" role="group" aria-label="Change this job">
      {!ended && state !== "JOB_SUSPENDED" && simple("Suspend", "suspend", "JobService.SuspendJob", false)}
      {(state === "JOB_SUSPENDED" || state === "JOB_HELD") && simple("Resume", "resume", "JobService.ResumeJob", false)}
      {!ended && simple("Cancel", "cancel", "JobService.CancelJob", true)}
      {ended && simple("Delete", "delete", "JobService.DeleteJob", true)}
    </div>
  );
}

function Tab({ name, job }: { name: string; job: JobMessage }) {
  switch (place.value.query.get("tab") ?? "") {
    case "why":
      return <Explain job={job} />;
    case "logs":
      return <Logs key={`${name}/${place.value.query.get("task") ?? ""}`} name={name} task={place.value.query.get("task") ?? ""} />;
    case "terminal":
      return <Terminal key={name} name={name} task={place.value.query.get("task") ?? ""} />;
    case "places":
      return <Places name={name} />;
    case "events":
      return <Events job={job} />;
    case "spec":
      return (
        <pre class="text" tabIndex={0} aria-label="Manifest as JSON">
          {JSON.stringify({ name: job.name, spec: job.spec }, null, 2)}
        </pre>
      );
    default:
      return <Tasks name={name} />;
  }
}

export function Job({ name }: { name: string }) {
  const loaded = useLoad((signal) => call<JobMessage>("JobService.GetJob", { name }, signal), [name], (change) => change.job === name);
  const [action, setAction] = useState<Action>();
  const tab = place.value.query.get("tab") ?? "";
  return (
    <>
      <h1>
        Job <bdi>{name}</bdi>
      </h1>
      <Show of={loaded}>
        {(job) => (
          <>
            <Facts rows={jobFacts(job)} />
            {(job.status?.reasons?.length ?? 0) > 0 && (
              <div class="note wait">
                <strong>Waits:</strong> <bdi>{reasonText(job.status!.reasons![0]!)}</bdi>{" "}
                <a href={`${pathTo("job", name)}?tab=why`}>What would start it</a>
              </div>
            )}
            <Actions job={job} act={setAction} />
            <nav aria-label="Parts of the job">
              <ul class="tabs">
                {TABS.map(([key, title]) => (
                  <li key={key}>
                    <a href={pathTo("job", name) + (key ? `?tab=${key}` : "")} aria-current={key === tab ? "page" : undefined}>
                      {title}
                    </a>
                  </li>
                ))}
              </ul>
            </nav>
            <h2>{TABS.find(([key]) => key === tab)?.[1]}</h2>
            <Tab name={name} job={job} />
            <p class="faint">As of {clock(loaded.at)}.</p>
          </>
        )}
      </Show>
      {action && <ActionDialog action={action} close={() => setAction(undefined)} />}
    </>
  );
}
