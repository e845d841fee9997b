/** The form of an Event: texts of its fields, and the JSON Patch of the changed fields. */

import type { MediaEvent, Schemas } from "../../kernel/api";
import { END_BEFORE_START, Failure, type FieldProblem } from "../../kernel/failure";
import { localText } from "../../kernel/time";

interface TextField {
  name: keyof MediaEvent;
  label: string;
  hint?: string;
  /** Whether a copy of the Event gets the text too. */
  copied: boolean;
}

/** The short texts of an Event. The page, the form, copies and differences show all of them. */
export const TEXTS = [
  { name: "refId", label: "Reference", hint: "The id of the Event in another system.", copied: false },
  { name: "externalId", label: "External id", copied: false },
] as const satisfies readonly TextField[];
type Texts = Record<(typeof TEXTS)[number]["name"], string>;

const textsOf = (value: (name: keyof Texts) => string): Texts => Object.fromEntries(TEXTS.map(({ name }) => [name, value(name)])) as Texts;

export interface Draft extends Texts {
  title: string;
  description: string;
  /** Local time: `2031-05-01T20:15`. */
  scheduledStart: string;
  scheduledEnd: string;
  publishedStart: string;
  publishedEnd: string;
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

/** The names of the fields that are edited as text. */
export type TextName = { [Name in keyof Draft]: Draft[Name] extends string ? Name : never }[keyof Draft];

export function draftOf(event: MediaEvent, tags: readonly string[]): Draft {
  return {
    title: event.title,
    description: event.description ?? "",
    ...textsOf((name) => event[name]),
    scheduledStart: localText(event.scheduledStart),
    scheduledEnd: localText(event.scheduledEnd),
    publishedStart: localText(event.publishedStart),
    publishedEnd: localText(event.publishedEnd),
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

/** Returns a step for each changed field. An unchanged time keeps its seconds. */
export function patchOf(before: Draft, after: Draft): Schemas["PatchStep"][] {
  const names = Object.keys(after) as (keyof Draft)[];
  return names.filter((name) => after[name] !== before[name]).map((name) => ({ op: "replace", path: `/${name}`, value: wireOf(name, after[name]) }));
}

/** The empty form of an Event. */
export const EMPTY: Draft = {
  title: "",
  description: "",
  ...textsOf(() => ""),
  scheduledStart: "",
  scheduledEnd: "",
  publishedStart: "",
  publishedEnd: "",
  roomId: "",
  channelId: "",
  eventTypeId: "",
  categoryId: "",
  tags: "",
  dvrLength: "0",
  autoStart: false,
  autoEnd: false,
  autoPublish: false,
  autoStartPublications: false,
  vodEnableDrm: false,
};

/** Returns the body of a new Event with the typed fields only. */
export function bodyOf(draft: Draft): Record<string, unknown> {
  return Object.fromEntries(patchOf(EMPTY, draft).map(({ path, value }) => [path.slice(1), value]));
}

/** Finds problems before the API does. `steps` are the changes of an Event; unchanged fields may be older than the rule. */
export function problemsOf(draft: Draft, steps: readonly Schemas["PatchStep"][] | null): FieldProblem[] {
  const isSent = (...names: (keyof Draft)[]): boolean => steps === null || steps.some((each) => names.some((name) => each.path === `/${name}`));
  const found: FieldProblem[] = [];
  if (isSent("title") && draft.title.trim() === "") found.push({ field: "title", message: "An Event needs a title." });
  if (isSent("scheduledStart", "scheduledEnd") && draft.scheduledStart !== "" && draft.scheduledEnd !== "" && Date.parse(draft.scheduledEnd) <= Date.parse(draft.scheduledStart)) {
    found.push({ field: "scheduledEnd", message: END_BEFORE_START });
  }
  if (isSent("publishedStart", "publishedEnd") && draft.publishedStart !== "" && draft.publishedEnd !== "" && Date.parse(draft.publishedEnd) <= Date.parse(draft.publishedStart)) {
    found.push({ field: "publishedEnd", message: END_BEFORE_START });
  }
  if (isSent("autoStart", "scheduledStart") && draft.autoStart && draft.scheduledStart === "") found.push({ field: "scheduledStart", message: "An automatic start needs a scheduled start." });
  if (isSent("autoEnd", "scheduledEnd") && draft.autoEnd && draft.scheduledEnd === "") found.push({ field: "scheduledEnd", message: "An automatic stop needs a scheduled end." });
  if (isSent("dvrLength") && !/^\d*$/.test(draft.dvrLength.trim())) found.push({ field: "dvrLength", message: "It must be a whole number of seconds, from 0." });
  return found;
}

/** Maps the steps that a refusal names, such as `[1].value`, to the fields of the form. */
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
  if (name.startsWith("scheduled") || name.startsWith("published")) return value === "" ? null : new Date(value).toISOString();
  if (name.endsWith("Id") && !TEXTS.some((each) => each.name === name)) return value === "" ? null : value;
  return value;
}

export function tagsOf(text: string): { name: string }[] {
  const names = text.split(",").map((each) => each.trim());
  return [...new Set(names.filter((each) => each !== ""))].map((name) => ({ name }));
}
