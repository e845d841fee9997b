/** Addresses in the console: paths below /console, and their query strings. */

import { useCallback } from "preact/hooks";
import { useLocation } from "preact-iso";
import { useHere } from "./here";

export { useLocation, useRoute } from "preact-iso";

export const BASE = "/console";

/** The address of a page: `to("/events", {state: "2"})`. Empty values are omitted; ids must be encoded by the caller or have no slash. */
export function to(path: string, query: Record<string, string | number | undefined> = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") search.set(name, String(value));
  }
  const text = search.toString();
  return `${BASE}${path}${text && `?${text}`}`;
}

/** The page of an Event. */
export const eventPath = (id: string): string => to(`/events/${encodeURIComponent(id)}`);
export const jobPath = (id: number | string): string => to(`/jobs/${encodeURIComponent(String(id))}`);

/** Returns a function that navigates to an address while the component is shown, for use after an answer. */
export function useGo(): (address: string) => void {
  const { route } = useLocation();
  const here = useHere();
  return useCallback((address) => here() && route(address), [route, here]);
}

export interface QueryState {
  values: Readonly<Record<string, string>>;
  /** Changes some values; `""` removes one. A change of a filter returns to the first page. Has no effect after the page was left. */
  set: (changed: Record<string, string>) => void;
}

/** The query string as the state of a page, so that a shared address shows the same view. */
export function useQueryState(): QueryState {
  const { path, query, route } = useLocation();
  const isHere = useHere();
  const set = useCallback(
    (changed: Record<string, string>) => {
      if (!isHere()) return;
      const next: Record<string, string> = { ...Object.fromEntries(new URLSearchParams(location.search)), ...changed };
      if (!("page" in changed)) delete next["page"];
      for (const [name, value] of Object.entries(next)) if (value === "") delete next[name];
      const text = new URLSearchParams(next).toString();
      const here = path === BASE ? `${BASE}/` : path; // the router removes the slash
      route(text ? `${here}?${text}` : here, true);
    },
    [path, route, isHere],
  );
  return { values: query, set };
}
