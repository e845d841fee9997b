/** The words for the log: kinds, types, fields, people. */

import type { Schemas } from "../../kernel/api";
import {
  ASSET_STATES,
  DELIVERY_STATES,
  EVENT_STATES,
  JOB_STATES,
  MP4_STATES,
  PROVISION_STATES,
  PUBLICATION_STATES,
  stateWord,
  type StateWord,
} from "../../kernel/states";

export type Entry = Schemas["AuditEntry"];
type States = Readonly<Record<string | number, StateWord>>;

const FIELDS: Readonly<Record<string, string>> = {
  refId: "Reference",
  refid: "Reference",
  mp4State: "MP4",
  dvrLength: "DVR length",
  vodDrm: "DRM of the VOD",
  remixDrm: "DRM of the remix",
  drmJson: "DRM settings",
  dateModified: "Modified",
  dateCreated: "Created",
  dateDeleted: "Deleted",
  queueState: "State",
  runAt: "Runs at",
  createdAt: "Created",
  updatedAt: "Modified",
  eventState: "State of the Event",
};
const UPPER = /\b(id|url|vod|drm|mp4|dvr|json|api|hls|dash|rtmp|srt|sha256|uri|speke|dns|ip)\b/g;
const EVENT_FIELDS: Readonly<Record<string, States>> = { state: EVENT_STATES, previous: EVENT_STATES, mp4State: MP4_STATES, eventState: EVENT_STATES };
const STATES: Readonly<Record<string, Readonly<Record<string, States>>>> = {
  event: EVENT_FIELDS,
  job: { queueState: JOB_STATES },
  publication: { state: PUBLICATION_STATES },
  provision: { state: PROVISION_STATES },
  asset: { state: ASSET_STATES },
  webhook: { state: DELIVERY_STATES },
};
/** Types of events whose numbers are not states of the aggregate. */
const MP4_TYPES = new Set(["event.mp4_state_changed"]);
const PROVISION_TYPES = new Set(["event.provision_state_changed"]);

/** `scheduled_start`, `scheduledStart` → `scheduledStart`. */
function camel(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** `scheduledStart` → `Scheduled start`; `video.url` → `Video › URL`. */
export function fieldWord(path: string): string {
  return path.split(".").map(oneField).join(" › ");
}

function oneField(name: string): string {
  const known = FIELDS[camel(name)];
  if (known !== undefined) return known;
  const words = camel(name)
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .replace(/ id$/, "")
    .replace(UPPER, (found) => found.toUpperCase());
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** `event_type` → `Event type`. `Event` is the product's term. */
export function kindWord(kind: string): string {
  return oneField(kind);
}

/** `event.state_changed` → `State changed`. */
export function typeWord(type: string): string {
  return oneField(type.slice(type.indexOf(".") + 1));
}

/** Returns the word of a state if the field is a state. */
export function stateOf(kind: string, field: string, value: unknown, type?: string): StateWord | null {
  if (typeof value !== "number" && typeof value !== "string") return null;
  const name = camel(field);
  const isState = name === "state" || name === "previous";
  if (isState && type !== undefined && MP4_TYPES.has(type)) return stateWord(MP4_STATES, value);
  if (isState && type !== undefined && PROVISION_TYPES.has(type)) return stateWord(PROVISION_STATES, value);
  const states = STATES[kind]?.[name];
  return states === undefined ? null : stateWord(states, value);
}

/** Returns true if content of the event was erased. */
export function isErased(entry: Pick<Entry, "data">): boolean {
  return entry.data["redacted"] === true;
}

/** Returns true for the text that a GET shows instead of an erased required text. */
export function isPlaceholder(value: unknown): boolean {
  return typeof value === "string" && /^redacted \S+$/.test(value);
}

/** Returns the actor by its kind in the log: a name alone does not distinguish the product from a client of that name. */
export function actorWord(actor: string, kind?: string | null): string {
  if (kind === "product") return "the product itself";
  if (kind === "person") return `${actor} in the console`;
  if (kind === "client" && (actor === "system" || actor.startsWith("shell:"))) return `the client ${actor}`;
  if (actor === "redacted") return "erased";
  return actor.startsWith("shell:") ? `${actor.slice("shell:".length)} in a shell` : actor;
}

/** `jane (through desk)`, or the client alone. */
export function whoWord({ actor, actorKind, endUser }: { actor: string; actorKind?: string | null; endUser?: string | null }): string {
  const who = actorWord(actor, actorKind);
  return endUser ? `${endUser} (through ${who})` : who;
}

const SHOWN = 3;
const LONG = 80;

/** The content of an event in one line. */
export function summary(entry: Entry): string {
  if (isErased(entry)) return "erased";
  const said = Object.entries(entry.data).filter(([name]) => name !== "timestamp");
  const { state, previous } = entry.data;
  if (state !== undefined && previous !== undefined) {
    const [before, after] = [previous, state].map((each) => stateOf(entry.aggregate, "state", each, entry.type)?.word ?? String(each));
    return `${before} → ${after}`;
  }
  const shown = said.slice(0, SHOWN).map(([name, value]) => `${fieldWord(name)}: ${oneLine(entry, name, value)}`);
  return shown.join(" · ") + (said.length > SHOWN ? ` · ${said.length - SHOWN} more` : "");
}

function oneLine(entry: Entry, name: string, value: unknown): string {
  if (value === null || value === "") return "–";
  const word = stateOf(entry.aggregate, name, value, entry.type)?.word;
  if (word !== undefined) return word;
  if (typeof value === "boolean") return value ? "yes" : "no";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > LONG ? `${text.slice(0, LONG)}…` : text;
}

/** Returns the page of the current state; null if there is none. */
export function pageOf(kind: string, id: string): string | null {
  if (kind === "event") return `/events/${encodeURIComponent(id)}`;
  if (kind === "job") return `/jobs/${encodeURIComponent(id)}`;
  return null;
}

/** The history of an aggregate. */
export function historyOf(kind: string, id: string): string {
  return kind === "event" ? `/events/${encodeURIComponent(id)}/history` : `/audit/${encodeURIComponent(kind)}/${encodeURIComponent(id)}`;
}
