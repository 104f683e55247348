import { call, type BerthNode, type Job, type Task } from "../api";
import { clock, day, duration, number, secondsOf } from "../format";
import { useLoad } from "../live";
import { Heads, Pager, Picker, Show, Table, Time } from "../parts";
import { go, pathTo, place, setQuery } from "../router";

const NODES_OF_PAGE = 20;
const PAGE = 1000;
const MOST_PENDING = 5000; // read for reservations
const SPANS: [string, string][] = [
  ["600", "10 minutes"],
  ["3600", "1 hour"],
  ["21600", "6 hours"],
  ["86400", "1 day"],
  ["604800", "1 week"],
  ["2592000", "30 days"],
];

interface Stay {
  job: string;
  begin: number;
  end: number | undefined; // undefined: nobody knows
  planned: boolean;
}
interface Row {
  node: string;
  stays: Stay[];
}
interface Data {
  rows: Row[];
  planned: Job[];
  more: boolean; // pending jobs that were not read
  next: string | undefined;
  now: number;
}

async function reservations(signal: AbortSignal): Promise<{ planned: Job[]; more: boolean }> {
  const planned: Job[] = [];
  let pageToken = "";
  for (let read = 0; read < MOST_PENDING; read += PAGE) {
    const page = await call<{ jobs?: Job[]; nextPageToken?: string }>(
      "JobService.ListJobs",
      { pageSize: PAGE, pageToken, filter: { states: ["JOB_PENDING"] } },
      signal,
    );
    planned.push(...(page.jobs ?? []).filter((job) => job.status?.reservation?.start));
    pageToken = page.nextPageToken ?? "";
    if (!pageToken) return { planned, more: false };
  }
  return { planned, more: true };
}

async function read(pageToken: string, signal: AbortSignal): Promise<Data> {
  const [nodes, { planned, more }] = await Promise.all([
    call<{ nodes?: BerthNode[]; nextPageToken?: string }>("NodeService.ListNodes", { pageSize: NODES_OF_PAGE, pageToken }, signal),
    reservations(signal),
  ]);
  const jobs = new Map<string, Promise<Job | undefined>>();
  const jobOf = (name: string) => {
    const known = jobs.get(name);
    if (known) return known;
    const job = call<Job>("JobService.GetJob", { name }, signal).catch(() => undefined);
    jobs.set(name, job);
    return job;
  };
  const rows = await Promise.all(
    (nodes.nodes ?? []).map(async ({ name }): Promise<Row> => {
      const { tasks = [] } = await call<{ tasks?: Task[] }>("JobService.ListTasks", { node: name, pageSize: PAGE }, signal);
      const stays = new Map<string, Stay>();
      for (const task of tasks) {
        if (!task.job || !task.startTime) continue;
        const walltime = secondsOf((await jobOf(task.job))?.spec?.walltime);
        const begin = Date.parse(task.startTime);
        const end = walltime === undefined ? undefined : begin + 1000 * walltime;
        const before = stays.get(task.job);
        if (!before || begin < before.begin) stays.set(task.job, { job: task.job, begin, end, planned: false });
      }
      for (const job of planned) {
        if (!job.status?.reservation?.nodes?.includes(name)) continue;
        const { start, end } = job.status.reservation;
        stays.set(`planned ${job.name}`, { job: job.name, begin: Date.parse(start ?? ""), end: end ? Date.parse(end) : undefined, planned: true });
      }
      return { node: name, stays: [...stays.values()].sort((a, b) => a.begin - b.begin) };
    }),
  );
  return { rows, planned, more, next: nodes.nextPageToken, now: Date.now() };
}

const LINE = 26;
const LEFT = 150;
const WIDTH = 1000;

function ticks(from: number, to: number): number[] {
  const steps = [10, 30, 60, 300, 600, 1800, 3600, 10800, 21600, 86400, 259200, 604800].map((s) => s * 1000);
  const step = steps.find((s) => (to - from) / s <= 8) ?? 30 * 86_400_000;
  const all = [];
  for (let at = Math.ceil(from / step) * step; at < to; at += step) all.push(at);
  return all;
}

