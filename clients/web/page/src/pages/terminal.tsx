import { Terminal as Emulator } from "@xterm/headless";
import { useEffect, useRef, useState } from "preact/hooks";
import { call, type Task } from "../api";
import { taskName } from "../format";
import { useLoad } from "../live";
import { Picker, useMay } from "../parts";
import { setQuery } from "../router";
import { bytesOfKey } from "../terminal_keys";
import { TerminalLink, type TerminalSize, type TerminalTarget } from "../terminal_link";
import { Screen } from "../terminal_screen";

const KEPT_LINES = 500;
const SHELL = ["sh", "-c", "command -v bash >/dev/null 2>&1 && exec bash; exec sh"];

// As many characters as there is room for.
function sizeOf(box: HTMLElement, probe: HTMLElement): TerminalSize {
  const one = probe.getBoundingClientRect();
  const columns = Math.floor((box.clientWidth - 16) / (one.width / 10));
  const rows = Math.floor((box.clientHeight - 16) / one.height);
  return { columns: Math.max(20, Math.min(500, columns)), rows: Math.max(5, Math.min(200, rows)) };
}

function Session({ target, close }: { target: TerminalTarget; close: () => void }) {
  const box = useRef<HTMLDivElement>(null);
  const probe = useRef<HTMLSpanElement>(null);
  const keys = useRef<HTMLTextAreaElement>(null);
  const leave = useRef<HTMLButtonElement>(null);
  const emulator = useRef<Emulator>(null);
  const link = useRef<TerminalLink>(null);
  const [count, setCount] = useState(0);
  const [focused, setFocused] = useState(false);
  const [status, setStatus] = useState("Connected: keys go to the task. F6 leaves the terminal.");

  useEffect(() => {
    if (!box.current || !probe.current) return undefined;
    const size = sizeOf(box.current, probe.current);
    const screen = new Emulator({ cols: size.columns, rows: size.rows, scrollback: KEPT_LINES, allowProposedApi: true });
    emulator.current = screen;
    let frame = 0;
    const draw = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        setCount((before) => before + 1);
      });
    };
    const own = new TerminalLink(target, size, {
      output: (bytes) => screen.write(bytes, draw),
      end: (exitCode, why) => setStatus(why ? `Ended: ${why}` : `Ended${exitCode === undefined ? "" : ` with exit code ${exitCode}`}`),
    });
    link.current = own;
    screen.onData((text) => own.send(text)); // answers to the program's questions
    const resized = new ResizeObserver(() => {
      if (!box.current || !probe.current) return;
      const now = sizeOf(box.current, probe.current);
      if (now.columns === screen.cols && now.rows === screen.rows) return;
      screen.resize(now.columns, now.rows);
      own.resize(now);
      draw();
    });
    resized.observe(box.current);
    keys.current?.focus();
    return () => {
      resized.disconnect();
      own.close();
      cancelAnimationFrame(frame);
      screen.dispose();
    };
  }, [target]);
  useEffect(() => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [count]);

  const paste = (text: string) => {
    const plain = text.replace(/\r?\n/g, "\r");
    const bracketed = emulator.current?.modes.bracketedPasteMode;
    // What is pasted cannot end its own brackets.
    link.current?.send(bracketed ? `\x1b[200~${plain.replaceAll("\x1b", "")}\x1b[201~` : plain);
  };
  return (
    <>
      <p role="status">{status}</p>
      <div class="terminal-frame">
        <div ref={box} class="terminal" onClick={() => !window.getSelection()?.toString() && keys.current?.focus()}>
          <span ref={probe} class="t-probe" aria-hidden="true">
            0123456789
          </span>
          <div role="log" aria-label="Terminal" tabIndex={0}>
            {emulator.current && <Screen terminal={emulator.current} focused={focused} count={count} />}
          </div>
        </div>
        <textarea
          ref={keys}
          class="terminal-keys"
          aria-label="Keys for the task; F6 leaves"
          autocapitalize="off"
          autocomplete="off"
          spellcheck={false}
          rows={1}
          onFocus={() => setFocused(true)}
          onBlur={() => setFocused(false)}
          onKeyDown={(event) => {
            if (event.key === "F6") {
              leave.current?.focus();
              event.preventDefault();
              return;
            }
            const bytes = bytesOfKey(event, !!emulator.current?.modes.applicationCursorKeysMode);
            if (bytes === null) return;
            event.preventDefault();
            link.current?.send(bytes);
          }}
          onInput={(event) => {
            if ((event as InputEvent).isComposing) return;
            link.current?.send(event.currentTarget.value.replace(/\n/g, "\r"));
            event.currentTarget.value = "";
          }}
          onCompositionEnd={(event) => {
            link.current?.send(event.currentTarget.value);
            event.currentTarget.value = "";
          }}
          onPaste={(event) => {
            event.preventDefault();
            paste(event.clipboardData?.getData("text/plain") ?? "");
          }}
        />
      </div>
      <button ref={leave} type="button" onClick={close}>
        Close the terminal
      </button>
    </>
  );
}

// A terminal opens with a button and not with an address: a link must not start anything.
export function Terminal({ name, task }: { name: string; task: string }) {
  const may = useMay("job.exec", { job: name });
  const tasks = useLoad((signal) => call<{ tasks?: Task[] }>("JobService.ListTasks", { job: name, pageSize: 1000 }, signal), [name], (change) => change.job === name, 3000);
  const [target, setTarget] = useState<TerminalTarget>();
  const running = (tasks.data?.tasks ?? []).filter((one) => one.state === "TASK_RUNNING").map(taskName);
  if (!may) return <p>You may not run commands in this job.</p>;
  if (target) return <Session target={target} close={() => setTarget(undefined)} />;
  const chosen = task || running[0] || "";
  return (
    <>
      <Picker
        label="Task"
        value={chosen}
        options={[...new Set(task && !running.includes(task) ? [task, ...running] : running)].map((entry): [string, string] => [entry, entry])}
        set={(value) => setQuery({ task: value }, true)}
      />
      <p>A shell runs beside the task's own process, on its node and in its image. It ends when this page is left.</p>
      <button type="button" disabled={!running.includes(chosen)} onClick={() => setTarget({ job: name, task: chosen, command: SHELL })}>
        Open a terminal
      </button>
      {running.length === 0 && <p class="faint">No task runs.</p>}
    </>
  );
}
