// A terminal in a task: berth-web's events, and calls that bring what is typed, one after the other.
import { ApiError, errorOf, post } from "./api";
import { session } from "./session";

export interface TerminalSize {
  rows: number;
  columns: number;
}

export interface TerminalTarget {
  job: string;
  task: string;
  command?: string[];
  attach?: boolean;
}

export interface TerminalEvents {
  output: (bytes: Uint8Array) => void;
  // `why` is empty if the command ended by itself.
  end: (exitCode: number | undefined, why: string) => void;
}

const MOST_BYTES = 32_000; // of one call

export function bytesOf(base64: string): Uint8Array {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
  return bytes;
}

function base64Of(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

export class TerminalLink {
  private readonly gone = new AbortController();
  private id = "";
  private typed: Uint8Array[] = [];
  private size: TerminalSize | undefined;
  private sending = false;
  private over = false;

  constructor(
    target: TerminalTarget,
    size: TerminalSize,
    private readonly events: TerminalEvents,
  ) {
    void this.read({ ...target, terminal: size });
  }

  send(text: string): void {
    if (this.over) return;
    this.typed.push(new TextEncoder().encode(text));
    void this.sendNext();
  }

  resize(size: TerminalSize): void {
    if (this.over) return;
    this.size = size;
    void this.sendNext();
  }

  close(): void {
    this.over = true;
    this.gone.abort();
  }

  private async read(open: unknown): Promise<void> {
    const headers: Record<string, string> = { "Content-Type": "application/json" };
    if (session.value?.csrf) headers["Berth-Csrf"] = session.value.csrf;
    try {
      const response = await fetch("/api/terminal", { method: "POST", headers, body: JSON.stringify({ open }), signal: this.gone.signal });
      if (!response.ok || !response.body) throw await errorOf(response);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const parts = (text + value).split("\n\n");
        text = parts.pop() ?? "";
        for (const part of parts) this.take(part);
      }
      this.finish(undefined, "the connection to berth-web is lost");
    } catch (error) {
      if (!this.gone.signal.aborted) this.finish(undefined, error instanceof ApiError ? error.message : "the connection to berth-web is lost");
    }
  }

  private take(event: string): void {
    const name = /^event: (.*)$/m.exec(event)?.[1];
    const data = /^data: (.*)$/m.exec(event)?.[1];
    if (!name || !data) return; // a heartbeat
    const body = JSON.parse(data) as { id?: string; data?: string; code?: string; message?: string; exitCode?: number };
    if (name === "opened") {
      this.id = body.id ?? "";
      void this.sendNext();
    } else if (name === "output") {
      this.events.output(bytesOf(body.data ?? ""));
    } else if (name === "end") {
      this.finish(body.exitCode, body.code ? (body.message ?? body.code) : "");
    }
  }

  private finish(exitCode: number | undefined, why: string): void {
    if (this.over) return;
    this.over = true;
    this.events.end(exitCode, why);
  }

  // One call at a time, so that nothing is overtaken.
  private async sendNext(): Promise<void> {
    if (this.sending || this.over || !this.id || (this.typed.length === 0 && !this.size)) return;
    this.sending = true;
    const all = this.typed.reduce((sum, part) => sum + part.length, 0);
    const joined = new Uint8Array(all);
    this.typed.reduce((at, part) => (joined.set(part, at), at + part.length), 0);
    const now = joined.subarray(0, MOST_BYTES);
    const resize = this.size;
    this.typed = all > now.length ? [joined.subarray(now.length)] : [];
    this.size = undefined;
    try {
      await post("/api/terminal/input", { id: this.id, ...(now.length > 0 ? { input: base64Of(now) } : {}), ...(resize ? { resize } : {}) });
    } catch (error) {
      // What the command does not read now, it may read later.
      const full = error instanceof ApiError && error.code === "resource_exhausted";
      if (full) {
        this.typed.unshift(now);
        this.size ??= resize;
        await new Promise((later) => setTimeout(later, 300));
      }
    }
    this.sending = false;
    void this.sendNext();
  }
}
