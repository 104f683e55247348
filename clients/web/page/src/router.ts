// The path and the filters of the page, in the URL.
import { signal } from "@preact/signals";

export interface Place {
  path: string[]; // "/job/train" is ["job", "train"]
  query: URLSearchParams;
  text: string;
}

function here(): Place {
  return {
    path: location.pathname.split("/").filter(Boolean).map(decodeURIComponent),
    query: new URLSearchParams(location.search),
    text: location.pathname + location.search,
  };
}

export const place = signal<Place>(here());

addEventListener("popstate", () => {
  place.value = here();
});

export function go(to: string, replace = false): void {
  const before = location.pathname;
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  place.value = here();
  if (location.pathname !== before) scrollTo(0, 0);
}

// Changes some filters; an empty value removes one.
export function setQuery(changes: Record<string, string>, replace = false): void {
  const query = new URLSearchParams(location.search);
  for (const [key, value] of Object.entries(changes)) {
    if (value) query.set(key, value);
    else query.delete(key);
  }
  const text = query.toString();
  go(location.pathname + (text ? `?${text}` : ""), replace);
}

export function pathTo(...parts: string[]): string {
  return `/${parts.map(encodeURIComponent).join("/")}`;
}

// Links of ours change the place without loading anything.
export function catchLinks(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
  const link = (event.target as Element).closest("a");
  if (!link || link.target || link.origin !== location.origin || link.hasAttribute("download")) return;
  if (link.pathname.includes(".") && !/^\/(job|node)\//.test(link.pathname)) return; // a file
  if (link.hash && link.pathname === location.pathname) return;
  event.preventDefault();
  go(link.pathname + link.search);
}
