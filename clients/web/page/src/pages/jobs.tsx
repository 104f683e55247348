import { useState } from "preact/hooks";
import { call, type Job } from "../api";
import { number, reasonText } from "../format";
import { useLoad } from "../live";
import { type Action, ActionDialog, Ago, forEachName, Pager, Picker, Search, Show, State, Table, useMay } from "../parts";
import { pathTo, place, setQuery } from "../router";

const PAGE_SIZE = 100;
const STATES = ["PENDING", "HELD", "BINDING", "RUNNING", "RESTARTING", "SUSPENDED", "COMPLETING", "SUCCEEDED", "FAILED", "CANCELLED"];
const ENDED = new Set(["JOB_SUCCEEDED", "JOB_FAILED", "JOB_CANCELLED"]);

interface Data {
  jobs?: Job[];
  nextPageToken?: string;
}

function requestOf(query: URLSearchParams): object {
  const state = query.get("state") ?? "active";
  const filter: Record<string, unknown> = {};
  if (state === "active") filter["activeOnly"] = true;
  else if (state === "ended") filter["endedOnly"] = true;
  else if (state !== "all") filter["states"] = [state];
  for (const [key, field] of [
    ["queue", "queue"],
    ["user", "user"],
    ["owner", "owner"],
    ["node", "node"],
    ["series", "series"],
  ] as const) {
    const value = query.get(key);
    if (value) filter[field] = value;
  }
  const name = query.get("name");
  if (name) filter["namePattern"] = /[*?]/.test(name) ? name : `*${name}*`;
  const label = query.get("label");
  if (label) filter["labels"] = { [label.split("=")[0] ?? ""]: label.split("=").slice(1).join("=") };
  return {
    pageSize: PAGE_SIZE,
    pageToken: query.get("page") ?? "",
    order: query.get("order") === "oldest" ? "OLDEST_FIRST" : "NEWEST_FIRST",
    filter,
  };
}

function tasksOf(job: Job): { running: number; total: number } {
  let running = 0;
  let total = 0;
  for (const group of job.status?.groups ?? []) {
    for (const [state, count] of Object.entries(group.tasks ?? {})) {
      total += count;
      if (state === "RUNNING") running += count;
    }
  }
  return { running, total };
}

function JobRow({ job, chosen, choose }: { job: Job; chosen: boolean; choose: (on: boolean) => void }) {
  const { running, total } = tasksOf(job);
  const reason = job.status?.reasons?.[0];
  return (
    <tr>
      <td>
        <input type="checkbox" aria-label={`Choose ${job.name}`} checked={chosen} onChange={(event) => choose(event.currentTarget.checked)} />
      </td>
      <th scope="row" class="name">
        <a href={pathTo("job", job.name)}>
          <bdi>{job.name}</bdi>
        </a>
      </th>
      <td>
        <State of={job.status?.state} />
      </td>
      <td>
        <a href={`/jobs?queue=${encodeURIComponent(job.spec?.queue ?? "")}`}>{job.spec?.queue}</a>
      </td>
      <td>
        <bdi>{job.status?.owner}</bdi>
      </td>
      <td class="number">{job.spec?.priority ?? 0}</td>
      <td class="number">
        {number(running)} / {number(total)}
      </td>
      <td>
        <Ago at={job.status?.submitTime} />
      </td>
      <td>{job.status?.reservation?.start ? <Ago at={job.status.reservation.start} /> : <Ago at={job.status?.startTime} />}</td>
      <td class="reason">
        <bdi>{reason ? reasonText(reason) : job.status?.message}</bdi>
      </td>
    </tr>
  );
}

const BULK: { title: string; method: string; verb: string; fits: (state: string) => boolean; danger: boolean }[] = [
  { title: "Cancel", method: "JobService.CancelJob", verb: "cancel", fits: (state) => !ENDED.has(state), danger: true },
  { title: "Suspend", method: "JobService.SuspendJob", verb: "suspend", fits: (state) => !ENDED.has(state) && state !== "JOB_SUSPENDED", danger: false },
  { title: "Resume", method: "JobService.ResumeJob", verb: "resume", fits: (state) => state === "JOB_SUSPENDED" || state === "JOB_HELD", danger: false },
  { title: "Delete", method: "JobService.DeleteJob", verb: "delete", fits: (state) => ENDED.has(state), danger: true },
];

