/** The differences between two versions of an Event, in words. */

import type { MediaEvent } from "../../kernel/api";
import { EVENT_STATES, MP4_STATES, stateWord } from "../../kernel/states";
import { short } from "../../kernel/time";
import { TEXTS } from "./draft";

export interface Difference {
  name: string;
  before: string;
  after: string;
}

type Show = (event: MediaEvent) => string;

const text = (value: unknown): string => (value === null || value === undefined || value === "" ? "–" : String(value).slice(0, 200));
const time = (value: string | null): string => (value === null ? "–" : short(new Date(value)));
const flag = (value: boolean): string => (value ? "yes" : "no");

/** Fields by the names that the page shows. Derived fields, such as the names of linked records, are omitted. */
const FIELDS: readonly (readonly [name: string, show: Show])[] = [
  ["State", (event) => stateWord(EVENT_STATES, event.state).word],
  ["Title", (event) => text(event.title)],
  ["Description", (event) => text(event.description)],
  ["Scheduled start", (event) => time(event.scheduledStart)],
  ["Scheduled end", (event) => time(event.scheduledEnd)],
  ["Was live from", (event) => time(event.actualLiveStart)],
  ["Was live until", (event) => time(event.actualLiveEnd)],
  ["Public from", (event) => time(event.publishedStart)],
  ["Public until", (event) => time(event.publishedEnd)],
  ["Room", (event) => text(event.room)],
  ["Channel", (event) => text(event.channel)],
  ["Type", (event) => text(event.eventType)],
  ["Category", (event) => text(event.category)],
  ...TEXTS.map(({ name, label }) => [label, (event: MediaEvent) => text(event[name])] as const),
  ["Starts automatically", (event) => flag(event.autoStart)],
  ["Stops automatically", (event) => flag(event.autoEnd)],
  ["Public when it starts", (event) => flag(event.autoPublish)],
  ["Starts its publications", (event) => flag(event.autoStartPublications)],
  ["DRM for the film", (event) => flag(event.vodDrm)],
  ["DVR window", (event) => (event.dvrLength ? `${event.dvrLength} s` : "–")],
  ["MP4", (event) => stateWord(MP4_STATES, event.mp4State).word],
  ["Deleted", (event) => time(event.dateDeleted)],
];

export function differences(before: MediaEvent, after: MediaEvent): Difference[] {
  return FIELDS.map(([name, show]) => ({ name, before: show(before), after: show(after) })).filter((each) => each.before !== each.after);
}
