// What several pages are made of.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { ApiError, call, newRequestId } from "./api";
import { clock, day, duration, stateText } from "./format";
import type { Loaded } from "./live";
import { session } from "./session";

const TONES: Record<string, string> = {
  RUNNING: "good",
  SUCCEEDED: "good",
  READY: "good",
  OPEN: "good",
  PENDING: "wait",
  HELD: "wait",
  BINDING: "wait",
  SUSPENDED: "wait",
  RESTARTING: "wait",
  COMPLETING: "wait",
  CORDONED: "wait",
  DRAINING: "wait",
  CLOSING: "wait",
  FAILED: "bad",
  LOST: "bad",
  SILENT: "bad",
};
const SHAPES: Record<string, string> = { good: "●", wait: "◐", bad: "▲", calm: "○" };

// Shape and text, not only a colour.
export function State({ of }: { of: string | undefined }) {
  const tone = TONES[(of ?? "").replace(/^(JOB|TASK|NODE|QUEUE)_/, "")] ?? "calm";
  return (
    <span class={`state ${tone}`}>
      <span aria-hidden="true">{SHAPES[tone]}</span> {stateText(of)}
    </span>
  );
}

export function Time({ at }: { at: string | undefined }) {
  if (!at) return <span class="faint">–</span>;
  const ms = Date.parse(at);
  return <time dateTime={at}>{day(ms)}</time>;
}

export function Ago({ at }: { at: string | undefined }) {
  if (!at) return <span class="faint">–</span>;
  const seconds = (Date.now() - Date.parse(at)) / 1000;
  const text = seconds >= 0 ? `${duration(seconds)} ago` : `in ${duration(-seconds)}`;
  return (
    <time dateTime={at} title={day(Date.parse(at))}>
      {text}
    </time>
  );
}

export interface BarPart {
  label: string;
  value: number;
  tone: string; // a class of the style sheet
}

// A bar of parts, and the same as text.
export function Bar({ total, parts, label }: { total: number; parts: BarPart[]; label: string }) {
  let x = 0;
  const shown = parts.filter((part) => part.value > 0 && total > 0);
  const text = shown.map((part) => `${part.label} ${Math.round((100 * part.value) / total)}%`).join(", ") || "nothing";
  return (
    <svg class="bar" role="img" aria-label={`${label}: ${text}`} viewBox="0 0 100 10" preserveAspectRatio="none">
      <rect class="bar-empty" width="100" height="10" />
      {shown.map((part) => {
        const width = Math.min(100 - x, (100 * part.value) / total);
        const rect = <rect key={part.label} class={part.tone} x={x} width={width} height="10" />;
        x += width;
        return rect;
      })}
    </svg>
  );
}

export function ErrorNote({ error, at }: { error: ApiError | undefined; at?: number }) {
  if (!error) return null;
  return (
    <div class="note bad" role="alert">
      <strong>{error.code === "unavailable" ? "No answer" : error.code.replaceAll("_", " ")}:</strong> {error.message}
      {error.details.length > 0 && (
        <ul>
          {error.details.map((detail) => (
            <li key={detail}>{detail}</li>
          ))}
        </ul>
      )}
      {at ? <p>What is shown is from {clock(at)}.</p> : null}
    </div>
  );
}

// The data once it is there; errors above it.
export function Show<T>({ of, children }: { of: Loaded<T>; children: (data: T) => ComponentChildren }) {
  return (
    <>
      <ErrorNote error={of.error} at={of.at} />
      {of.data === undefined ? of.error ? null : <p class="faint">Reading…</p> : children(of.data)}
    </>
  );
}

// A table that scrolls sideways by itself on narrow screens.
export function Table(props: { caption: string; head: ComponentChildren; children: ComponentChildren; class?: string }) {
  return (
    <div class="scroll" role="region" aria-label={props.caption} tabIndex={0}>
      <table class={props.class}>
        <caption>{props.caption}</caption>
        <thead>
          <tr>{props.head}</tr>
        </thead>
        <tbody>{props.children}</tbody>
      </table>
    </div>
  );
}

export function Heads({ names }: { names: string[] }) {
  return (
    <>
      {names.map((name) => (
        <th scope="col" key={name}>
          {name}
        </th>
      ))}
    </>
  );
}

