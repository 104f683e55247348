// Who is signed in.
import { signal } from "@preact/signals";

export interface SessionInfo {
  mode: "OPEN" | "SIGNED_IN" | "SIGNED_OUT";
  user?: string;
  csrf?: string;
  endsInS?: number;
  token?: boolean;
  certificate?: boolean;
  certificateShown?: boolean;
  issuers?: string[];
  version?: string;
}

export const session = signal<SessionInfo | null>(null);
export const sessionProblem = signal("");

const AGAIN_MS = 2000;

export async function readSession(): Promise<void> {
  try {
    const response = await fetch("/api/session");
    if (!response.ok) throw new Error(String(response.status));
    session.value = (await response.json()) as SessionInfo;
    sessionProblem.value = "";
  } catch {
    sessionProblem.value = "berth-web does not answer; trying again";
    setTimeout(readSession, AGAIN_MS);
  }
}

// berth-web says that the sign-in has ended.
export function forgetSession(): void {
  if (session.value?.mode === "SIGNED_IN") void readSession();
}
