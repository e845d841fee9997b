import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { api, dataOf, type Failure } from "../../kernel/api";
import { onChange, onReturn, type ChangeFilter } from "../../kernel/changes";
import { asFailure } from "../../kernel/failure";
import type { Entry } from "./words";

const PAGE = 200;
const LARGEST = 1000;
const QUIET = 400;

export interface Filters {
  aggregate?: string;
  id?: string;
  type?: string;
  actor?: string;
  transactionId?: string;
  from?: string;
  to?: string;
}

interface Part {
  entries: readonly Entry[];
  /** The beginning of the next page; null at the end. */
  next: number | null;
}

/** Reads a page of the log. A page may be empty without being the last. */
async function page(filters: Filters, place: { before?: number; after?: number }, ascending: boolean, size: number, signal: AbortSignal): Promise<Part> {
  const query = { ...filters, ...place, order: ascending ? ("ASC" as const) : ("DESC" as const), pageSize: size };
  const found = await dataOf(api.GET("/api/audit/events/", { params: { query }, signal }));
  const cursor = found.next ? new URL(found.next, location.origin).searchParams.get(ascending ? "after" : "before") : null;
  return { entries: found.results, next: cursor === null ? null : Number(cursor) };
}

/** All entries that match, page by page, until `most` are read. */
export async function* pages(filters: Filters, ascending: boolean, most: number, signal: AbortSignal): AsyncGenerator<readonly Entry[]> {
  let next: number | null | undefined;
  let read = 0;
  while (next !== null && read < most) {
    const place = next === undefined ? {} : ascending ? { after: next } : { before: next };
    const found: Part = await page(filters, place, ascending, Math.min(LARGEST, most - read), signal);
    read += found.entries.length;
    next = found.next;
    yield found.entries;
  }
}

export interface Log {
  entries: readonly Entry[];
  failure: Failure | null;
  isReading: boolean;
  isWhole: boolean;
  /** The position searched so far while nothing matches. */
  reached: number | null;
  /** True if there are newer entries that are not shown yet. */
  isBehind: boolean;
  more: () => void;
  /** Reads the new entries. */
  catchUp: () => void;
  again: () => void;
}

interface Known {
  entries: readonly Entry[];
  next: number | null | undefined;
  failure: Failure | null;
  isReading: boolean;
}

const NOTHING: Known = { entries: [], next: undefined, failure: null, isReading: true };

/** The entries that match, the newest first; more are read as the list is scrolled. `mayFollow` says whether new ones are shown at once. */
export function useLog(filters: Filters, ascending: boolean, mayFollow: () => boolean): Log {
  const key = JSON.stringify([filters, ascending]);
  const [known, setKnown] = useState<Known>(NOTHING);
  const [isBehind, setBehind] = useState(false);
  const latest = useRef<Known>(known);
  latest.current = known;
  const end = useRef(new AbortController());
  const follow = useRef(mayFollow);
  follow.current = mayFollow;

  const read = useCallback(
    async (from: Known): Promise<void> => {
      const { signal } = end.current;
      setKnown({ ...from, isReading: true, failure: null });
      try {
        let { next } = from;
        let isReading = true;
        while (isReading) {
          const place = next === undefined || next === null ? {} : ascending ? { after: next } : { before: next };
          const found: Part = await page(filters, place, ascending, PAGE, signal);
          if (signal.aborted) return;
          next = found.next;
          isReading = next !== null && found.entries.length === 0;
          const more = { next, isReading, failure: null };
          setKnown((now) => ({ ...more, entries: [...now.entries, ...found.entries] })); // new entries may have arrived meanwhile
        }
      } catch (thrown) {
        if (!signal.aborted) setKnown((now) => ({ ...now, failure: asFailure(thrown), isReading: false }));
      }
    },
    [key],
  );
  const again = useCallback(() => {
    end.current.abort();
    end.current = new AbortController();
    setBehind(false);
    void read(NOTHING);
  }, [read]);
  useEffect(() => {
    again();
    return () => end.current.abort();
  }, [again]);

  const catchUp = useCallback(async (): Promise<void> => {
    const { signal } = end.current;
    const newest = latest.current.entries[0]?.position;
    if (newest === undefined) return latest.current.isReading ? setBehind(true) : again();
    try {
      const found = await page(filters, { after: newest }, true, LARGEST, signal);
      if (signal.aborted) return;
      if (found.next !== null) return again();
      setBehind(false);
      setKnown((now) => ({ ...now, failure: null, entries: [...found.entries.filter((each) => each.position > (now.entries[0]?.position ?? 0)).reverse(), ...now.entries] }));
    } catch (thrown) {
      if (!signal.aborted) setKnown((now) => ({ ...now, failure: asFailure(thrown) }));
    }
  }, [key, again]);

  useEffect(() => {
    if (ascending) return;
    const filter: ChangeFilter = {
      ...(filters.aggregate ? { aggregates: [filters.aggregate] } : {}),
      ...(filters.type ? { types: [filters.type] } : {}),
    };
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = onChange(filter, () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        if (follow.current()) void catchUp();
        else setBehind(true);
      }, QUIET);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [key, catchUp]);

  useEffect(() => onReturn(() => (ascending ? again() : void catchUp())), [again, catchUp]);

  const more = useCallback(() => {
    const now = latest.current;
    if (!now.isReading && now.next !== null && now.failure === null) void read(now);
  }, [read]);
  return {
    entries: known.entries,
    failure: known.failure,
    isReading: known.isReading,
    isWhole: known.next === null,
    reached: known.next ?? null,
    isBehind,
    more,
    catchUp: () => void catchUp(),
    again,
  };
}
