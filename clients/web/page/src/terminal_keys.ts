// What a terminal sends for a key, as xterm does; null: the browser's own meaning.
// https://invisible-island.net/xterm/ctlseqs/ctlseqs.html, "PC-Style Function Keys".
const ARROWS: Record<string, string> = { ArrowUp: "A", ArrowDown: "B", ArrowRight: "C", ArrowLeft: "D", Home: "H", End: "F" };
const TILDES: Record<string, number> = { Insert: 2, Delete: 3, PageUp: 5, PageDown: 6, F5: 15, F6: 17, F7: 18, F8: 19, F9: 20, F10: 21, F11: 23, F12: 24 };
const PLAIN: Record<string, string> = { Enter: "\r", Backspace: "\x7f", Tab: "\t", Escape: "\x1b", F1: "\x1bOP", F2: "\x1bOQ", F3: "\x1bOR", F4: "\x1bOS" };

// A letter with Ctrl is its place in the alphabet.
function withControl(key: string): string | null {
  if (key === " " || key === "@") return "\0";
  const code = key.toUpperCase().charCodeAt(0);
  return key.length === 1 && code >= 0x41 && code <= 0x5f ? String.fromCharCode(code - 0x40) : null;
}

export function bytesOfKey(event: KeyboardEvent, applicationCursor: boolean): string | null {
  const { key, ctrlKey, altKey, shiftKey, metaKey } = event;
  // F6 leaves the terminal; copying and pasting are the browser's.
  if (metaKey || event.isComposing || key === "F6") return null;
  if (ctrlKey && shiftKey && /^[cv]$/i.test(key)) return null;
  if (key === "Tab" && shiftKey) return "\x1b[Z";
  const modifiers = 1 + (shiftKey ? 1 : 0) + (altKey ? 2 : 0) + (ctrlKey ? 4 : 0);
  const arrow = ARROWS[key];
  if (arrow !== undefined) {
    if (modifiers > 1) return `\x1b[1;${modifiers}${arrow}`;
    return (applicationCursor ? "\x1bO" : "\x1b[") + arrow;
  }
  const tilde = TILDES[key];
  if (tilde !== undefined) return modifiers > 1 ? `\x1b[${tilde};${modifiers}~` : `\x1b[${tilde}~`;
  const plain = PLAIN[key];
  if (plain !== undefined) return (altKey ? "\x1b" : "") + plain;
  if (ctrlKey && !altKey) return withControl(key);
  // AltGr types characters; they come as input.
  if (altKey && !ctrlKey && key.length === 1) return `\x1b${key}`;
  return null;
}
