/** The session of the console: an HttpOnly cookie that scripts cannot read, made from an API key. The key is never stored. */

import { computed, signal } from "@preact/signals";
import { Failure, asFailure, failureOf } from "./failure";

export type Role = "viewer" | "operator" | "auditor" | "keys" | "admin";

export interface Session {
  client: string;
  roles: Role[];
  expiresAt: string;
}

const PATH = "/console/session";
const PATIENCE = 10_000;
const current = signal<Session | null | undefined>(undefined);
const ended = signal(false);
const unreachable = signal<Failure | null>(null);

/** The user who is logged in; null: no user; undefined: not known yet. */
export const session = computed(() => current.value);
/** True if a session has ended without a logout. */
export const hasEnded = computed(() => ended.value);
/** The failure that prevents reading the session. */
export const sessionFailure = computed(() => unreachable.value);

let others: BroadcastChannel | undefined;
let expiry: ReturnType<typeof setTimeout> | undefined;

/** Reads the session from the server. */
export async function resumeSession(): Promise<void> {
  try {
    const response = await fetch(PATH, { credentials: "same-origin", headers: { accept: "application/json" }, signal: AbortSignal.timeout(PATIENCE) });
    if (!response.ok && response.status !== 401 && response.status !== 404) throw failureOf(response.status, undefined);
    unreachable.value = null;
    const isAnswer = response.ok && (response.headers.get("content-type") ?? "").includes("json");
    if (isAnswer) begin((await response.json()) as Session);
    else if (current.value) sessionEnded();
    else current.value = null;
  } catch (thrown) {
    unreachable.value = asFailure(thrown);
  }
}

/** Logs in. Throws a `Failure`; 401 for a wrong key. */
export async function login(apiKey: string): Promise<void> {
  let response: Response;
  try {
    response = await fetch(PATH, {
      method: "POST",
      credentials: "same-origin",
      headers: { "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify({ apiKey }),
    });
  } catch (thrown) {
    throw asFailure(thrown);
  }
  const body: unknown = await response.json().catch(() => undefined);
  if (!response.ok) throw failureOf(response.status, body, response.headers.get("x-transaction-id"));
  begin(body as Session);
  tell("login");
}

/** Logs out. Throws a `Failure` if the server did not end the session. */
export async function logout(): Promise<void> {
  try {
    const response = await fetch(PATH, { method: "DELETE", credentials: "same-origin" });
    if (!response.ok && response.status !== 401) throw failureOf(response.status, undefined);
  } catch (thrown) {
    throw asFailure(thrown);
  }
  ended.value = false;
  current.value = null;
  tell("logout");
}

/** Ends the session after a 401 or when its time is over. */
export function sessionEnded(): void {
  if (!current.value) return;
  ended.value = true;
  current.value = null;
}

/** Returns true if the caller has one of these roles. The role admin may do everything. */
export function may(...roles: Role[]): boolean {
  const own = current.value?.roles ?? [];
  return own.includes("admin") || roles.some((each) => own.includes(each));
}

/** Applies logins and logouts of other tabs to this tab. */
export function followOtherTabs(): void {
  others ??= new BroadcastChannel("medialedger session");
  others.onmessage = () => void resumeSession();
}

function begin(found: Session): void {
  ended.value = false;
  current.value = found;
  clearTimeout(expiry);
  const left = Date.parse(found.expiresAt) - Date.now();
  if (left > 0 && left < 2 ** 31) expiry = setTimeout(() => void resumeSession(), left + 1000);
}

function tell(what: string): void {
  others?.postMessage(what);
}
