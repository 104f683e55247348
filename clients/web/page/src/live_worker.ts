// Shared by all pages of a browser: one stream of changes from berth-web, for as long as a page is open.

const AGAIN_MS = 2000; // after a refusal; then longer and longer
const LONGEST_AGAIN_MS = 30_000;
const SILENT_MS = 25_000; // berth-web says something every 10 seconds

export interface LiveMessage {
  event: "changes" | "state" | "reset" | "end" | "alive";
  data: string;
}

type Sink = (message: LiveMessage) => void;

export class LiveSource {
  private source: EventSource | null = null;
  private heard = 0;
  private wait = AGAIN_MS;
  private lastState: LiveMessage = away("connecting");

  constructor(private readonly sink: Sink) {
    setInterval(() => this.check(), 5000);
  }

  get state(): LiveMessage {
    return this.lastState;
  }

  start(): void {
    this.source?.close();
    this.heard = Date.now();
    const source = new EventSource("/api/watch");
    this.source = source;
    for (const event of ["changes", "state", "reset", "end", "alive"] as const) {
      source.addEventListener(event, (message: MessageEvent<string>) => this.take({ event, data: message.data }));
    }
    source.onerror = () => {
      this.take(away("the connection to berth-web is lost"));
      // Closed for good: it was refused. Otherwise the browser connects again by itself.
      if (source.readyState === EventSource.CLOSED && this.source === source) this.again();
    };
  }

  // Somebody has signed in.
  restart(): void {
    this.wait = AGAIN_MS;
    this.start();
  }

  private take(message: LiveMessage): void {
    this.heard = Date.now();
    if (message.event === "alive" || message.event === "changes") this.wait = AGAIN_MS;
    if (message.event === "state") this.lastState = message;
    this.sink(message);
    if (message.event === "end") {
      this.source?.close();
      this.again();
    }
  }

  private again(): void {
    const source = this.source;
    setTimeout(() => {
      if (this.source === source) this.start();
    }, this.wait);
    this.wait = Math.min(2 * this.wait, LONGEST_AGAIN_MS);
  }

  private check(): void {
    if (Date.now() - this.heard < SILENT_MS) return;
    this.take(away("berth-web is silent"));
    this.start();
  }
}

function away(why: string): LiveMessage {
  return { event: "state", data: JSON.stringify({ live: false, why }) };
}

// In a SharedWorker.
interface WorkerScope {
  onconnect: ((event: MessageEvent) => void) | null;
}
if (typeof document === "undefined") {
  const ports: MessagePort[] = [];
  const live = new LiveSource((message) => ports.forEach((port) => port.postMessage(message)));
  live.start();
  (self as unknown as WorkerScope).onconnect = (event) => {
    const port = event.ports[0];
    if (!port) return;
    ports.push(port);
    port.onmessage = (message: MessageEvent<string>) => {
      if (message.data === "restart") live.restart();
      if (message.data === "leave") ports.splice(ports.indexOf(port), 1);
    };
    port.postMessage(live.state);
  };
}
