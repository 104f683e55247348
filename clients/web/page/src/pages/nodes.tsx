import { call, type BerthNode } from "../api";
import { amount, number, resourceOf, resourcesIn } from "../format";
import { useLoad } from "../live";
import { Bar, Heads, Pager, Picker, Search, Show, State, Table } from "../parts";
import { pathTo, place, setQuery } from "../router";

const PAGE_SIZE = 100;

interface Data {
  nodes?: BerthNode[];
  nextPageToken?: string;
}

export function nodeState(node: BerthNode): string {
  const state = node.status?.state ?? "";
  if (state !== "NODE_READY") return state;
  if (node.status?.draining) return "DRAINING";
  return node.status?.cordoned ? "CORDONED" : state;
}

// The first kind of device, or the processors.
export function mainUse(node: BerthNode): { resource: string; used: number; total: number } {
  const resource = resourcesIn(node.status?.capacity)[0] ?? "cpu";
  return { resource, used: resourceOf(node.status?.allocated, resource) ?? 0, total: resourceOf(node.status?.capacity, resource) ?? 0 };
}

function requestOf(query: URLSearchParams): object {
  const filter: Record<string, unknown> = {};
  const state = query.get("state");
  if (state) filter["states"] = [state];
  const label = query.get("label");
  if (label) filter["labels"] = { [label.split("=")[0] ?? ""]: label.split("=").slice(1).join("=") };
  return { pageSize: PAGE_SIZE, pageToken: query.get("page") ?? "", filter };
}

function NodeRow({ node }: { node: BerthNode }) {
  const { resource, used, total } = mainUse(node);
  const status = node.status ?? {};
  return (
    <tr>
      <th scope="row">
        <a href={pathTo("node", node.name)}>{node.name}</a>
      </th>
      <td>
        <State of={nodeState(node)} />
      </td>
      <td>
        <Bar label={resource} total={total} parts={[{ label: "used", value: used, tone: "fill-used" }]} />
      </td>
      <td class="number">
        {amount(resource, used)} / {amount(resource, total)} {resource}
      </td>
      <td class="number">
        {amount("cpu", status.allocated?.cpu)} / {amount("cpu", status.capacity?.cpu)}
      </td>
      <td class="number">
        {amount("memory", status.allocated?.memory ?? 0)} / {amount("memory", status.capacity?.memory ?? 0)}
      </td>
      <td class="number">{number(status.tasks)}</td>
      <td>{status.domains?.["network"] ?? ""}</td>
      <td class="reason">
        <bdi>{status.reason || status.refusal}</bdi>
      </td>
    </tr>
  );
}

export function Nodes() {
  const { query, text } = place.value;
  const loaded = useLoad((signal) => call<Data>("NodeService.ListNodes", requestOf(query), signal), [text], (change) => !!change.node || !!change.task, 2000);
  return (
    <>
      <h1>Nodes</h1>
      <form class="row" role="search" aria-label="Filter nodes" onSubmit={(event) => event.preventDefault()}>
        <Picker
          label="State"
          value={query.get("state") ?? ""}
          options={[
            ["", "All"],
            ["NODE_READY", "Ready"],
            ["NODE_SILENT", "Silent"],
            ["NODE_LOST", "Lost"],
          ]}
          set={(value) => setQuery({ state: value, page: "" })}
        />
        <Search label="Label" hint="key=value" value={query.get("label") ?? ""} set={(value) => setQuery({ label: value, page: "" })} />
        <Search label="Go to node" value="" set={(value) => value && setQuery({ find: value })} />
      </form>
      {query.get("find") && (
        <p>
          <a href={pathTo("node", query.get("find") ?? "")}>Node {query.get("find")}</a>
        </p>
      )}
      <Show of={loaded}>
        {({ nodes = [], nextPageToken }) => (
          <>
            {nodes.length === 0 ? (
              <p>No nodes match.</p>
            ) : (
              <Table caption="Nodes" head={<Heads names={["Node", "State", "Use", "Devices", "CPU cores", "Memory", "Tasks", "Domain", "Note"]} />}>
                {nodes.map((node) => (
                  <NodeRow key={node.name} node={node} />
                ))}
              </Table>
            )}
            <Pager first={!query.get("page")} next={nextPageToken} go={(token) => setQuery({ page: token })} />
          </>
        )}
      </Show>
    </>
  );
}
