/** Titles of Events for lists that have only their ids: one request for a hundred of them. */

import { api, dataOf } from "../../kernel/api";
import { useQuery } from "../../kernel/query";

/** Titles by id in lower case. Deleted Events and other ids are absent. */
export type Titles = ReadonlyMap<string, string>;

const GUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const BATCH = 100;
const NONE: Titles = new Map();

/** Returns true if the text may be the id of an Event. */
export const isGuid = (text: string): boolean => GUID.test(text);

/** Reads the titles of Events. The map is empty until they are read, and if they cannot be read. */
export function useTitles(ids: readonly string[]): Titles {
  const wanted = [...new Set(ids.filter(isGuid).map((id) => id.toLowerCase()))].sort();
  const titles = useQuery(wanted.length === 0 ? null : `titles ${wanted.join()}`, (signal) => read(wanted, signal), {
    changes: { aggregates: ["event"], types: ["event.registered", "event.described", "event.deleted", "event.restored"], ids: wanted },
  });
  return titles.data.value ?? NONE;
}

/** The text for a content in a list: the title of its Event, else the id. */
export const titleOr = (titles: Titles, id: string): string => {
  const title = titles.get(id.toLowerCase());
  return title === undefined ? id : title || "Without a title";
};

async function read(ids: readonly string[], signal: AbortSignal): Promise<Titles> {
  const parts = Array.from({ length: Math.ceil(ids.length / BATCH) }, (_, part) => ids.slice(part * BATCH, (part + 1) * BATCH));
  const pages = await Promise.all(parts.map((part) => dataOf(api.GET("/api/event/", { params: { query: { ids: part, pageSize: BATCH } }, signal }))));
  return new Map(pages.flatMap((page) => page.results.map((event) => [event.id, event.title] as const)));
}
