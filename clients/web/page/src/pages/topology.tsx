import { useEffect, useRef, useState } from "preact/hooks";
import { call, type BerthNode, type HyperNode, type Task } from "../api";
import { number } from "../format";
import { useLoad } from "../live";
import { Heads, Picker, Search, Show, State, Table } from "../parts";
import { go, pathTo, place, setQuery } from "../router";
import { mainUse, nodeState } from "./nodes";

const MOST_NODES = 20_000;
const PAGE = 1000;

interface Data {
  domains: HyperNode[];
  nodes: BerthNode[];
  ofJob: Set<string> | undefined;
  cut: boolean;
}

async function pages<T>(method: string, request: object, take: (page: Record<string, unknown>) => T[], signal: AbortSignal): Promise<{ all: T[]; cut: boolean }> {
  const all: T[] = [];
  let pageToken = "";
  do {
    const page = await call<Record<string, unknown>>(method, { ...request, pageSize: PAGE, pageToken }, signal);
    all.push(...take(page));
    pageToken = (page["nextPageToken"] as string | undefined) ?? "";
  } while (pageToken && all.length < MOST_NODES);
  return { all, cut: !!pageToken };
}

async function read(kind: string, job: string, signal: AbortSignal): Promise<Data> {
  const [domains, nodes, tasks] = await Promise.all([
    pages<HyperNode>("HyperNodeService.ListHyperNodes", { kind }, (page) => (page["hyperNodes"] as HyperNode[] | undefined) ?? [], signal),
    pages<BerthNode>("NodeService.ListNodes", {}, (page) => (page["nodes"] as BerthNode[] | undefined) ?? [], signal),
    job ? pages<Task>("JobService.ListTasks", { job }, (page) => (page["tasks"] as Task[] | undefined) ?? [], signal) : undefined,
  ]);
  return {
    domains: domains.all,
    nodes: nodes.all,
    ofJob: tasks && new Set(tasks.all.map((task) => task.node ?? "")),
    cut: domains.cut || nodes.cut,
  };
}

// A box of the drawing, with everything below it.
interface Box {
  name: string;
  domain: HyperNode | undefined;
  boxes: Box[];
  nodes: BerthNode[];
  size: number; // nodes in it
}

function treeOf(data: Data, kind: string): Box {
  const boxes = new Map<string, Box>();
  for (const domain of data.domains) boxes.set(domain.name, { name: domain.name, domain, boxes: [], nodes: [], size: 0 });
  const root: Box = { name: "", domain: undefined, boxes: [], nodes: [], size: 0 };
  for (const box of boxes.values()) (boxes.get(box.domain?.status?.parent ?? "") ?? root).boxes.push(box);
  for (const node of data.nodes) (boxes.get(node.status?.domains?.[kind] ?? "") ?? root).nodes.push(node);
  const count = (box: Box): number => {
    box.size = box.nodes.length + box.boxes.reduce((sum, child) => sum + count(child), 0);
    return box.size;
  };
  count(root);
  return root;
}

interface Cell {
  x: number;
  y: number;
  size: number;
  node: BerthNode;
}
interface Frame {
  x: number;
  y: number;
  width: number;
  height: number;
  box: Box;
  depth: number;
}

const GAP = 3;
const HEAD = 16;

