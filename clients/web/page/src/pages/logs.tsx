import { useEffect, useRef, useState } from "preact/hooks";
import { call, type Task } from "../api";
import { taskName } from "../format";
import { useLoad } from "../live";
import { Picker } from "../parts";
import { setQuery } from "../router";
import { bytesOf } from "../terminal_link";

const KEPT_CHARACTERS = 500_000;
const TAIL_LINES = 1000;

// Control sequences of terminals would be noise.
function plain(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replace(/\u001b\[[0-9;?]*[A-Za-z]/g, "").replace(/\r\n/g, "\n").replace(/\r/g, "\n");
}

function Output({ name, task }: { name: string; task: string }) {
  const [text, setText] = useState("");
  const [status, setStatus] = useState("Reading…");
  const [cut, setCut] = useState(false);
  const box = useRef<HTMLPreElement>(null);
  const follow = useRef(true);
  useEffect(() => {
    const query = new URLSearchParams({ job: name, task, tail: String(TAIL_LINES) });
    const source = new EventSource(`/api/logs?${query}`);
    const decoders: Record<string, TextDecoder> = {};
    let pending = "";
    let frame = 0;
    const flush = () => {
      frame = 0;
      const more = pending;
      pending = "";
      setText((before) => {
        const all = before + more;
        if (all.length > KEPT_CHARACTERS) setCut(true);
        return all.slice(-KEPT_CHARACTERS);
      });
    };
    source.addEventListener("output", (event: MessageEvent<string>) => {
      setStatus("Follows");
      const { data, stream } = JSON.parse(event.data) as { data?: string; stream?: string };
      if (!data) return;
      const decoder = (decoders[stream ?? ""] ??= new TextDecoder());
      pending += plain(decoder.decode(bytesOf(data), { stream: true }));
      frame ||= requestAnimationFrame(flush);
    });
    source.addEventListener("end", (event: MessageEvent<string>) => {
      const { code, message } = JSON.parse(event.data) as { code?: string; message?: string };
      setStatus(code ? `Ended: ${message ?? code}` : "Complete");
      source.close();
    });
    source.onerror = () => {
      // The browser would connect again and get everything twice.
      source.close();
      setStatus("The connection to berth-web is lost; reload the page to read again");
    };
    return () => {
      source.close();
      cancelAnimationFrame(frame);
    };
  }, [name, task]);
  useEffect(() => {
    if (follow.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  return (
    <>
      <p role="status">{status}</p>
      {cut && <p class="faint">Only the end is kept here: berth job logs {name}</p>}
      <pre
        ref={box}
        class="text log"
        tabIndex={0}
        aria-label="Output"
        onScroll={(event) => {
          const at = event.currentTarget;
          follow.current = at.scrollTop + at.clientHeight >= at.scrollHeight - 20;
        }}
      >
        {text}
      </pre>
    </>
  );
}

export function Logs({ name, task }: { name: string; task: string }) {
  const tasks = useLoad((signal) => call<{ tasks?: Task[] }>("JobService.ListTasks", { job: name, pageSize: 1000 }, signal), [name], () => false);
  const names = (tasks.data?.tasks ?? []).map(taskName);
  return (
    <>
      <Picker
        label="Task"
        value={task}
        options={[["", "Rank 0"], ...[...new Set(task && !names.includes(task) ? [task, ...names] : names)].map((entry): [string, string] => [entry, entry])]}
        set={(value) => setQuery({ task: value }, true)}
      />
      <Output key={task} name={name} task={task} />
    </>
  );
}
