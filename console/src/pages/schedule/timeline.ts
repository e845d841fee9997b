/** The arithmetic of the schedule: ranges of days, lanes, overlaps, steps. No browser is needed for it. */

import type { MediaEvent } from "../../kernel/api";
import { day } from "../../kernel/time";

export type Span = "day" | "week";
export type LaneKind = "room" | "channel";
export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
/** The length with which an Event without an end is drawn. */
export const OPEN_LENGTH = HOUR;
export const STEP: Record<Span, number> = { day: 5 * MINUTE, week: 15 * MINUTE };
export const HOUR_WIDTH: Record<Span, number> = { day: 72, week: 26 };
/** The lane of Events without a room or channel. */
export const NO_LANE = "";

export interface Lane {
  id: string;
  name: string;
}

export interface Times {
  start: number;
  end: number | null;
}

/** An Event with its place: `row` within its lane, and the Events of the lane that it overlaps. */
export interface Placed extends Times {
  event: MediaEvent;
  row: number;
  overlaps: readonly MediaEvent[];
}

/** The first moment of the day or of its week (Monday), as the reader's calendar has it. Days may have 23 or 25 hours. */
export function rangeOf(date: string, span: Span): { from: Date; to: Date; days: Date[] } {
  const found = new Date(`${date}T00:00:00`);
  const first = Number.isNaN(found.getTime()) ? new Date(`${day(new Date())}T00:00:00`) : found;
  if (span === "week") first.setDate(first.getDate() - ((first.getDay() + 6) % 7));
  const length = span === "week" ? 7 : 1;
  const days = Array.from({ length: length + 1 }, (_, index) => new Date(first.getFullYear(), first.getMonth(), first.getDate() + index));
  return { from: days[0]!, to: days[length]!, days: days.slice(0, length) };
}

/** Returns `date` moved by a number of days or weeks. */
export function moved(date: string, span: Span, steps: number): string {
  const { from } = rangeOf(date, span);
  from.setDate(from.getDate() + steps * (span === "week" ? 7 : 1));
  return day(from);
}

export function timesOf(event: Pick<MediaEvent, "scheduledStart" | "scheduledEnd">): Times | null {
  if (event.scheduledStart === null) return null;
  const start = Date.parse(event.scheduledStart);
  const end = event.scheduledEnd === null ? null : Date.parse(event.scheduledEnd);
  return { start, end: end !== null && end > start ? end : null };
}

export const drawnEnd = (times: Times): number => times.end ?? times.start + OPEN_LENGTH;

export function laneOf(event: MediaEvent, kind: LaneKind): string {
  return (kind === "room" ? event.roomId : event.channelId) ?? NO_LANE;
}

/** Places the Events of a lane in rows, so that none hides another. Events without a room or channel do not conflict. */
export function placed(events: readonly MediaEvent[], isLane: boolean): Placed[] {
  const known = events
    .map((event) => ({ event, times: timesOf(event) }))
    .filter((each): each is { event: MediaEvent; times: Times } => each.times !== null)
    .sort((one, other) => one.times.start - other.times.start || drawnEnd(one.times) - drawnEnd(other.times));
  const ends: number[] = [];
  const found: (Placed & { overlaps: MediaEvent[] })[] = [];
  let active: typeof found = [];
  for (const { event, times } of known) {
    const free = ends.findIndex((end) => end <= times.start);
    const row = free === -1 ? ends.length : free;
    ends[row] = drawnEnd(times);
    const made = { event, ...times, row, overlaps: [] as MediaEvent[] };
    active = active.filter((each) => drawnEnd(each) > times.start);
    for (const other of isLane ? active.filter((each) => collides(each, times)) : []) {
      other.overlaps.push(event);
      made.overlaps.push(other.event);
    }
    active.push(made);
    found.push(made);
  }
  return found;
}

/** An Event without an end conflicts only with Events that start at the same time. */
function collides(one: Times, later: Times): boolean {
  return one.end === null ? one.start === later.start : later.start < one.end;
}

export const stepped = (milliseconds: number, step: number): number => Math.round(milliseconds / step) * step;

/** Returns the times moved by `delta`, or with one end moved. The length is at least one step. */
export function shifted(times: Times, delta: number, what: { edge: "both" | "start" | "end"; step: number }): Times {
  const { edge, step } = what;
  if (edge === "both") return { start: times.start + delta, end: times.end === null ? null : times.end + delta };
  if (edge === "start") return { start: Math.min(times.start + delta, drawnEnd(times) - step), end: times.end };
  return { start: times.start, end: Math.max(drawnEnd(times) + delta, times.start + step) };
}