// Boxes flow in lines, as words do; the cells of a box are a block of about its width.
function layOut(root: Box, width: number, cell: number): { cells: Cell[]; frames: Frame[]; height: number } {
  const cells: Cell[] = [];
  const frames: Frame[] = [];
  const place = (box: Box, x: number, y: number, most: number, depth: number): { width: number; height: number } => {
    const inner = most - 2 * GAP;
    const head = depth > 0 ? HEAD : 0;
    let [cx, cy, line, widest] = [0, head, 0, 0];
    const begin = frames.length;
    if (depth > 0) frames.push({ x, y, width: 0, height: 0, box, depth });
    for (const child of box.boxes) {
      const wanted = Math.min(inner, Math.max(64, preferred(child, cell)));
      if (cx > 0 && cx + wanted > inner) [cx, cy, line] = [0, cy + line + GAP, 0];
      const used = place(child, x + GAP + cx, y + GAP + cy, wanted, depth + 1);
      cx += used.width + GAP;
      widest = Math.max(widest, cx);
      line = Math.max(line, used.height);
    }
    if (line > 0) [cx, cy] = [0, cy + line + GAP];
    const columns = Math.max(1, Math.floor(inner / cell));
    box.nodes.forEach((node, i) => {
      cells.push({ x: x + GAP + (i % columns) * cell, y: y + GAP + cy + Math.floor(i / columns) * cell, size: cell - 2, node });
    });
    widest = Math.max(widest, Math.min(columns, box.nodes.length) * cell, 58);
    const height = cy + Math.ceil(box.nodes.length / columns) * cell + 2 * GAP;
    const size = { width: Math.min(most, widest + 2 * GAP), height };
    if (depth > 0) Object.assign(frames[begin]!, size);
    return size;
  };
  const { height } = place(root, 0, 0, width, 0);
  return { cells, frames, height };
}

function preferred(box: Box, cell: number): number {
  if (box.boxes.length === 0) return Math.ceil(Math.sqrt(box.nodes.length * 2)) * cell + 2 * GAP;
  return Math.ceil(Math.sqrt(box.size * 3)) * cell + 2 * GAP * (box.boxes.length + 2);
}

const STATE_COLOURS: Record<string, string> = { NODE_READY: "--good", CORDONED: "--wait", DRAINING: "--wait", NODE_SILENT: "--bad", NODE_LOST: "--bad" };

function draw(canvas: HTMLCanvasElement, plan: ReturnType<typeof layOut>, width: number, colour: string, ofJob: Set<string> | undefined): void {
  const scale = devicePixelRatio || 1;
  canvas.width = width * scale;
  canvas.height = plan.height * scale;
  canvas.style.height = `${plan.height}px`;
  const context = canvas.getContext("2d");
  if (!context) return;
  const style = getComputedStyle(document.documentElement);
  const named = (name: string) => style.getPropertyValue(name).trim();
  context.scale(scale, scale);
  context.font = "11px system-ui, sans-serif";
  for (const { x, y, width: w, height: h, box } of plan.frames) {
    context.strokeStyle = box.domain?.status?.degraded ? named("--bad") : named("--line");
    context.lineWidth = box.domain?.status?.degraded ? 2 : 1;
    context.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
    context.fillStyle = named("--text");
    context.fillText(`${box.domain?.status?.degraded ? "▲ " : ""}${box.name}`, x + 4, y + 12, w - 8);
  }
  const [empty, used] = [named("--empty"), named("--used")];
  for (const { x, y, size, node } of plan.cells) {
    const { used: held, total } = mainUse(node);
    context.fillStyle = empty;
    context.fillRect(x, y, size, size);
    if (colour === "state") {
      context.fillStyle = named(STATE_COLOURS[nodeState(node)] ?? "--faint");
      context.fillRect(x, y, size, size);
    } else {
      const part = total > 0 ? Math.min(1, held / total) : 0;
      context.fillStyle = used;
      context.fillRect(x, y + size * (1 - part), size, size * part);
    }
    if (nodeState(node) !== "NODE_READY" || node.status?.cordoned) {
      context.strokeStyle = named(nodeState(node) === "CORDONED" || nodeState(node) === "DRAINING" ? "--wait" : "--bad");
      context.lineWidth = 2;
      context.beginPath();
      context.moveTo(x, y);
      context.lineTo(x + size, y + size);
      context.stroke();
    }
    if (ofJob?.has(node.name)) {
      context.strokeStyle = named("--accent");
      context.lineWidth = 3;
      context.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
    }
  }
}

