// The page of Berth.
import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { post } from "./api";
import { clock } from "./format";
import { liveStatus, restartLive, startLive } from "./live";
import { Job } from "./pages/job";
import { Jobs } from "./pages/jobs";
import { Node } from "./pages/node";
import { Nodes } from "./pages/nodes";
import { Overview } from "./pages/overview";
import { Queues } from "./pages/queues";
import { SignIn } from "./pages/sign_in";
import { Timeline } from "./pages/timeline";
import { Topology } from "./pages/topology";
import { catchLinks, place } from "./router";
import { readSession, session, sessionProblem } from "./session";

const PAGES: [string, string][] = [
  ["", "Overview"],
  ["queues", "Queues"],
  ["jobs", "Jobs"],
  ["nodes", "Nodes"],
  ["topology", "Topology"],
  ["timeline", "Timeline"],
];

function Page() {
  const [first = "", second] = place.value.path;
  if (first === "") return <Overview />;
  if (first === "queues") return <Queues />;
  if (first === "jobs") return <Jobs />;
  if (first === "job" && second) return <Job key={second} name={second} />;
  if (first === "nodes") return <Nodes />;
  if (first === "node" && second) return <Node key={second} name={second} />;
  if (first === "topology") return <Topology />;
  if (first === "timeline") return <Timeline />;
  return (
    <>
      <h1>Not found</h1>
      <p>
        There is no such page. <a href="/">Overview</a>
      </p>
    </>
  );
}

function titleOf(path: string[]): string {
  const page = PAGES.find(([name]) => name === (path[0] ?? ""))?.[1] ?? (path[0] === "job" ? "Job" : "Node");
  return path[1] ? `${path[1]} · ${page} · Berth` : `${page} · Berth`;
}

function Live() {
  const { live, since, why } = liveStatus.value;
  return (
    <p class={`live ${live ? "good" : "bad"}`} role="status">
      <span aria-hidden="true">{live ? "●" : "▲"}</span> <span>{live ? "Live" : `Not live since ${clock(since)}: ${why}`}</span>
    </p>
  );
}

function signOut() {
  void post("/api/sign-out", {}).then(readSession).then(restartLive);
}

function Shell() {
  const main = useRef<HTMLElement>(null);
  const here = place.value.path.slice(0, 2).join("/");
  const began = useRef(here);
  useEffect(() => {
    document.title = titleOf(place.value.path);
    // Readers of screens hear where they are.
    if (began.current !== here) main.current?.focus();
    began.current = here;
  }, [here]);
  const section = { job: "jobs", node: "nodes" }[place.value.path[0] ?? ""] ?? place.value.path[0] ?? "";
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header>
        <a class="brand" href="/">
          Berth
        </a>
        <nav aria-label="Pages">
          <ul>
            {PAGES.map(([path, text]) => (
              <li key={path}>
                <a href={`/${path}`} aria-current={path === section ? "page" : undefined}>
                  {text}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <Live />
        {session.value?.mode === "SIGNED_IN" && (
          <span class="row">
            <span>{session.value.user}</span>
            <button type="button" onClick={signOut}>
              Sign out
            </button>
          </span>
        )}
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        <Page />
      </main>
      <footer>
        Berth {session.value?.version} · <a href="/licenses.txt">Licences</a>
      </footer>
    </>
  );
}

function App() {
  if (session.value === null) return <p role="status">{sessionProblem.value || "Reading…"}</p>;
  if (session.value.mode === "SIGNED_OUT") return <SignIn />;
  return <Shell />;
}

const root = document.getElementById("app");
const script = document.querySelector<HTMLScriptElement>("script[data-live]");
if (root && script?.dataset["live"]) {
  startLive(script.dataset["live"]);
  document.addEventListener("click", catchLinks);
  void readSession();
  render(<App />, root);
}
