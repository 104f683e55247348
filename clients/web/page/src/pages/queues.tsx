import { useState } from "preact/hooks";
import { call, type Queue, type QueueShares, type ResourceList } from "../api";
import { amount, number, resourceName, resourceOf, resourcesIn } from "../format";
import { useLoad } from "../live";
import { type Action, ActionDialog, Bar, Picker, Show, State, Table, useMay } from "../parts";
import { place, setQuery } from "../router";

interface Row {
  queue: Queue;
  shares: QueueShares | undefined;
  depth: number;
}

async function read(signal: AbortSignal): Promise<Row[]> {
  const [list, shares] = await Promise.all([
    call<{ queues?: Queue[] }>("QueueService.ListQueues", { pageSize: 1000 }, signal),
    call<{ shares?: QueueShares[] }>("QueueService.ListQueueShares", {}, signal),
  ]);
  const byName = new Map((list.queues ?? []).map((queue) => [queue.name, queue]));
  const sharesOf = new Map((shares.shares ?? []).map((entry) => [entry.queue, entry]));
  const children = new Map<string, Queue[]>();
  for (const queue of byName.values()) {
    const parent = queue.spec?.parent && byName.has(queue.spec.parent) && queue.spec.parent !== queue.name ? queue.spec.parent : "";
    children.set(parent, [...(children.get(parent) ?? []), queue]);
  }
  const rows: Row[] = [];
  const walk = (parent: string, depth: number) => {
    for (const queue of children.get(parent) ?? []) {
      rows.push({ queue, shares: sharesOf.get(queue.name), depth });
      walk(queue.name, depth + 1);
    }
  };
  walk("", 0);
  return rows;
}

const COLUMNS: [string, keyof QueueShares][] = [
  ["Held", "allocated"],
  ["Guarantee", "guarantee"],
  ["Deserved", "deserved"],
  ["Fair share", "fairShare"],
  ["Borrowed", "borrowed"],
  ["Lent", "lent"],
  ["Demand", "demand"],
  ["Limit", "limit"],
];

// Above this many queues only who may change all of them gets buttons: one question instead of many.
const MOST_QUESTIONS = 30;

function QueueRow({ row, resource, many, act }: { row: Row; resource: string; many: boolean; act: (action: Action) => void }) {
  const { queue, shares, depth } = row;
  const may = useMay("queue.manage", many ? {} : { queue: queue.name });
  const value = (name: keyof QueueShares) => resourceOf(shares?.[name] as ResourceList | undefined, resource);
  const held = value("allocated") ?? 0;
  const borrowed = value("borrowed") ?? 0;
  const closed = queue.status?.state !== "QUEUE_OPEN";
  const verb = closed ? "open" : "close";
  return (
    <tr>
      <th scope="row" class={`depth-${Math.min(depth, 6)}`}>
        <a href={`/jobs?queue=${encodeURIComponent(queue.name)}`}>{queue.name}</a>
      </th>
      <td>
        <State of={queue.status?.state} />
      </td>
      <td>
        <Bar
          label={queue.name}
          total={Math.max(value("demand") ?? 0, value("deserved") ?? 0, held, 1)}
          parts={[
            { label: "held", value: held - borrowed, tone: "fill-used" },
            { label: "borrowed", value: borrowed, tone: "fill-borrowed" },
          ]}
        />
      </td>
      {COLUMNS.map(([title, name]) => (
        <td key={title} class="number">
          {value(name) === undefined ? (name === "limit" ? "none" : "0") : amount(resource, value(name))}
        </td>
      ))}
      <td class="number">{number(queue.status?.pendingJobs)}</td>
      <td class="number">{number(queue.status?.runningJobs)}</td>
      <td>{shares?.why?.join("; ")}</td>
      <td>
        {may && (
          <button
            type="button"
            onClick={() =>
              act({
                title: closed ? `Open ${queue.name}` : `Close ${queue.name}`,
                detail: closed ? undefined : <p>Running jobs go on; no job is accepted or started.</p>,
                command: `berth queue ${verb} ${queue.name}`,
                danger: !closed,
                run: (id) => call(closed ? "QueueService.OpenQueue" : "QueueService.CloseQueue", { name: queue.name }, undefined, id),
              })
            }
          >
            {closed ? "Open" : "Close"}
          </button>
        )}
      </td>
    </tr>
  );
}

export function Queues() {
  const loaded = useLoad(read, [], (change) => !!change.queue || !!change.job, 2000);
  const [action, setAction] = useState<Action>();
  return (
    <>
      <h1>Queues</h1>
      <Show of={loaded}>
        {(rows) => {
          const resources = resourcesIn(...rows.flatMap(({ shares }) => [shares?.allocated, shares?.deserved, shares?.demand, shares?.limit]));
          const resource = place.value.query.get("resource") ?? resources[0] ?? "cpu";
          return rows.length === 0 ? (
            <p>There are no queues that you may see.</p>
          ) : (
            <>
              <Picker label="Resource" value={resource} options={resources.map((name) => [name, resourceName(name)])} set={(value) => setQuery({ resource: value }, true)} />
              <Table
                caption={`Queues: ${resourceName(resource)}`}
                head={["Queue", "State", "Use", ...COLUMNS.map(([title]) => title), "Pending", "Running", "Bound by", "Change"].map((name) => (
                  <th scope="col" key={name}>
                    {name}
                  </th>
                ))}
              >
                {rows.map((row) => (
                  <QueueRow key={row.queue.name} row={row} resource={resource} many={rows.length > MOST_QUESTIONS} act={setAction} />
                ))}
              </Table>
            </>
          );
        }}
      </Show>
      {action && <ActionDialog action={action} close={() => setAction(undefined)} />}
    </>
  );
}
