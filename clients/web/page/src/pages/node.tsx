import { useState } from "preact/hooks";
import { call, type BerthNode, type Task } from "../api";
import { amount, bytes, clock, number, resourceName, resourceOf, resourcesIn, taskName } from "../format";
import { useLoad } from "../live";
import { type Action, ActionDialog, Bar, Facts, Heads, Show, State, Table, Time, useMay } from "../parts";
import { pathTo } from "../router";
import { nodeState } from "./nodes";

interface Data {
  node: BerthNode;
  tasks: Task[];
}

async function read(name: string, signal: AbortSignal): Promise<Data> {
  const [node, list] = await Promise.all([
    call<BerthNode>("NodeService.GetNode", { name }, signal),
    call<{ tasks?: Task[] }>("JobService.ListTasks", { node: name, pageSize: 1000 }, signal),
  ]);
  return { node, tasks: list.tasks ?? [] };
}

function factsOf(node: BerthNode): [string, preact.ComponentChildren][] {
  const { status = {}, inventory = {} } = node;
  const rows: [string, preact.ComponentChildren][] = [
    ["State", <State of={nodeState(node)} />],
    ["Address", inventory.address ?? "–"],
    ["System", [inventory.os, inventory.architecture].filter(Boolean).join(", ") || "–"],
    ["Agent", status.agentVersion ?? "–"],
    ["Registered", <Time at={status.registeredTime} />],
    ["Domain", Object.entries(status.domains ?? {}).map(([kind, domain]) => `${kind}: ${domain}`).join(", ") || "–"],
  ];
  if (status.reason) rows.push(["Reason", <bdi>{status.reason}</bdi>]);
  if (status.refusal) rows.push(["Refused the latest start", <bdi>{status.refusal}</bdi>]);
  if (status.backoffUntil) rows.push(["Takes no tasks until", <Time at={status.backoffUntil} />]);
  if (status.faults) rows.push(["Faults", number(status.faults)]);
  if (status.drain) rows.push(["Drain", <>{(status.drain.mode ?? "now").toLowerCase().replaceAll("_", " ")} since <Time at={status.drain.beginTime} />, until <Time at={status.drain.deadline} /></>]);
  return rows;
}

function Devices({ node, tasks }: { node: BerthNode; tasks: Task[] }) {
  const devices = node.inventory?.devices ?? [];
  if (devices.length === 0) return <p>It reports no devices.</p>;
  const users = new Map<string, Task[]>();
  for (const task of tasks) for (const uuid of task.devices ?? []) users.set(uuid, [...(users.get(uuid) ?? []), task]);
  const inUse = new Set(node.status?.devicesInUse ?? []);
  return (
    <Table caption="Devices" head={<Heads names={["Device", "Kind", "Model", "Memory", "NUMA node", "PCI", "Health", "Used by"]} />}>
      {devices.map((device) => (
        <tr key={device.uuid}>
          <th scope="row">{device.uuid}</th>
          <td>{device.kind}</td>
          <td>{device.model}</td>
          <td class="number">{device.memory ? bytes(device.memory) : "–"}</td>
          <td class="number">{device.numaNode === undefined || device.numaNode < 0 ? "–" : device.numaNode}</td>
          <td>{device.pciBusId}</td>
          <td>{device.unhealthy ? <span class="state bad">▲ Unhealthy</span> : <span class="state good">● Healthy</span>}</td>
          <td>
            {(users.get(device.uuid) ?? []).map((task) => (
              <a key={`${task.job}/${taskName(task)}`} href={pathTo("job", task.job ?? "")}>
                {task.job} {taskName(task)}{" "}
              </a>
            ))}
            {!users.has(device.uuid) && (inUse.has(device.uuid) ? "a task that you may not see" : <span class="faint">free</span>)}
          </td>
        </tr>
      ))}
    </Table>
  );
}

const MOST_LINKED = 24;

// How its devices are connected, each with each.
function Links({ node }: { node: BerthNode }) {
  const devices = node.inventory?.devices ?? [];
  const { links = [], between = "" } = node.inventory?.topology ?? {};
  if (links.length === 0 || devices.length < 2) return null;
  const bytes = atob(between);
  const shown = devices.slice(0, MOST_LINKED);
  const linkOf = (a: number, b: number): string => {
    if (a === b) return "";
    const [i, j] = [Math.min(a, b), Math.max(a, b)];
    const at = i * devices.length - (i * (i + 1)) / 2 + (j - i - 1);
    const link = links[(at < bytes.length ? bytes.charCodeAt(at) : 0) - 1];
    if (!link) return "?";
    const name = (link.link ?? "").replace("LINK_CLASS_", "");
    return link.count ? `${name} ×${link.count}` : name;
  };
  const short = (index: number) => `${devices[index]?.kind ?? ""} ${index}`;
  return (
    <>
      <Table
        caption="Links between devices"
        head={["Device", ...shown.map((_, i) => short(i))].map((name) => (
          <th scope="col" key={name}>
            {name}
          </th>
        ))}
      >
        {shown.map((device, i) => (
          <tr key={device.uuid}>
            <th scope="row">{short(i)}</th>
            {shown.map((other, j) => (
              <td key={other.uuid} class={linkOf(i, j).startsWith("NVLINK") ? "near" : undefined}>
                {linkOf(i, j)}
              </td>
            ))}
          </tr>
        ))}
      </Table>
      {devices.length > MOST_LINKED && <p class="faint">Only the first {MOST_LINKED} devices are shown.</p>}
    </>
  );
}

