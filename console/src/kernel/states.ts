/** States in words, and how they look. A tone is a colour; a word is always beside it. */

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

export const MP4_STATES: Readonly<Record<number, StateWord>> = {
  0: of("No MP4", "off"),
  1: of("MP4 available", "ok"),
  2: of("MP4 generating", "busy"),
  4: of("MP4 failed", "bad"),
};

/** By `queue_state`; a failed job is `completed` with `failed`. */
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
  4: of("Provisioned in part", "warn"),
  5: of("Terminating", "busy"),
  6: of("Terminating failed", "bad"),
  7: of("Terminated", "off"),
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

/** The word of a state; one that a newer server has is shown as it is. */
export function stateWord(states: Readonly<Record<string | number, StateWord>>, value: string | number): StateWord {
  return states[value] ?? of(String(value), "neutral");
}

export function jobState(job: { queue_state: string; failed?: boolean }): StateWord {
  return stateWord(JOB_STATES, job.queue_state === "completed" && job.failed ? "failed" : job.queue_state);
}