function Chart({ rows, from, to, now }: { rows: Row[]; from: number; to: number; now: number }) {
  const x = (ms: number) => LEFT + ((Math.min(Math.max(ms, from), to) - from) / (to - from)) * (WIDTH - LEFT);
  const height = LINE * (rows.length + 1);
  return (
    <div class="scroll" role="region" aria-label="Drawing of the timeline" tabIndex={0}>
      <svg class="timeline" viewBox={`0 0 ${WIDTH} ${height}`} role="img" aria-label="Jobs on nodes against time; the tables below say the same">
        {ticks(from, to).map((at) => (
          <g key={at}>
            <line class="tick" x1={x(at)} x2={x(at)} y1={LINE - 8} y2={height} />
            <text class="tick-text" x={x(at)} y={LINE - 12}>
              {to - from > 2 * 86_400_000 ? day(at).slice(5, 10) : clock(at).slice(0, to - from > 3_600_000 ? 5 : 8)}
            </text>
          </g>
        ))}
        {rows.map(({ node, stays }, i) => (
          <g key={node}>
            <text class="row-text" x={0} y={LINE * (i + 1) + 17}>
              {node.slice(0, 22)}
            </text>
            {stays
              .filter(({ begin, end }) => begin < to && (end ?? to) > from)
              .map(({ job, begin, end, planned }, k) => (
                <g key={`${job}-${planned}`} class="stay-of" onClick={() => go(pathTo("job", job))}>
                  <rect
                    class={planned ? "stay planned" : end === undefined ? "stay open" : "stay"}
                    x={x(begin)}
                    y={LINE * (i + 1) + 3 + (k % 2) * 2}
                    width={Math.max(2, x(end ?? to) - x(begin))}
                    height={LINE - 8}
                  >
                    <title>{`${job}: ${planned ? "planned " : ""}${day(begin)} – ${end === undefined ? "no walltime" : day(end)}`}</title>
                  </rect>
                  {x(end ?? to) - x(begin) > 60 && (
                    <text class="stay-text" x={x(begin) + 4} y={LINE * (i + 1) + 17}>
                      {job.slice(0, Math.floor((x(end ?? to) - x(begin)) / 8))}
                    </text>
                  )}
                </g>
              ))}
          </g>
        ))}
        <line class="now" x1={x(now)} x2={x(now)} y1={LINE - 8} y2={height} />
      </svg>
    </div>
  );
}

export function Timeline() {
  const { query } = place.value;
  const token = query.get("page") ?? "";
  const span = Number(query.get("span") ?? "21600") * 1000 || 21_600_000;
  const loaded = useLoad((signal) => read(token, signal), [token], (change) => !!change.task || !!change.job, 5000);
  return (
    <>
      <h1>Timeline</h1>
      <Show of={loaded}>
        {(data) => {
          const shift = Number(query.get("shift") ?? "0") || 0; // in quarters of the span
          const from = data.now - span / 4 + (shift * span) / 4;
          const move = (by: number) => setQuery({ shift: shift + by === 0 ? "" : String(shift + by) }, true);
          return (
            <>
              <div class="row">
                <Picker label="Show" value={String(span / 1000)} options={SPANS} set={(value) => setQuery({ span: value, shift: "" }, true)} />
                <button type="button" onClick={() => move(-1)}>
                  Earlier
                </button>
                <button type="button" onClick={() => move(1)}>
                  Later
                </button>
                <button type="button" disabled={shift === 0} onClick={() => move(-shift)}>
                  Now
                </button>
              </div>
              <p class="faint">
                Filled: running, until its walltime ends. Open at the end: no walltime. Dashed: planned. As of {clock(data.now)}.
              </p>
              <Chart rows={data.rows} from={from} to={from + span} now={data.now} />
              <Pager first={!token} next={data.next} go={(page) => setQuery({ page })} />
              {data.planned.length === 0 ? (
                <p>No start is planned.</p>
              ) : (
                <Table caption="Planned starts" head={<Heads names={["Job", "Starts at the latest", "Until", "Nodes"]} />}>
                  {data.planned.map((job) => (
                    <tr key={job.name}>
                      <th scope="row">
                        <a href={pathTo("job", job.name)}>
                          <bdi>{job.name}</bdi>
                        </a>
                      </th>
                      <td>
                        <Time at={job.status?.reservation?.start} />
                      </td>
                      <td>
                        <Time at={job.status?.reservation?.end} />
                      </td>
                      <td class="number">{number(job.status?.reservation?.nodes?.length)}</td>
                    </tr>
                  ))}
                </Table>
              )}
              {data.more && <p class="note wait">Only the first {number(MOST_PENDING)} pending jobs were looked at for planned starts.</p>}
              <Table caption="What runs on these nodes" head={<Heads names={["Node", "Job", "Since", "Until", "Left"]} />}>
                {data.rows.flatMap(({ node, stays }) =>
                  stays
                    .filter(({ planned }) => !planned)
                    .map((stay) => (
                      <tr key={`${node}/${stay.job}`}>
                        <th scope="row">
                          <a href={pathTo("node", node)}>{node}</a>
                        </th>
                        <td>
                          <a href={pathTo("job", stay.job)}>
                            <bdi>{stay.job}</bdi>
                          </a>
                        </td>
                        <td>{day(stay.begin)}</td>
                        <td>{stay.end === undefined ? "no walltime" : day(stay.end)}</td>
                        <td>{stay.end === undefined ? "–" : duration((stay.end - data.now) / 1000)}</td>
                      </tr>
                    )),
                )}
              </Table>
            </>
          );
        }}
      </Show>
    </>
  );
}