// Who is affected by a drain.
function Affected({ tasks }: { tasks: Task[] }) {
  const jobs = [...new Set(tasks.map((task) => task.job ?? ""))].sort();
  if (jobs.length === 0) return <p>Nothing that you may see runs there.</p>;
  return (
    <>
      <p>
        Affected: {tasks.length} tasks of {jobs.length} jobs, which are stopped there and started elsewhere:
      </p>
      <ul class="short">
        {jobs.map((job) => (
          <li key={job}>
            <bdi>{job}</bdi>
          </li>
        ))}
      </ul>
    </>
  );
}

function Actions({ data: { node, tasks }, act }: { data: Data; act: (action: Action) => void }) {
  const may = useMay("cluster.operate");
  if (!may) return null;
  const { name } = node;
  const reason = "from the web page";
  const held = node.status?.cordoned || node.status?.draining || node.status?.drain;
  return (
    <div class="row" role="group" aria-label="Change this node">
      {!node.status?.cordoned && (
        <button
          type="button"
          onClick={() =>
            act({
              title: `Cordon ${name}`,
              detail: <p>It takes no new tasks; {tasks.length} tasks there go on.</p>,
              command: `berth node cordon ${name} --reason "${reason}"`,
              run: (id) => call("NodeService.CordonNode", { name, reason }, undefined, id),
            })
          }
        >
          Cordon
        </button>
      )}
      {!node.status?.draining && (
        <button
          type="button"
          class="danger"
          onClick={() =>
            act({
              title: `Drain ${name}`,
              detail: <Affected tasks={tasks} />,
              command: `berth node drain ${name} --reason "${reason}"`,
              danger: true,
              run: (id) => call("NodeService.DrainNode", { name, reason }, undefined, id),
            })
          }
        >
          Drain
        </button>
      )}
      {held && (
        <button
          type="button"
          onClick={() =>
            act({
              title: `Uncordon ${name}`,
              detail: <p>It takes tasks again; its faults and refusals are forgotten.</p>,
              command: `berth node uncordon ${name}`,
              run: (id) => call("NodeService.UncordonNode", { name }, undefined, id),
            })
          }
        >
          Uncordon
        </button>
      )}
    </div>
  );
}

export function Node({ name }: { name: string }) {
  const loaded = useLoad((signal) => read(name, signal), [name], (change) => change.node === name, 1500);
  const [action, setAction] = useState<Action>();
  return (
    <>
      <h1>Node {name}</h1>
      <Show of={loaded}>
        {(data) => {
          const { node, tasks } = data;
          return (
            <>
              <Facts rows={factsOf(node)} />
              <Actions data={data} act={setAction} />
              <div class="cards">
                {resourcesIn(node.status?.capacity).map((resource) => {
                  const total = resourceOf(node.status?.capacity, resource) ?? 0;
                  const used = resourceOf(node.status?.allocated, resource) ?? 0;
                  return (
                    <section class="card" key={resource} aria-label={resourceName(resource)}>
                      <h2>{resourceName(resource)}</h2>
                      <p>
                        {amount(resource, used)} of {amount(resource, total)}
                      </p>
                      <Bar label={resourceName(resource)} total={total} parts={[{ label: "used", value: used, tone: "fill-used" }]} />
                    </section>
                  );
                })}
              </div>
              <Devices node={node} tasks={tasks} />
              <Links node={node} />
              {tasks.length > 0 && (
                <Table caption="Tasks here" head={<Heads names={["Job", "Task", "State", "Devices", "Started"]} />}>
                  {tasks.map((task) => (
                    <tr key={`${task.job}/${taskName(task)}`}>
                      <th scope="row">
                        <a href={pathTo("job", task.job ?? "")}>
                          <bdi>{task.job}</bdi>
                        </a>
                      </th>
                      <td>{taskName(task)}</td>
                      <td>
                        <State of={task.state} />
                      </td>
                      <td class="number">{(task.devices ?? []).length}</td>
                      <td>
                        <Time at={task.startTime} />
                      </td>
                    </tr>
                  ))}
                </Table>
              )}
              <h2>Labels</h2>
              <ul class="short">
                {Object.entries(node.inventory?.labels ?? {}).map(([key, value]) => (
                  <li key={key}>
                    <code>
                      {key}={value}
                    </code>
                  </li>
                ))}
              </ul>
              <p class="faint">As of {clock(loaded.at)}.</p>
            </>
          );
        }}
      </Show>
      {action && <ActionDialog action={action} close={() => setAction(undefined)} />}
    </>
  );
}
