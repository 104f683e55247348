// Draws what xterm's emulator holds, as text: the emulator's own renderers need styles that the page's policy refuses.
import type { IBufferCell, Terminal } from "@xterm/headless";
import { memo } from "preact/compat";

interface Run {
  text: string;
  style: string; // class names
  color?: string; // of the 256 and of all others, as CSS
  back?: string;
}

const STEPS = [0, 95, 135, 175, 215, 255];

// The colours of xterm from 16 on: a cube, then greys.
function paletteColor(index: number): string {
  if (index >= 232) {
    const grey = 8 + 10 * (index - 232);
    return `rgb(${grey} ${grey} ${grey})`;
  }
  const at = index - 16;
  return `rgb(${STEPS[Math.floor(at / 36)]} ${STEPS[Math.floor(at / 6) % 6]} ${STEPS[at % 6]})`;
}

function rgb(value: number): string {
  return `rgb(${value >> 16} ${(value >> 8) & 255} ${value & 255})`;
}

function lookOf(cell: IBufferCell, cursor: boolean): Omit<Run, "text"> {
  const styles: string[] = [];
  if (cell.isBold()) styles.push("t-bold");
  if (cell.isDim()) styles.push("t-dim");
  if (cell.isItalic()) styles.push("t-italic");
  if (cell.isUnderline()) styles.push("t-under");
  if (cell.isStrikethrough()) styles.push("t-strike");
  if (cell.isInvisible()) styles.push("t-hidden");
  if (!!cell.isInverse() !== cursor) styles.push("t-inverse");
  const look: Omit<Run, "text"> = { style: "" };
  const front = cell.getFgColor();
  if (cell.isFgRGB()) look.color = rgb(front);
  else if (cell.isFgPalette()) {
    if (front < 16) styles.push(`t-f${front}`);
    else look.color = paletteColor(front);
  }
  const back = cell.getBgColor();
  if (cell.isBgRGB()) look.back = rgb(back);
  else if (cell.isBgPalette()) {
    if (back < 16) styles.push(`t-b${back}`);
    else look.back = paletteColor(back);
  }
  look.style = styles.join(" ");
  return look;
}

// `cursor`: its column, or -1.
function runsOf(terminal: Terminal, y: number, cursor: number): Run[] {
  const line = terminal.buffer.active.getLine(y);
  const runs: Run[] = [];
  if (!line) return runs;
  let last = cursor;
  for (let x = line.length - 1; x > last; x -= 1) {
    const cell = line.getCell(x);
    if (cell && (cell.getChars() !== "" || !cell.isAttributeDefault())) last = x;
  }
  for (let x = 0; x <= last; x += 1) {
    const cell = line.getCell(x);
    if (!cell || cell.getWidth() === 0) continue; // the second half of a wide character
    const look = lookOf(cell, x === cursor);
    const text = cell.getChars() || " ";
    const before = runs[runs.length - 1];
    if (before && before.style === look.style && before.color === look.color && before.back === look.back) before.text += text;
    else runs.push({ ...look, text });
  }
  return runs;
}

const Line = memo(
  ({ runs }: { runs: Run[] }) => (
    <div class="t-line">
      {runs.map((run, i) => (
        <span key={i} class={run.style || undefined} style={run.color || run.back ? { color: run.color, background: run.back } : undefined}>
          {run.text}
        </span>
      ))}
      {"\n"}
    </div>
  ),
  (before, after) => JSON.stringify(before.runs) === JSON.stringify(after.runs),
);

// All lines that are kept. `count` changes with what is on the screen.
export function Screen({ terminal, focused }: { terminal: Terminal; focused: boolean; count: number }) {
  const buffer = terminal.buffer.active;
  const cursorLine = buffer.baseY + buffer.cursorY;
  const lines = [];
  for (let y = 0; y < buffer.length; y += 1) {
    lines.push(<Line key={y} runs={runsOf(terminal, y, focused && y === cursorLine ? buffer.cursorX : -1)} />);
  }
  return <>{lines}</>;
}
