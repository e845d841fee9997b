/** The form of an Event: texts of its fields, and the JSON Patch of what was changed. */

import type { MediaEvent, Schemas } from "../../kernel/api";
import { Failure } from "../../kernel/failure";
import { clock, day } from "../../kernel/time";

export interface Draft {
  title: string;
  description: string;
  refId: string;
  externalId: string;
  /** Local time: `2031-05-01T20:15`. */
  scheduledStart: string;
  scheduledEnd: string;
  roomId: string;
  channelId: string;
  eventTypeId: string;
  categoryId: string;
  /** Names, separated by commas. */
  tags: string;
  dvrLength: string;
  autoStart: boolean;
  autoEnd: boolean;
  autoPublish: boolean;
  autoStartPublications: boolean;
  vodEnableDrm: boolean;
}

export function draftOf(event: MediaEvent, tags: readonly string[]): Draft {
  return {
    title: event.title,
    description: event.description ?? "",
    refId: event.refId,
    externalId: event.externalId,
    scheduledStart: localTime(event.scheduledStart),
    scheduledEnd: localTime(event.scheduledEnd),
    roomId: event.roomId ?? "",
    channelId: event.channelId ?? "",
    eventTypeId: event.eventTypeId ?? "",
    categoryId: event.categoryId ?? "",
    tags: tags.join(", "),
    dvrLength: String(event.dvrLength),
    autoStart: event.autoStart,
    autoEnd: event.autoEnd,
    autoPublish: event.autoPublish,
    autoStartPublications: event.autoStartPublications,
    vodEnableDrm: event.vodDrm,
  };
}

/** One step for each field that differs. A time that nobody touched keeps its seconds. */
export function patchOf(before: Draft, after: Draft): Schemas["PatchStep"][] {
  const names = Object.keys(after) as (keyof Draft)[];
  return names.filter((name) => after[name] !== before[name]).map((name) => ({ op: "replace", path: `/${name}`, value: wireOf(name, after[name]) }));
}

/** A refusal names steps of the patch, `[1].value`; a form shows it at its fields. */
export function atFields(failure: Failure, steps: readonly Schemas["PatchStep"][]): Failure {
  const fields = failure.fields.map(({ field, message }) => {
    const step = steps[Number(/^\[(\d+)\]/.exec(field)?.[1] ?? NaN)];
    return { field: step ? step.path.slice(1) : field, message };
  });
  return new Failure(failure.status, failure.detail, fields, failure.transactionId);
}

function wireOf(name: keyof Draft, value: string | boolean): unknown {
  if (typeof value === "boolean") return value;
  if (name === "tags") return tagsOf(value);
  if (name === "dvrLength") return value.trim() === "" ? 0 : Number(value);
  if (name.startsWith("scheduled")) return value === "" ? null : new Date(value).toISOString();
  if (name.endsWith("Id") && name !== "refId" && name !== "externalId") return value === "" ? null : value;
  return value;
}

export function tagsOf(text: string): { name: string }[] {
  const names = text.split(",").map((each) => each.trim());
  return [...new Set(names.filter((each) => each !== ""))].map((name) => ({ name }));
}

/** For an input of the type datetime-local. */
export function localTime(text: string | null): string {
  if (text === null) return "";
  const at = new Date(text);
  return `${day(at)}T${clock(at)}`;
}
