// Calls of berth.v1 through berth-web, and the parts of its messages that the pages use. Fields with default values are
// absent. Times are RFC 3339, durations "3600s".
import { session, forgetSession } from "./session";

export interface ApiErrorBody {
  code: string;
  message: string;
  details?: { field?: string; description?: string }[];
}

export class ApiError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly details: string[] = [],
  ) {
    super(message);
  }
}

export type Counts = Record<string, number>;

export interface ResourceList {
  cpu?: number; // thousandths of a core
  memory?: number; // bytes
  scratch?: number;
  counts?: Counts;
}

export interface WaitReason {
  code: string;
  resource?: string;
  needed?: number;
  free?: number;
  limit?: number;
  queue?: string;
  job?: string;
  group?: string;
  detail?: string;
  until?: string;
  nodes?: number;
  never?: boolean;
}

export interface Reservation {
  start?: string;
  end?: string;
  nodes?: string[];
}

export interface JobSpec {
  queue?: string;
  priority?: number;
  walltime?: string;
  labels?: Record<string, string>;
  groups?: { name: string; replicas?: number; resources?: { devices?: { kind: string; count?: number }[] } }[];
  [field: string]: unknown;
}

export interface Job {
  name: string;
  uid?: number;
  spec?: JobSpec;
  status?: {
    state?: string;
    reasons?: WaitReason[];
    message?: string;
    retries?: number;
    startCount?: number;
    submitTime?: string;
    startTime?: string;
    endTime?: string;
    groups?: { name: string; tasks?: Counts }[];
    cancelReason?: string;
    reservation?: Reservation;
    evictions?: number;
    lastEviction?: { time?: string; reason?: string; beneficiary?: string; tasks?: number; detail?: string };
    conditions?: { kind: string; detail?: string }[];
    owner?: string;
    progress?: { step?: number; task?: string; status?: string; ready?: number };
    checkpoint?: { time?: string };
    hang?: { time?: string; task?: string };
  };
  etag?: string;
}

export interface Task {
  job?: string;
  group: string;
  index?: number;
  rank?: number;
  state?: string;
  attempt?: number;
  node?: string;
  devices?: string[];
  exitCode?: number;
  exitSignal?: number;
  message?: string;
  startTime?: string;
  endTime?: string;
}

export interface Explanation {
  state?: string;
  reasons?: WaitReason[];
  position?: number;
  queueJobs?: number;
  groups?: {
    group: string;
    neededTasks?: number;
    nodes?: number;
    constraints?: { name: string; nodesAlone?: number; nodesInOrder?: number; devicesInOrder?: number }[];
    nodesLeft?: number;
    tasksLeft?: number;
    blocking?: string[];
  }[];
  holders?: { job?: string; queue?: string; amount?: number; ends?: string }[];
  remedies?: Remedy[];
  estimate?: { likely?: string; earliest?: string; latest?: string; jobsBefore?: number; unknown?: string };
  reservation?: Reservation;
  topology?: { level?: string; kind?: string; neededTasks?: number; domains?: number; domainsNow?: number }[];
}

export interface Remedy {
  kind: string;
  field?: string;
  value?: string;
  detail?: string;
  startsNow?: boolean;
  waitUntil?: string;
  walltime?: string;
}

export interface Plan {
  startsNow?: boolean;
  placements?: { group: string; index?: number; node?: string }[];
  nominated?: { group: string; index?: number; node?: string }[];
  evictions?: { job?: string; queue?: string; tasks?: number; reason?: string; detail?: string }[];
  blockers?: WaitReason[];
  reservation?: Reservation;
  exhausted?: boolean;
}

export interface BerthNode {
  name: string;
  inventory?: {
    cpu?: number;
    memory?: number;
    devices?: Device[];
    labels?: Record<string, string>;
    taints?: { key?: string; value?: string; effect?: string }[];
    address?: string;
    os?: string;
    architecture?: string;
    topology?: DeviceTopology;
  };
  status?: {
    state?: string;
    cordoned?: boolean;
    draining?: boolean;
    reason?: string;
    agentVersion?: string;
    registeredTime?: string;
    capacity?: ResourceList;
    allocated?: ResourceList;
    free?: ResourceList;
    devicesInUse?: string[];
    sharesInUse?: Record<string, number>;
    tasks?: number;
    backoffUntil?: string;
    refusal?: string;
    domains?: Record<string, string>;
    faults?: number;
    drain?: { mode?: string; beginTime?: string; deadline?: string; devices?: string[] };
  };
}

export interface DeviceTopology {
  links?: { link?: string; count?: number; mbPerS?: number }[];
  between?: string; // base64: a byte for each pair (0,1) (0,2) … (1,2) …: 1 + the position in links; 0: unknown
}

export interface Device {
  kind: string;
  uuid: string;
  model?: string;
  memory?: number;
  numaNode?: number;
  pciBusId?: string;
  unhealthy?: boolean;
}

export interface Queue {
  name: string;
  spec?: { parent?: string; weight?: number; priority?: number; limit?: ResourceList };
  status?: {
    state?: string;
    allocated?: ResourceList;
    pending?: ResourceList;
    pendingJobs?: number;
    runningJobs?: number;
    heldJobs?: number;
    children?: string[];
  };
}

export interface QueueShares {
  queue: string;
  parent?: string;
  allocated?: ResourceList;
  guarantee?: ResourceList;
  deserved?: ResourceList;
  fairShare?: ResourceList;
  demand?: ResourceList;
  borrowed?: ResourceList;
  lent?: ResourceList;
  limit?: ResourceList;
  why?: string[];
}

export interface HyperNode {
  name: string;
  spec?: { tier?: number; tierName?: string; kind?: string; health?: string; healthReason?: string };
  status?: {
    parent?: string;
    nodes?: number;
    readyNodes?: number;
    degraded?: boolean;
    reason?: string;
    devices?: { kind: string; capacity?: number; free?: number }[];
    children?: number;
  };
}

export interface ClusterInfo {
  version?: string;
  revision?: number;
  jobs?: Counts;
  tasks?: Counts;
  nodes?: Counts;
  capacity?: ResourceList;
  allocated?: ResourceList;
  acceptingWork?: boolean;
  notAcceptingReason?: string;
  problems?: string[];
  pause?: { end?: string };
}

export function newRequestId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export async function errorOf(response: Response): Promise<ApiError> {
  try {
    const body = (await response.json()) as ApiErrorBody;
    const details = (body.details ?? []).map((entry) => `${entry.field ?? ""}: ${entry.description ?? ""}`);
    return new ApiError(body.code, body.message, details);
  } catch {
    return new ApiError("unavailable", `berth-web answered ${response.status}`);
  }
}

export async function post(path: string, body: unknown, requestId?: string, signal?: AbortSignal): Promise<unknown> {
  const headers: Record<string, string> = { "Content-Type": "application/json" };
  if (session.value?.csrf) headers["Berth-Csrf"] = session.value.csrf;
  if (requestId) headers["Berth-Request-Id"] = requestId;
  let response: Response;
  try {
    response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal: signal ?? null });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError("unavailable", "berth-web does not answer");
  }
  if (response.ok) return response.json();
  const failure = await errorOf(response);
  if (failure.code === "unauthenticated" && !path.startsWith("/api/sign-in")) forgetSession();
  throw failure;
}

// "JobService.GetJob"
export async function call<T>(method: string, request: unknown, signal?: AbortSignal, requestId?: string): Promise<T> {
  return (await post(`/berth.v1.${method.replace(".", "/")}`, request, requestId, signal)) as T;
}
