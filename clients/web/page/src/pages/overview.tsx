import { call, type ClusterInfo, type Queue } from "../api";
import { amount, number, resourceName, resourceOf, resourcesIn, stateText } from "../format";
import { useLoad } from "../live";
import { Bar, Heads, Show, State, Table } from "../parts";
import { pathTo } from "../router";

interface Data {
  info: ClusterInfo;
  queues: Queue[];
}

async function read(signal: AbortSignal): Promise<Data> {
  const [info, queues] = await Promise.all([
    call<ClusterInfo>("ClusterService.GetClusterInfo", {}, signal),
    call<{ queues?: Queue[] }>("QueueService.ListQueues", { pageSize: 1000 }, signal),
  ]);
  return { info, queues: queues.queues ?? [] };
}

function Use({ info }: { info: ClusterInfo }) {
  return (
    <div class="cards">
      {resourcesIn(info.capacity).map((resource) => {
        const total = resourceOf(info.capacity, resource) ?? 0;
        const used = resourceOf(info.allocated, resource) ?? 0;
        return (
          <section class="card" key={resource} aria-label={resourceName(resource)}>
            <h2>{resourceName(resource)}</h2>
            <p class="big">
              {amount(resource, used)} <span class="faint">of {amount(resource, total)} allocated</span>
            </p>
            <Bar total={total} label={resourceName(resource)} parts={[{ label: "allocated", value: used, tone: "fill-used" }]} />
          </section>
        );
      })}
    </div>
  );
}

function Counts({ title, counts, link }: { title: string; counts: Record<string, number> | undefined; link: (state: string) => string }) {
  const rows = Object.entries(counts ?? {}).filter(([, count]) => count > 0);
  return (
    <section class="card" aria-label={title}>
      <h2>{title}</h2>
      {rows.length === 0 ? (
        <p class="faint">None</p>
      ) : (
        <ul class="plain">
          {rows.map(([state, count]) => (
            <li key={state}>
              <a href={link(state)} aria-label={`${stateText(state)}: ${number(count)}`}>
                <State of={state} /> <strong>{number(count)}</strong>
              </a>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

export function Overview() {
  const loaded = useLoad(read, [], () => true, 2000);
  return (
    <>
      <h1>Overview</h1>
      <Show of={loaded}>
        {({ info, queues }) => {
          const waiting = queues
            .filter((queue) => !queue.status?.children?.length && (queue.status?.pendingJobs ?? 0) > 0)
            .sort((a, b) => (b.status?.pendingJobs ?? 0) - (a.status?.pendingJobs ?? 0));
          const problems = [...(info.problems ?? [])];
          if (!info.acceptingWork) problems.unshift(`The cluster accepts no work: ${info.notAcceptingReason ?? ""}`);
          return (
            <>
              {problems.length > 0 && (
                <div class="note bad" role="alert">
                  <strong>To look at</strong>
                  <ul>
                    {problems.map((problem) => (
                      <li key={problem}>{problem}</li>
                    ))}
                  </ul>
                </div>
              )}
              <Use info={info} />
              <div class="cards">
                <Counts title="Jobs" counts={info.jobs} link={(state) => `/jobs?state=JOB_${state}`} />
                <Counts title="Nodes" counts={info.nodes} link={() => "/nodes"} />
              </div>
              {waiting.length > 0 && (
                <Table caption="Queues with pending jobs" head={<Heads names={["Queue", "Pending", "Running"]} />}>
                  {waiting.slice(0, 20).map((queue) => (
                    <tr key={queue.name}>
                      <th scope="row">
                        <a href={`/jobs?queue=${encodeURIComponent(queue.name)}&state=JOB_PENDING`}>{queue.name}</a>
                      </th>
                      <td>{number(queue.status?.pendingJobs)}</td>
                      <td>{number(queue.status?.runningJobs)}</td>
                    </tr>
                  ))}
                </Table>
              )}
              <p>
                Nodes in detail: <a href={pathTo("nodes")}>Nodes</a>, <a href={pathTo("topology")}>Topology</a>.
              </p>
            </>
          );
        }}
      </Show>
    </>
  );
}
