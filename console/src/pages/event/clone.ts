/** A copy of an Event at another time, with all fields that the API accepts for a new Event and shows for this one. */

import type { MediaEvent } from "../../kernel/api";
import { PLANNED } from "../../kernel/states";
import { localText } from "../../kernel/time";
import { TEXTS } from "./draft";

const DAY = 24 * 3_600_000;
/** Planned times, which keep their distance from the start. */
const PLANS = ["scheduledEnd", "scheduledChannelStart", "scheduledChannelEnd", "scheduledProvisionAt", "scheduledTerminateAt", "archiverStart", "archiverEnd"] as const;
/** Times that are planned until the Event begins; afterwards they record what happened. */
const PLANS_UNTIL_LIVE = ["publishedStart", "publishedEnd", "instantVodStart", "instantVodEnd"] as const;

interface Copy {
  title: string;
  /** The value of a field of type `datetime-local`. */
  start: string;
  tags: readonly string[];
}

/** Returns the copy, without references, files, chapters and publications. */
export function cloned(event: MediaEvent, { title, start, tags }: Copy) {
  const from = start === "" ? null : start === localText(event.scheduledStart) ? Date.parse(event.scheduledStart!) : Date.parse(start);
  const iso = (at: number | null): string | null => (at === null || Number.isNaN(at) ? null : new Date(at).toISOString());
  const moved = (at: string | null): string | null =>
    at === null || event.scheduledStart === null || from === null ? null : iso(Date.parse(at) + from - Date.parse(event.scheduledStart));
  const plans = [...PLANS, ...(event.state === PLANNED ? PLANS_UNTIL_LIVE : [])];
  return {
    title,
    description: event.description,
    ...Object.fromEntries(TEXTS.filter(({ copied }) => copied).map(({ name }) => [name, event[name]])),
    thumbnail: /^https?:/i.test(event.thumbnail) ? event.thumbnail : "",
    additionalStreamingOptions: event.additionalStreamingOptions,
    taskEngineJson: event.taskEngineJson,
    drmJson: event.drmJson,
    scheduledStart: iso(from),
    ...Object.fromEntries(plans.map((name) => [name, moved(event[name])])),
    roomId: event.roomId,
    channelId: event.channelId,
    eventTypeId: event.eventTypeId,
    categoryId: event.categoryId,
    flowId: event.flowId,
    remixflowId: event.remixflowId,
    archiverflowId: event.archiverflowId,
    infrastructureProfileId: event.infrastructureProfileId,
    tags: tags.map((name) => ({ name })),
    autoStart: event.autoStart,
    autoEnd: event.autoEnd,
    autoPublish: event.autoPublish,
    autoStartPublications: event.autoStartPublications,
    autoProvisionInfrastructure: event.autoProvisionInfrastructure,
    autoTerminateInfrastructure: event.autoTerminateInfrastructure,
    vodEnableDrm: event.vodDrm,
    dvrLength: event.dvrLength,
    maxBitrate: event.maxBitrateUrlParam,
    minBitrate: event.minBitrateUrlParam,
  };
}

/** The time of its start on the first later day that is not over, so that the copy does not overlap the original. */
export function startOfCopy(event: MediaEvent, at: number): string {
  if (event.scheduledStart === null) return "";
  const start = new Date(event.scheduledStart);
  const days = Math.max(1, Math.ceil((at - start.getTime()) / DAY));
  start.setDate(start.getDate() + days);
  return localText(start.getTime());
}