function Bulk({ jobs, act }: { jobs: Job[]; act: (action: Action) => void }) {
  return (
    <div class="row" role="group" aria-label="Change the chosen jobs">
      <span role="status">{jobs.length} chosen</span>
      {BULK.map(({ title, method, verb, fits, danger }) => {
        const names = jobs.filter((job) => fits(job.status?.state ?? "")).map((job) => job.name);
        return (
          <button
            key={verb}
            type="button"
            disabled={names.length === 0}
            onClick={() =>
              act({
                title: `${title} ${names.length === 1 ? "1 job" : `${names.length} jobs`}`,
                detail: (
                  <ul class="short">
                    {names.map((name) => (
                      <li key={name}>
                        <bdi>{name}</bdi>
                      </li>
                    ))}
                  </ul>
                ),
                command: `berth job ${verb} ${names.join(" ")}`,
                danger,
                run: (id) => forEachName(names, (name) => call(method, { name }, undefined, `${id}-${name}`.slice(0, 128))),
              })
            }
          >
            {title}
          </button>
        );
      })}
    </div>
  );
}

function Filters({ query }: { query: URLSearchParams }) {
  const set = (key: string) => (value: string) => setQuery({ [key]: value, page: "" });
  return (
    <form class="row" role="search" aria-label="Filter jobs" onSubmit={(event) => event.preventDefault()}>
      <Picker
        label="State"
        value={query.get("state") ?? "active"}
        options={[["active", "Active"], ["ended", "Ended"], ["all", "All"], ...STATES.map((state): [string, string] => [`JOB_${state}`, state[0] + state.slice(1).toLowerCase()])]}
        set={set("state")}
      />
      <Search label="Name" hint="train-*" value={query.get("name") ?? ""} set={set("name")} />
      <Search label="Queue" value={query.get("queue") ?? ""} set={set("queue")} />
      <Search label="Owner" value={query.get("owner") ?? ""} set={set("owner")} />
      <Search label="Label" hint="key=value" value={query.get("label") ?? ""} set={set("label")} />
      <Search label="On node" value={query.get("node") ?? ""} set={set("node")} />
      <Picker
        label="Order"
        value={query.get("order") ?? ""}
        options={[
          ["", "Newest first"],
          ["oldest", "Oldest first"],
        ]}
        set={set("order")}
      />
    </form>
  );
}

export function Jobs() {
  const { query, text } = place.value;
  const loaded = useLoad((signal) => call<Data>("JobService.ListJobs", requestOf(query), signal), [text], (change) => !!change.job, 700);
  const [chosen, setChosen] = useState<Set<string>>(new Set());
  const [action, setAction] = useState<Action>();
  const may = useMay("job.change", query.get("queue") ? { queue: query.get("queue") ?? "" } : {});
  const choose = (name: string, on: boolean) => {
    const next = new Set(chosen);
    if (on) next.add(name);
    else next.delete(name);
    setChosen(next);
  };
  return (
    <>
      <h1>Jobs</h1>
      <Filters query={query} />
      <Show of={loaded}>
        {({ jobs = [], nextPageToken }) => (
          <>
            <Bulk jobs={jobs.filter((job) => chosen.has(job.name))} act={setAction} />
            {!may && <p class="faint">You may change your own jobs only.</p>}
            {jobs.length === 0 ? (
              <p>{nextPageToken ? "No job of this part of the list matches." : "No jobs match."}</p>
            ) : (
              <Table
                caption="Jobs"
                head={
                  <>
                    <th scope="col">
                      <input
                        type="checkbox"
                        aria-label="Choose all jobs of this page"
                        checked={jobs.every((job) => chosen.has(job.name))}
                        onChange={(event) => setChosen(new Set(event.currentTarget.checked ? jobs.map((job) => job.name) : []))}
                      />
                    </th>
                    {["Name", "State", "Queue", "Owner", "Priority", "Running", "Submitted", "Starts", "Why"].map((name) => (
                      <th scope="col" key={name}>
                        {name}
                      </th>
                    ))}
                  </>
                }
              >
                {jobs.map((job) => (
                  <JobRow key={job.name} job={job} chosen={chosen.has(job.name)} choose={(on) => choose(job.name, on)} />
                ))}
              </Table>
            )}
            <Pager first={!query.get("page")} next={nextPageToken} go={(token) => setQuery({ page: token })} />
          </>
        )}
      </Show>
      {action && <ActionDialog action={{ ...action, done: () => setChosen(new Set()) }} close={() => setAction(undefined)} />}
    </>
  );
}