function Drawing({ root, colour, ofJob }: { root: Box; colour: string; ofJob: Set<string> | undefined }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const plan = useRef<ReturnType<typeof layOut> | undefined>(undefined);
  const [width, setWidth] = useState(0);
  const [under, setUnder] = useState<BerthNode>();
  useEffect(() => {
    const parent = canvas.current?.parentElement;
    if (!parent) return undefined;
    const watch = new ResizeObserver(() => setWidth(parent.clientWidth));
    watch.observe(parent);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    if (!canvas.current || width === 0) return;
    plan.current = layOut(root, width, root.size > 2000 ? 10 : root.size > 300 ? 14 : 22);
    draw(canvas.current, plan.current, width, colour, ofJob);
  });
  const at = (event: MouseEvent) => plan.current?.cells.find(({ x, y, size }) => event.offsetX >= x && event.offsetX < x + size && event.offsetY >= y && event.offsetY < y + size)?.node;
  return (
    <>
      <div class="drawing">
        <canvas
          ref={canvas}
          role="img"
          aria-label={`${root.size} nodes in ${root.boxes.length} outermost domains; the table below says the same`}
          onMouseMove={(event) => setUnder(at(event))}
          onClick={(event) => {
            const node = at(event);
            if (node) go(pathTo("node", node.name));
          }}
        />
      </div>
      <p class="under">{under ? `${under.name}: ${number(mainUse(under).used)} of ${number(mainUse(under).total)} ${mainUse(under).resource} in use, ${nodeState(under).replace("NODE_", "").toLowerCase()}` : "A cell is a node, filled as far as it is in use. Click one to open it."}</p>
    </>
  );
}

function Rows({ box, depth }: { box: Box; depth: number }) {
  const { domain } = box;
  return (
    <>
      {domain && (
        <tr>
          <th scope="row" class={`depth-${Math.min(depth, 6)}`}>
            {domain.name}
          </th>
          <td>{domain.spec?.tierName || `tier ${domain.spec?.tier ?? 0}`}</td>
          <td class="number">
            {number(domain.status?.readyNodes)} / {number(domain.status?.nodes)}
          </td>
          <td>{(domain.status?.devices ?? []).map(({ kind, capacity, free }) => `${kind}: ${number(free)} of ${number(capacity)} free`).join(", ")}</td>
          <td>{domain.status?.degraded ? <span class="state bad">▲ Degraded: {domain.status.reason}</span> : <State of="READY" />}</td>
        </tr>
      )}
      {box.boxes.map((child) => (
        <Rows key={child.name} box={child} depth={depth + 1} />
      ))}
    </>
  );
}

export function Topology() {
  const { query } = place.value;
  const kind = query.get("kind") ?? "network";
  const job = query.get("job") ?? "";
  const colour = query.get("colour") ?? "use";
  const loaded = useLoad((signal) => read(kind, job, signal), [kind, job], (change) => !!change.node || !!change.hyperNode || !!change.task, 5000);
  return (
    <>
      <h1>Topology</h1>
      <div class="row">
        <Picker
          label="Colour"
          value={colour}
          options={[
            ["use", "Use"],
            ["state", "State"],
          ]}
          set={(value) => setQuery({ colour: value }, true)}
        />
        <Search label="Where a job lies" hint="job" value={job} set={(value) => setQuery({ job: value })} />
        <Search label="Kind of domains" value={kind} set={(value) => setQuery({ kind: value })} />
      </div>
      <Show of={loaded}>
        {(data) => {
          const root = treeOf(data, kind);
          return root.size === 0 ? (
            <p>There are no nodes.</p>
          ) : (
            <>
              {data.cut && <p class="note wait">Only the first {number(MOST_NODES)} nodes are drawn.</p>}
              {data.ofJob && (
                <p role="status">
                  {job} is on {number(data.ofJob.size)} nodes, framed below.
                </p>
              )}
              <Drawing root={root} colour={colour} ofJob={data.ofJob} />
              {data.domains.length > 0 && (
                <Table caption="Domains" head={<Heads names={["Domain", "Tier", "Ready nodes", "Devices", "Health"]} />}>
                  <Rows box={root} depth={-1} />
                </Table>
              )}
            </>
          );
        }}
      </Show>
    </>
  );
}
