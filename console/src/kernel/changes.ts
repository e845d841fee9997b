/** The stream of changes: one EventSource for the whole console. It is closed while the page is hidden, and then continues from its last position. */

import { batch, computed, effect, signal } from "@preact/signals";
import { may, resumeSession, session } from "./session";
import { watchSilence } from "./silence";
import { holdClock, serverTime } from "./time";

export interface Change {
  position: number;
  /** The kind of the aggregate, such as `event` or `job`. */
  aggregate: string;
  id: string;
  version: number;
  /** The type of the domain event, such as `event.state_changed`. */
  type: string;
  recordedAt: string;
}

/** A filter of changes. All given fields must match. */
export interface ChangeFilter {
  aggregates?: readonly string[];
  ids?: readonly string[];
  types?: readonly string[];
}

/** `barred`: the roles may not read the stream. */
export type Liveness = "connecting" | "live" | "paused" | "away" | "lost" | "full" | "barred";
type Listener = (change: Change | null) => void;
/** The subscriptions: to matching changes, and to the return of a lost connection. */
interface Follower {
  filter: ChangeFilter | null;
  listener: Listener;
}

const ADDRESS = "/api/changes/stream";
/** Milliseconds without a message after which the connection is lost. A working stream sends a beat every 2 seconds. */
const LONGEST = 4500;
const WAITS = [1000, 2000, 3000];
const WAIT_WHEN_FULL = 30_000;
type Loss = "away" | "lost" | "full";
const state = signal<Liveness>("connecting");
const heardAt = signal(serverTime());
const followers = new Set<Follower>();

/** The state of the stream. Only `live` means that the data shown are current. */
export const liveness = computed(() => state.value);
/** The server's time until which the data shown were current; null while they are current or being read. */
export const oldSince = computed(() => (session.value && isLoss(state.value) ? heardAt.value : null));

let source: EventSource | null = null;
let position: number | null = null;
let attempts = 0;
let again: ReturnType<typeof setTimeout> | undefined;
/** The cause of the lost connection, until it is restored. */
let loss: Loss | null = null;
const silence = watchSilence(() => lost(), LONGEST);

function isLoss(liveness: Liveness): liveness is Loss {
  return liveness === "away" || liveness === "lost" || liveness === "full";
}

export function matches(filter: ChangeFilter, change: Change): boolean {
  return (
    (filter.aggregates?.includes(change.aggregate) ?? true) &&
    (filter.ids?.includes(change.id) ?? true) &&
    (filter.types?.includes(change.type) ?? true)
  );
}

/** Calls `listener` with each change that matches, and with null when anything may have changed. Returns a function that ends the subscription. */
export function onChange(filter: ChangeFilter, listener: Listener): () => void {
  return followed({ filter, listener });
}

/** Calls `listener` when a lost connection is restored and everything is read again. Returns a function that ends the subscription. */
export function onReturn(listener: () => void): () => void {
  return followed({ filter: null, listener });
}

function followed(follower: Follower): () => void {
  followers.add(follower);
  return () => void followers.delete(follower);
}

/** Follows the session: streams while a user is logged in and the page is visible. */
export function followChanges(): () => void {
  const seen = (): void => (document.hidden ? close("paused") : session.peek() ? open() : undefined);
  const onLine = (): void => (clearTimeout(again), session.peek() ? open() : undefined);
  const offLine = (): void => (session.peek() && source ? lost() : undefined);
  document.addEventListener("visibilitychange", seen);
  addEventListener("online", onLine);
  addEventListener("offline", offLine);
  const stop = effect(() => {
    if (session.value) open();
    else {
      close("connecting");
      position = loss = null;
    }
  });
  const stopHolding = effect(() => holdClock(oldSince.value));
  return () => {
    document.removeEventListener("visibilitychange", seen);
    removeEventListener("online", onLine);
    removeEventListener("offline", offLine);
    stop();
    stopHolding();
    close("connecting");
  };
}

/** A lost connection stays lost until a message arrives. */
function open(): void {
  if (source !== null || document.hidden) return;
  clearTimeout(again);
  if (!may("viewer", "operator", "auditor")) return void (state.value = "barred");
  if (state.peek() !== "live") state.value = loss ?? "connecting";
  if (position === null && loss === null) heardAt.value = serverTime();
  const opened = new EventSource(position === null ? ADDRESS : `${ADDRESS}?after=${position}`);
  source = opened;
  silence.heard();
  const on = (name: string, act: (said: { position?: number }) => void): void =>
    opened.addEventListener(name, (message) => {
      if (source !== opened) return;
      silence.heard();
      act(parsed(message));
    });
  opened.onmessage = (message) => {
    if (source !== opened) return;
    silence.heard();
    const change = parsed(message) as unknown as Change;
    position = change.position;
    current();
    followers.forEach(({ filter, listener }) => filter && matches(filter, change) && listener(change));
  };
  on("open", (said) => {
    attempts = 0;
    if (position === null && loss === null) anythingChanged(); // data read before the stream began may be older
    position ??= said.position ?? null;
    current();
  });
  on("beat", (said) => {
    position = said.position ?? position;
    current();
  });
  on("reset", (said) => {
    position = said.position ?? null;
    current();
    anythingChanged();
  });
  on("away", () => (state.value = loss = "away"));
  on("full", () => {
    close("full");
    again = setTimeout(open, WAIT_WHEN_FULL);
  });
  for (const name of ["behind", "renew"]) {
    on(name, (said) => {
      position = said.position ?? position;
      close(state.peek());
      open();
    });
  }
  opened.onerror = () => {
    if (source !== opened) return;
    if (opened.readyState === EventSource.CLOSED) {
      lost();
      return void resumeSession(); // the server refuses it: the session may have ended
    }
    if (state.peek() === "live") state.value = "connecting"; // the browser reconnects with Last-Event-ID; no message arrives until then
  };
}

/** Marks the data shown as current. After a loss everything is read again. */
function current(): void {
  const wasLost = loss !== null;
  loss = null;
  batch(() => {
    heardAt.value = serverTime();
    state.value = "live";
  });
  if (wasLost) followers.forEach(({ filter, listener }) => filter === null && listener(null));
}

/** The stream has ended or is dead: it is reopened after a delay. */
function lost(): void {
  const wait = WAITS[Math.min(attempts++, WAITS.length - 1)]!;
  close(state.peek() === "full" ? "full" : "lost");
  again = setTimeout(() => session.peek() && open(), wait);
}

function close(next: Liveness): void {
  clearTimeout(again);
  silence.end();
  source?.close();
  source = null;
  state.value = next;
  if (isLoss(next)) loss = next;
}

function anythingChanged(): void {
  followers.forEach(({ filter, listener }) => filter && listener(null));
}

function parsed(message: Event): { position?: number } {
  try {
    return JSON.parse((message as MessageEvent<string>).data);
  } catch {
    return {};
  }
}
