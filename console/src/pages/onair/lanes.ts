/** The positions of Events on the time line: lanes by channel or room, rows for simultaneous Events, and the late, next and missed Events. */

import type { MediaEvent } from "../../kernel/api";
import { isOnAir, PLANNED } from "../../kernel/states";

export type LaneKind = "channel" | "room";
/** `late`: its start has passed and it is still planned; `missed`: so has its end. `over`: it is on the air after its end. */
export type Standing = "planned" | "next" | "late" | "missed" | "onair" | "over" | "past";

export interface Placed {
  event: MediaEvent;
  /** Times in milliseconds. */
  start: number;
  end: number;
  /** True if it has no scheduled end, so that the end is a guess. */
  open: boolean;
  row: number;
  standing: Standing;
  /** Simultaneous Events of the lane that have not ended. */
  overlaps: readonly MediaEvent[];
}

export interface Lane {
  key: string;
  title: string;
  /** Events without a channel, or without a room: they do not conflict with each other. */
  isNone: boolean;
  rows: number;
  placed: readonly Placed[];
}

const HOUR = 3_600_000;

/** Lanes by name, the lane of Events without one last. `shortest` is the minimum duration of a bar, so that all bars are readable. */
export function lanes(events: readonly MediaEvent[], { by, at, shortest }: { by: LaneKind; at: number; shortest: number }): Lane[] {
  const byKey = new Map<string, MediaEvent[]>();
  for (const event of events) {
    const key = (by === "channel" ? event.channelId : event.roomId) ?? "";
    const found = byKey.get(key);
    if (found) found.push(event);
    else byKey.set(key, [event]);
  }
  const made = [...byKey].map(([key, found]) => lane(key, found, { by, at, shortest }));
  return made.sort((one, other) => Number(one.isNone) - Number(other.isNone) || one.title.localeCompare(other.title, undefined, { numeric: true }));
}

function lane(key: string, events: readonly MediaEvent[], { by, at, shortest }: { by: LaneKind; at: number; shortest: number }): Lane {
  const none = by === "channel" ? "No channel" : "No room";
  const title = (by === "channel" ? events[0]!.channel : events[0]!.room) || (key === "" ? none : "Without a name");
  const placed = events
    .map((event) => placedAt(event, at))
    .filter((each) => each !== null)
    .sort((one, other) => one.start - other.start || one.end - other.end);
  const ends: number[] = [];
  let first = true;
  for (const each of placed) {
    const row = ends.findIndex((end) => end <= each.start);
    each.row = row < 0 ? ends.length : row;
    ends[each.row] = Math.max(each.end, each.start + shortest);
    if (first && each.standing === "planned") {
      each.standing = "next";
      first = false;
    }
  }
  if (key !== "") markOverlaps(placed);
  return { key, title, isNone: key === "", rows: Math.max(1, ends.length), placed };
}

type Making = { -readonly [Name in keyof Placed]: Placed[Name] };

/** `placed` is in the order of the starts. */
function markOverlaps(placed: readonly Making[]): void {
  const open: Making[] = [];
  for (const each of placed) {
    if (each.standing === "past") continue;
    for (let index = open.length - 1; index >= 0; index--) {
      const other = open[index]!;
      if (other.end <= each.start) open.splice(index, 1);
      else {
        each.overlaps = [...each.overlaps, other.event];
        other.overlaps = [...other.overlaps, each.event];
      }
    }
    open.push(each);
  }
}

/** Returns the placed Event; null if it has no time. */
export function placedAt(event: MediaEvent, at: number): Making | null {
  const scheduled = time(event.scheduledStart);
  const until = time(event.scheduledEnd);
  const onAir = isOnAir(event.state);
  const wasLive = time(event.actualLiveStart);
  const ended = time(event.actualLiveEnd);
  const start = onAir || (ended !== null && event.state !== PLANNED) ? (wasLive ?? scheduled) : (scheduled ?? wasLive);
  if (start === null) return null;
  const open = until === null && ended === null;
  let end = onAir ? Math.max(at, until ?? start + HOUR) : (ended !== null && event.state !== PLANNED ? ended : (until ?? start + HOUR));
  if (end <= start) end = start + 60_000;
  const standing = standingOf(event, { start, until, at, onAir });
  return { event, start, end, open, row: 0, standing, overlaps: [] };
}

function standingOf(event: MediaEvent, { start, until, at, onAir }: { start: number; until: number | null; at: number; onAir: boolean }): Standing {
  if (onAir) return until !== null && until < at ? "over" : "onair";
  if (event.state !== PLANNED) return "past";
  if (start > at) return "planned";
  return until !== null && until <= at ? "missed" : "late";
}

function time(text: string | null): number | null {
  const found = text === null ? NaN : Date.parse(text);
  return Number.isNaN(found) ? null : found;
}

/** Times of the lines of the axis, at full local hours or their parts. */
export function ticks(from: number, to: number, step: number): number[] {
  const midnight = new Date(from);
  midnight.setHours(0, 0, 0, 0);
  const first = midnight.getTime() + Math.ceil((from - midnight.getTime()) / step) * step;
  const found: number[] = [];
  for (let at = first; at <= to; at += step) found.push(at);
  return found;
}
