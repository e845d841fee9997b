/** A list that is read page by page as the user scrolls. */

import { useEffect, useRef } from "preact/hooks";
import { type Query, type QueryOptions, useQuery } from "./query";

/** A page. `next` is the parameter of the next page; null on the last page. */
export interface Page<Row> {
  rows: readonly Row[];
  next: string | null;
}

export interface List<Row> {
  rows: readonly Row[];
  /** True if there are more rows. */
  more: boolean;
}

export interface Pages<Row> extends Query<List<Row>> {
  /** Reads one more page. */
  extend: () => void;
}

interface Held<Row> {
  key: string;
  pages: readonly Page<Row>[];
  wanted: number;
  /** True if the next request is for one more page only. */
  extending: boolean;
}

const QUIET = 250;
const RAREST = 30_000;

/** `ask` receives the `next` of the previous page, null for the first. A change reads all loaded pages again: the longer
 * the list, the less often. */
export function usePages<Row extends { id: string | number }>(
  key: string,
  ask: (next: string | null, end: AbortSignal) => Promise<Page<Row>>,
  options: QueryOptions = {},
): Pages<Row> {
  const held = useRef<Held<Row>>({ key, pages: [], wanted: 1, extending: false });
  if (held.current.key !== key) held.current = { key, pages: [], wanted: 1, extending: false };
  const own = held.current;
  const read = async (end: AbortSignal): Promise<List<Row>> => {
    const pages = own.extending ? [...own.pages] : [];
    own.extending = false;
    while (pages.length < own.wanted) {
      const last = pages[pages.length - 1];
      if (last?.next === null) break;
      pages.push(await ask(last?.next ?? null, end));
    }
    own.pages = pages;
    return { rows: distinct(pages), more: pages[pages.length - 1]!.next !== null };
  };
  const quiet = Math.min(QUIET * own.wanted ** 2, RAREST);
  const every = options.every && Math.min(options.every * own.wanted, RAREST);
  const query = useQuery(key, read, { ...options, quiet, ...(every && { every }) });
  const proceed = (): void => {
    if (query.loading.peek() || own.pages.length >= own.wanted || !query.data.peek()?.more) return;
    own.extending = true;
    query.refresh();
  };
  const extend = (): void => {
    if (own.pages.length === own.wanted) own.wanted += 1;
    proceed(); // the current read includes this page, unless it has just ended
  };
  useEffect(proceed, [query.data.value]);
  return { ...query, extend };
}

/** Removes duplicates: a row may move from one page to another between two reads. */
function distinct<Row extends { id: string | number }>(pages: readonly Page<Row>[]): readonly Row[] {
  return [...new Map(pages.flatMap((page) => page.rows).map((row) => [row.id, row] as const)).values()];
}

/** Returns the parameter of the next page of a bare array, from the address in its header Link. */
export function parameterOfNext(response: Response, name: string): string | null {
  const address = /<([^>]*)>; *rel="next"/.exec(response.headers.get("link") ?? "")?.[1];
  return address === undefined ? null : new URL(address, location.origin).searchParams.get(name);
}
