// Amounts, times and states as texts.
import type { ResourceList, Task, WaitReason } from "./api";

export function stateText(state: string | undefined): string {
  const text = (state ?? "").replace(/^(JOB|TASK|NODE|QUEUE)_/, "").toLowerCase();
  return text ? text[0]!.toUpperCase() + text.slice(1) : "Unknown";
}

export function number(value: number | undefined): string {
  return Math.round((value ?? 0) * 1000) / 1000 === Math.round(value ?? 0)
    ? Math.round(value ?? 0).toLocaleString("en")
    : (value ?? 0).toFixed(2);
}

const BYTES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(value: number): string {
  let unit = 0;
  while (value >= 1024 && unit < BYTES.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString("en") : value.toFixed(1)} ${BYTES[unit]}`;
}

export function amount(resource: string, value: number | undefined): string {
  if (value === undefined) return "0";
  if (resource === "cpu") return number(value / 1000);
  if (resource === "memory" || resource === "scratch") return bytes(value);
  return number(value);
}

export function resourceOf(list: ResourceList | undefined, resource: string): number | undefined {
  if (resource === "cpu" || resource === "memory" || resource === "scratch") return list?.[resource];
  return list?.counts?.[resource];
}

// Devices first.
export function resourcesIn(...lists: (ResourceList | undefined)[]): string[] {
  const kinds = new Set<string>();
  for (const list of lists) for (const kind of Object.keys(list?.counts ?? {})) kinds.add(kind);
  return [...[...kinds].sort(), "cpu", "memory"];
}

export function resourceName(resource: string): string {
  if (resource === "gpu" || resource === "npu" || resource === "nic") return `${resource.toUpperCase()}s`;
  if (resource === "cpu") return "CPU cores";
  return resource === "memory" ? "Memory" : resource;
}

const DAY = 86_400;

export function duration(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < DAY) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / DAY)} d ${Math.floor((s % DAY) / 3600)} h`;
}

// "3600s"
export function secondsOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number.parseFloat(text);
}

export function clock(ms: number): string {
  return new Date(ms).toLocaleTimeString("en-GB");
}

export function day(ms: number): string {
  const date = new Date(ms);
  const pad = (value: number) => String(value).padStart(2, "0");
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} ${clock(ms)}`;
}

export function reasonText(reason: WaitReason): string {
  const resource = reason.resource ?? "";
  const need = reason.needed !== undefined ? ` needs ${amount(resource, reason.needed)} ${resource}` : "";
  const free = reason.free !== undefined ? `, free ${amount(resource, reason.free)}` : "";
  const of = [reason.queue && `queue ${reason.queue}`, reason.job && `job ${reason.job}`, reason.group && `group ${reason.group}`]
    .filter(Boolean)
    .join(", ");
  const name = reason.code.toLowerCase().replaceAll("_", " ");
  return [`${name}${need}${free}`, of, reason.detail, reason.never && "can never start as things are"]
    .filter(Boolean)
    .join(" · ");
}

export function taskName(task: Task): string {
  return `${task.group}-${task.index ?? 0}`;
}

export function shortUuid(uuid: string): string {
  return uuid.length > 20 ? `${uuid.slice(0, 18)}…` : uuid;
}
