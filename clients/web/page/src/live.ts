// What changes in the cluster, for the pages.
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "./api";
import { LiveMessage, LiveSource } from "./live_worker";
import { forgetSession } from "./session";

export interface Change {
  type: string;
  job?: string;
  task?: string;
  node?: string;
  queue?: string;
  hyperNode?: string;
  jobState?: string;
  taskState?: string;
  time?: string;
  message?: string;
  exitCode?: number;
}

export interface LiveStatus {
  live: boolean;
  since: number; // when it became so
  why: string;
}

export const liveStatus = signal<LiveStatus>({ live: false, since: Date.now(), why: "connecting" });

type Listener = (changes: Change[] | "all") => void;
const listeners = new Set<Listener>();

function tell(changes: Change[] | "all"): void {
  for (const listener of [...listeners]) listener(changes);
}

function take({ event, data }: LiveMessage): void {
  if (event === "changes") {
    const body = JSON.parse(data) as { events?: Change[]; more?: number };
    tell(body.more ? "all" : (body.events ?? []));
  } else if (event === "reset") {
    tell("all");
  } else if (event === "state") {
    const { live, why } = JSON.parse(data) as { live?: boolean; why?: string };
    const before = liveStatus.value;
    if (before.live !== !!live || before.why !== (why ?? "")) {
      liveStatus.value = { live: !!live, since: before.live === !!live ? before.since : Date.now(), why: why ?? "" };
    }
    if (live && !before.live) tell("all");
  } else if (event === "end") {
    forgetSession();
  }
}

let restart: () => void = () => {};

export function startLive(workerUrl: string): void {
  if (typeof SharedWorker === "undefined") {
    const source = new LiveSource(take);
    source.start();
    restart = () => source.restart();
    return;
  }
  const worker = new SharedWorker(trusted(workerUrl) as string, { name: "berth-live" });
  worker.port.onmessage = (message: MessageEvent<LiveMessage>) => take(message.data);
  restart = () => worker.port.postMessage("restart");
  addEventListener("pagehide", () => worker.port.postMessage("leave"));
  addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload();
  });
}

// After a sign-in.
export function restartLive(): void {
  restart();
}

// The only script that the page starts. The server's policy allows this name and no other.
function trusted(url: string): unknown {
  const factory = (globalThis as { trustedTypes?: { createPolicy: (name: string, rules: object) => unknown } })
    .trustedTypes;
  if (!factory) return url;
  const policy = factory.createPolicy("berth-live", {
    createScriptURL: (text: string) => {
      if (text !== url) throw new TypeError("not a script of Berth");
      return text;
    },
  }) as { createScriptURL: (text: string) => unknown };
  return policy.createScriptURL(url);
}

export function useChanges(listener: Listener, deps: unknown[]): void {
  useEffect(() => {
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
    };
  }, deps);
}

export interface Loaded<T> {
  data: T | undefined;
  error: ApiError | undefined;
  at: number; // when `data` was read
  reload: () => void;
}

const AGAIN_MS = 2000;

// Reads what a page shows, and again when something changed that `touches` it, at most every `everyMs`. While reading
// fails, the last data stays, with the error.
export function useLoad<T>(
  load: (signal: AbortSignal) => Promise<T>,
  deps: unknown[],
  touches: (change: Change) => boolean,
  everyMs = 1000,
): Loaded<T> {
  const [state, setState] = useState<Omit<Loaded<T>, "reload">>({ data: undefined, error: undefined, at: 0 });
  const control = useRef({ wanted: false, busy: false, last: 0, run: () => {} });
  useEffect(() => {
    const abort = new AbortController();
    let timer = 0;
    const own = { wanted: false, busy: false, last: 0, run: () => {} };
    own.run = () => {
      own.wanted = true;
      const wait = own.last + everyMs - Date.now();
      if (own.busy || document.hidden || timer) return;
      if (wait > 0) {
        timer = window.setTimeout(() => {
          timer = 0;
          own.run();
        }, wait);
        return;
      }
      own.wanted = false;
      own.busy = true;
      own.last = Date.now();
      load(abort.signal).then(
        (data) => finish(() => setState({ data, error: undefined, at: Date.now() })),
        (error: unknown) =>
          finish(() => {
            const failure = error instanceof ApiError ? error : new ApiError("internal", String(error));
            setState((before) => ({ ...before, error: failure }));
            if (failure.code === "unavailable" || failure.code === "resource_exhausted") {
              own.last = Date.now() + AGAIN_MS - everyMs;
              own.wanted = true;
            }
          }),
      );
    };
    const finish = (done: () => void) => {
      own.busy = false;
      if (abort.signal.aborted) return;
      done();
      if (own.wanted) own.run();
    };
    control.current = own;
    setState({ data: undefined, error: undefined, at: 0 });
    own.run();
    const listener: Listener = (changes) => {
      if (changes === "all" || changes.some(touches)) own.run();
    };
    const shown = () => {
      if (!document.hidden && own.wanted) own.run();
    };
    listeners.add(listener);
    document.addEventListener("visibilitychange", shown);
    return () => {
      abort.abort();
      clearTimeout(timer);
      listeners.delete(listener);
      document.removeEventListener("visibilitychange", shown);
    };
  }, deps);
  return { ...state, reload: () => control.current.run() };
}