export function Facts({ rows }: { rows: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

const asked = new Map<string, Promise<boolean>>();
const ASK_AGAIN_MS = 30_000;

function askMay(key: string, verb: string, about: { queue?: string; job?: string }): Promise<boolean> {
  const known = asked.get(key);
  if (known) return known;
  const answer = call<{ allowed?: boolean }>("AccessService.CheckAccess", { verb, ...about }).then(
    ({ allowed }) => !!allowed,
    () => false,
  );
  asked.set(key, answer);
  setTimeout(() => asked.delete(key), ASK_AGAIN_MS);
  return answer;
}

// Whether the person may do this; false until berthd has answered.
export function useMay(verb: string, about: { queue?: string; job?: string } = {}): boolean {
  const [may, setMay] = useState(false);
  const key = [verb, about.queue ?? "", about.job ?? "", session.value?.csrf ?? ""].join("/");
  useEffect(() => {
    let current = true;
    void askMay(key, verb, about).then((answer) => current && setMay(answer));
    return () => {
      current = false;
    };
  }, [key]);
  return may;
}

export interface Action {
  title: string; // "Cancel 3 jobs"
  detail?: ComponentChildren;
  command: string; // what would do the same on the command line
  danger?: boolean;
  run: (requestId: string) => Promise<unknown>;
  done?: () => void;
}

// Asks before it acts, and shows the same as a command.
export function ActionDialog({ action, close }: { action: Action; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const id = useId();
  const [requestId] = useState(newRequestId);
  useEffect(() => dialog.current?.showModal(), []);
  const act = () => {
    setBusy(true);
    setError(undefined);
    action.run(requestId).then(
      () => {
        action.done?.();
        close();
      },
      (failure: unknown) => {
        setBusy(false);
        setError(failure instanceof ApiError ? failure : new ApiError("internal", String(failure)));
      },
    );
  };
  return (
    <dialog ref={dialog} aria-labelledby={id} onClose={close}>
      <h2 id={id}>{action.title}</h2>
      {action.detail}
      <p>
        The same on the command line: <code>{action.command}</code>
      </p>
      <ErrorNote error={error} />
      <div class="row">
        <button type="button" class={action.danger ? "danger" : "primary"} disabled={busy} onClick={act}>
          {action.title}
        </button>
        <button type="button" onClick={close}>
          Leave it
        </button>
      </div>
    </dialog>
  );
}

// Runs `one` for each name, four at a time; throws what went wrong.
export async function forEachName(names: string[], one: (name: string) => Promise<unknown>): Promise<void> {
  const problems: string[] = [];
  const rest = [...names];
  const work = async () => {
    for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
      try {
        await one(name);
      } catch (error) {
        problems.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  };
  await Promise.all([work(), work(), work(), work()]);
  if (problems.length > 0) {
    throw new ApiError("failed_precondition", `${problems.length} of ${names.length} did not work`, problems.slice(0, 20));
  }
}

export function Picker(props: { label: string; value: string; options: [string, string][]; set: (value: string) => void }) {
  const id = useId();
  return (
    <span class="field">
      <label for={id}>{props.label}</label>
      <select id={id} value={props.value} onChange={(event) => props.set(event.currentTarget.value)}>
        {props.options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </span>
  );
}

// A text filter: counts when the person stops typing.
export function Search(props: { label: string; value: string; set: (value: string) => void; hint?: string }) {
  const id = useId();
  const timer = useRef(0);
  return (
    <span class="field">
      <label for={id}>{props.label}</label>
      <input
        id={id}
        type="search"
        key={props.value}
        defaultValue={props.value}
        placeholder={props.hint}
        onInput={(event) => {
          const value = event.currentTarget.value.trim();
          clearTimeout(timer.current);
          timer.current = window.setTimeout(() => props.set(value), 400);
        }}
      />
    </span>
  );
}

export function Pager({ first, next, go }: { first: boolean; next: string | undefined; go: (token: string) => void }) {
  return (
    <nav class="row" aria-label="Pages of the list">
      <button type="button" disabled={first} onClick={() => go("")}>
        First page
      </button>
      <button type="button" disabled={first} onClick={() => history.back()}>
        Back
      </button>
      <button type="button" disabled={!next} onClick={() => go(next ?? "")}>
        Next page
      </button>
    </nav>
  );
}
