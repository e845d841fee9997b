/** The stream of changes: one EventSource for the whole console. It is shut while the page is hidden, and goes on where it was. */

import { computed, effect, signal } from "@preact/signals";
import { resumeSession, session } from "./session";
import { watchSilence } from "./silence";

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

/** All that are given must hold. */
export interface ChangeFilter {
  aggregates?: readonly string[];
  ids?: readonly string[];
  types?: readonly string[];
}

export type Liveness = "connecting" | "live" | "paused" | "away" | "lost" | "full";
type Listener = (change: Change | null) => void;

const ADDRESS = "/api/changes/stream";
const WAITS = [1000, 2000, 5000, 10_000, 30_000];
const state = signal<Liveness>("connecting");
const listeners = new Map<Listener, ChangeFilter>();

/** How the stream is. Only `live` means that what is shown is as it is now. */
export const liveness = computed(() => state.value);

let source: EventSource | null = null;
let position: number | null = null;
let attempts = 0;
let again: ReturnType<typeof setTimeout> | undefined;
const silence = watchSilence(lost);

export function matches(filter: ChangeFilter, change: Change): boolean {
  return (
    (filter.aggregates?.includes(change.aggregate) ?? true) &&
    (filter.ids?.includes(change.id) ?? true) &&
    (filter.types?.includes(change.type) ?? true)
  );
}

/** Calls `listener` with each change that matches, and with null when anything may have changed. Returns a function that ends it. */
export function onChange(filter: ChangeFilter, listener: Listener): () => void {
  listeners.set(listener, filter);
  return () => void listeners.delete(listener);
}

/** Follows the session: streams while somebody is logged in and the page is seen. */
export function followChanges(): () => void {
  const seen = (): void => (document.hidden ? close("paused") : session.peek() ? open() : undefined);
  document.addEventListener("visibilitychange", seen);
  const stop = effect(() => {
    if (session.value) open();
    else {
      close("connecting");
      position = null;
    }
  });
  return () => {
    document.removeEventListener("visibilitychange", seen);
    stop();
    close("connecting");
  };
}

function open(): void {
  if (source !== null || document.hidden) return;
  clearTimeout(again);
  state.value = "connecting";
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
    silence.heard();
    const change = parsed(message) as unknown as Change;
    position = change.position;
    listeners.forEach((filter, listener) => matches(filter, change) && listener(change));
  };
  on("open", (said) => {
    attempts = 0;
    if (state.peek() === "lost" || position === null) everything(); // what was read before the stream began may be older
    position ??= said.position ?? null;
    state.value = "live";
  });
  on("beat", (said) => {
    position = said.position ?? position;
    state.value = "live";
  });
  on("reset", (said) => {
    position = said.position ?? null;
    everything();
  });
  on("away", () => (state.value = "away"));
  on("full", () => (state.value = "full"));
  opened.onerror = () => {
    if (source !== opened) return;
    if (opened.readyState !== EventSource.CLOSED) {
      silence.heard();
      if (state.peek() === "live") state.value = "connecting";
      return; // the browser connects again, with Last-Event-ID
    }
    lost();
  };
}

/** The stream has ended or is dead: it is opened anew in a while. */
function lost(): void {
  const wait = WAITS[Math.min(attempts++, WAITS.length - 1)]!;
  close(state.peek() === "full" ? "full" : "lost");
  again = setTimeout(() => session.peek() && open(), wait);
  if (attempts === 2) void resumeSession();
}

function close(next: Liveness): void {
  clearTimeout(again);
  silence.end();
  source?.close();
  source = null;
  state.value = next;
}

function everything(): void {
  listeners.forEach((_, listener) => listener(null));
}

function parsed(message: Event): { position?: number } {
  try {
    return JSON.parse((message as MessageEvent<string>).data);
  } catch {
    return {};
  }
}
