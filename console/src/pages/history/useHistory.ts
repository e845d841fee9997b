import { useRef } from "preact/hooks";
import { answered, api } from "../../kernel/api";
import { useQuery, type Query } from "../../kernel/query";
import type { Entry } from "../audit/words";

const PAGE = 1000;
/** Maximum number of versions that are read. */
export const MOST = 20_000;

/** All versions of an aggregate, the oldest first. New ones are added; after an erasure all are read again. */
export function useHistory(kind: string, id: string): Query<readonly Entry[]> {
  const known = useRef<readonly Entry[]>([]);
  const key = `history ${kind} ${id}`;
  const of = useRef(key);
  if (of.current !== key) {
    of.current = key;
    known.current = [];
  }
  const read = async (signal: AbortSignal): Promise<readonly Entry[]> => {
    const before = known.current;
    const added = await versions(kind, id, before.at(-1)?.version ?? 0, signal);
    const isErased = before.length > 0 && added.some((each) => each.type.endsWith(".redacted"));
    const all = isErased ? await versions(kind, id, 0, signal) : [...before, ...added];
    if (of.current === key) known.current = all;
    return all;
  };
  return useQuery(key, read, { changes: { aggregates: [kind], ids: [id] } });
}

async function versions(kind: string, id: string, after: number, signal: AbortSignal): Promise<Entry[]> {
  const all: Entry[] = [];
  let isMore = true;
  while (isMore && (all.at(-1)?.version ?? after) < MOST) {
    const query = { after: all.at(-1)?.version ?? after, pageSize: PAGE };
    const path = { aggregate: kind, id };
    const answer = await answered(api.GET("/api/audit/{aggregate}/{id}/", { params: { path, query }, signal }));
    all.push(...answer.data);
    isMore = answer.response.headers.get("link")?.includes('rel="next"') ?? false;
  }
  return all;
}
