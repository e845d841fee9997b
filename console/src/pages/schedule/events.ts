/** The reads and writes of the schedule. A change is made only to the version that was shown. */

import { Failure, answered, api, dataOf, fasterOne, found, ifMatch, type MediaEvent } from "../../kernel/api";
import { absolute } from "../../kernel/time";
import type { Choice, Choices } from "../event/choices";
import type { Fields, Names } from "./csv";

const SIZE = 1000;
export const MOST_EVENTS = 10_000;

export interface EventQuery {
  from?: string | undefined;
  to?: string | undefined;
  room?: string | undefined;
  channel?: string | undefined;
  eventType?: string | undefined;
  tags?: string[] | undefined;
  category?: string[] | undefined;
  search?: string | undefined;
}

export interface Found {
  events: MediaEvent[];
  total: number;
}

/** Reads the matching Events by their start, up to the limit of a page of the console. */
export async function eventsOf(query: EventQuery, { deleted, signal }: { deleted: boolean; signal: AbortSignal }): Promise<Found> {
  const events: MediaEvent[] = [];
  for (let pageNumber = 1; ; pageNumber++) {
    const params = { query: { ...query, pageSize: SIZE, pageNumber, order: "ASC" as const } };
    const page = await dataOf(deleted ? api.GET("/api/event/deleted/", { params, signal }) : api.GET("/api/event/", { params, signal }));
    events.push(...page.results);
    if (page.results.length < SIZE || events.length >= Math.min(MOST_EVENTS, page.totalCount)) return { events, total: page.totalCount };
  }
}

export function namesOf(choices: Choices): Names {
  const by = (all: readonly Choice[]): Map<string, string[]> => {
    const ids = new Map<string, string[]>();
    for (const { id, name } of all) ids.set(name, [...(ids.get(name) ?? []), id]);
    return ids;
  };
  return { room: by(choices.rooms), channel: by(choices.channels), type: by(choices.types), category: by(choices.categories) };
}

/** Returns the ETag of the Event if it has not changed since it was shown. */
export async function unchanged(shown: MediaEvent): Promise<string | null> {
  const { data, etag } = await found(api.GET("/api/event/{id}", { params: { path: { id: shown.id } } }));
  if (data.dateModified !== shown.dateModified) throw await overtaken(shown.id);
  return etag;
}

async function overtaken(id: string): Promise<Failure> {
  const who = await fasterOne("event", id).catch(() => null);
  const sentence = who === null ? "It was changed meanwhile" : `${who.actor} was faster, ${absolute(new Date(who.at))}`;
  return new Failure(412, `${sentence}. Check the current Event and try again.`);
}

export interface Changed {
  event: MediaEvent;
  etag: string | null;
}

/** Writes some fields of the version with this ETag. */
export async function change(id: string, fields: Fields, etag: string | null): Promise<Changed> {
  const body = Object.entries(fields).map(([name, value]) => ({ op: "replace" as const, path: `/${name}`, value }));
  const headers = { "content-type": "application/json-patch+json", ...ifMatch(etag) };
  try {
    const { data, etag: next } = await answered(api.PATCH("/api/event/{id}", { params: { path: { id } }, body, headers }));
    return { event: data, etag: next };
  } catch (thrown) {
    throw thrown instanceof Failure && thrown.wasOvertaken ? await overtaken(id) : thrown;
  }
}

export async function add(fields: Fields, key = crypto.randomUUID() as string): Promise<MediaEvent> {
  return dataOf(api.POST("/api/event/", { body: fields as never, headers: { "Idempotency-Key": key } }));
}

export async function remove(shown: MediaEvent): Promise<void> {
  const etag = await unchanged(shown);
  await answered(api.DELETE("/api/event/{id}", { params: { path: { id: shown.id } }, headers: ifMatch(etag) }));
}

export async function restore(id: string): Promise<void> {
  await answered(api.PUT("/api/event/restore/{id}", { params: { path: { id } } }));
}

/** Finds the newest Event with this reference; null if there is none. */
export async function byReference(reference: string): Promise<Changed | null> {
  const { data, etag, response } = await answered(api.GET("/api/event/reference", { params: { query: { id: reference } } }));
  return response.status === 204 || !data ? null : { event: data, etag };
}
