/** The words and tones of states. A tone is a colour, always shown with the word. */

export type Tone = "neutral" | "ready" | "busy" | "live" | "ok" | "warn" | "bad" | "off";

export interface StateWord {
  word: string;
  tone: Tone;
}

const of = (word: string, tone: Tone): StateWord => ({ word, tone });

export const EVENT_STATES: Readonly<Record<number, StateWord>> = {
  0: of("Planned", "ready"),
  1: of("Live, not public", "live"),
  2: of("Live", "live"),
  3: of("Suspended", "warn"),
  4: of("Stopped", "off"),
  5: of("Instant VOD", "ok"),
  6: of("Instant VOD backup", "ok"),
  7: of("Instant VOD deleting", "busy"),
  8: of("VOD expected", "ready"),
  9: of("VOD ingesting", "busy"),
  10: of("VOD, not public", "neutral"),
  11: of("VOD", "ok"),
  12: of("Remix generating", "busy"),
  13: of("Remix, not public", "neutral"),
  14: of("Remix", "ok"),
  15: of("Remix failed", "bad"),
  16: of("VOD failed", "bad"),
  17: of("Archive, not public", "neutral"),
  18: of("Archive", "ok"),
  19: of("Composing", "busy"),
  20: of("Composition", "ok"),
  21: of("Composition, not public", "neutral"),
  22: of("Composition waits", "ready"),
  23: of("Composition failed", "bad"),
  24: of("Going live", "busy"),
  25: of("Stopping", "busy"),
};

export const PLANNED = 0;
export const STOPPED = 4;
const ON_AIR: ReadonlySet<number> = new Set([1, 2, 24]);
const VOD: ReadonlySet<number> = new Set([5, 6, 10, 11, 13, 14, 17, 18, 20, 21]);

/** True while encoders may send for the Event. */
export const isOnAir = (state: number): boolean => ON_AIR.has(state);
/** True if the Event is a film that can be watched on demand, by the public or by authorized users. */
export const isVod = (state: number): boolean => VOD.has(state);

/** The usual next states of an Event. The API lets any state follow any other. */
export interface NextState {
  state: number;
  /** The word on the button. */
  action: string;
  about: string;
  kind: "primary" | "plain" | "danger";
}

const next = (state: number, action: string, about: string, kind: NextState["kind"] = "plain"): NextState => ({ state, action, about, kind });
const STOP = next(4, "Stop", "Its encoders stop. The Event is no longer live.", "danger");
const SUSPEND = next(3, "Suspend", "It is hidden from viewers. It can be resumed.");
const SHOW = "Everybody may watch it.";
const HIDE = "Only people with a key may watch it.";

const NEXT_STATES: Readonly<Record<number, readonly NextState[]>> = {
  0: [
    next(2, "Go live", "Its encoders start, and everybody may watch it.", "primary"),
    next(1, "Go live, not public", "Its encoders start. Only people with a key may watch it."),
  ],
  1: [next(2, "Publish", SHOW, "primary"), SUSPEND, STOP],
  2: [next(1, "Unpublish", HIDE), SUSPEND, STOP],
  3: [next(2, "Resume", "It is live again, and everybody may watch it.", "primary"), next(1, "Resume, not public", HIDE), STOP],
  4: [next(0, "Back to planned", "It waits for its start again.")],
  10: [next(11, "Publish", SHOW, "primary")],
  11: [next(10, "Unpublish", HIDE)],
  13: [next(14, "Publish", SHOW, "primary")],
  14: [next(13, "Unpublish", HIDE)],
  17: [next(18, "Publish", SHOW, "primary")],
  18: [next(17, "Unpublish", HIDE)],
  20: [next(21, "Unpublish", HIDE)],
  21: [next(20, "Publish", SHOW, "primary")],
  24: [next(2, "Publish", SHOW, "primary"), STOP],
  25: [STOP],
};

export const nextStates = (state: number): readonly NextState[] => NEXT_STATES[state] ?? [];
/** True if a forced stop is useful. It stops an Event in any state. */
export const canBeForced = (state: number): boolean => isOnAir(state) || state === 3 || state === 25;

export const MP4_STATES: Readonly<Record<number, StateWord>> = {
  0: of("No MP4", "off"),
  1: of("MP4 available", "ok"),
  2: of("MP4 generating", "busy"),
  4: of("MP4 failed", "bad"),
};

/** The states of jobs by `queue_state`; a failed job is `completed` with `failed`. */
export const JOB_STATES: Readonly<Record<string, StateWord>> = {
  queued: of("Queued", "ready"),
  started: of("Running", "busy"),
  completed: of("Completed", "ok"),
  failed: of("Failed", "bad"),
  pending: of("Waits for its gate", "warn"),
  broken: of("Cancelled", "off"),
  scheduled: of("Scheduled", "neutral"),
  paused: of("Paused", "warn"),
};

export const PUBLICATION_STATES: Readonly<Record<number, StateWord>> = {
  0: of("Processing", "busy"),
  1: of("Scheduled", "ready"),
  2: of("In progress", "busy"),
  3: of("Completed", "ok"),
  4: of("Destination failed", "bad"),
  5: of("Media failed", "bad"),
  6: of("Publication failed", "bad"),
};

export const PROVISION_STATES: Readonly<Record<number, StateWord>> = {
  0: of("Scheduled", "ready"),
  1: of("Provisioning", "busy"),
  2: of("Provisioning failed", "bad"),
  3: of("Provisioned", "ok"),
  4: of("Partly provisioned", "warn"),
  5: of("Terminating", "busy"),
  6: of("Terminating failed", "bad"),
  7: of("Terminated", "off"),
};

/** The states of encoders and pushes, which run until they are stopped. */
export const SESSION_STATES: Readonly<Record<string, StateWord>> = {
  starting: of("Starting", "busy"),
  running: of("Running", "ok"),
  waiting: of("Waits for a restart", "warn"),
  handed_over: of("Handed over", "busy"),
  stopped: of("Stopped", "off"),
  failed: of("Failed", "bad"),
};

export const ASSET_STATES: Readonly<Record<number, StateWord>> = {
  0: of("Generating", "busy"),
  1: of("Completed", "ok"),
  2: of("Failed", "bad"),
};

export const DELIVERY_STATES: Readonly<Record<number, StateWord>> = {
  0: of("Pending", "busy"),
  1: of("Delivered", "ok"),
  2: of("Failed", "bad"),
};

/** Returns the word of a state. An unknown state of a newer server is shown unchanged. */
export function stateWord(states: Readonly<Record<string | number, StateWord>>, value: string | number): StateWord {
  return states[value] ?? of(String(value), "neutral");
}

export function jobState(job: { queue_state: string; failed?: boolean }): StateWord {
  return stateWord(JOB_STATES, job.queue_state === "completed" && job.failed ? "failed" : job.queue_state);
}
