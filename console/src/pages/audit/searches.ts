/** Searches that the user has saved in this browser. They contain filters and no content. */

import { signal } from "@preact/signals";

export interface SavedSearch {
  name: string;
  query: Record<string, string>;
}

const KEY = "medialedger audit searches";
const MOST = 50;
export const searches = signal<readonly SavedSearch[]>(stored());

function stored(): readonly SavedSearch[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? found.filter(isSearch) : [];
  } catch {
    return [];
  }
}

function isSearch(found: unknown): found is SavedSearch {
  const one = found as SavedSearch | null;
  return typeof one?.name === "string" && typeof one.query === "object" && one.query !== null && Object.values(one.query).every((each) => typeof each === "string");
}

/** Saves a search; a search of the same name is replaced. Throws if the browser stores nothing. */
export function saveSearch(search: SavedSearch): void {
  keep([...searches.value.filter((each) => each.name !== search.name), search].slice(-MOST));
}

export function forgetSearch(name: string): void {
  keep(searches.value.filter((each) => each.name !== name));
}

function keep(next: readonly SavedSearch[]): void {
  if (next.length === 0) localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, JSON.stringify(next));
  searches.value = next;
}
