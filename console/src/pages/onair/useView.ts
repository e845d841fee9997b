import { computed, type ReadonlySignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { useQueryState } from "../../kernel/router";
import { now } from "../../kernel/time";
import type { LaneKind } from "./lanes";

export const ZOOMS = [2, 6, 24] as const;
export type Zoom = (typeof ZOOMS)[number];
const HOUR = 3_600_000;
/** The position of the current time in the window until the user scrolls. */
const NOW_AT = 0.25;
/** The window follows the time in steps, so that bars need not be drawn every second. */
const STEP = 20_000;

export interface View {
  by: LaneKind;
  zoom: Zoom;
  /** The window, in milliseconds. */
  from: number;
  to: number;
  /** The time of the last step. */
  at: number;
  /** True while the window follows the time. */
  follows: boolean;
  show: (changed: { by?: LaneKind; zoom?: Zoom; from?: number | null }) => void;
}

const steps: ReadonlySignal<number> = computed(() => Math.floor(now.value / STEP) * STEP);

/** The visible part of the time line, from the query string: `by`, `hours`, `from`. */
export function useView(): View {
  const { values, set } = useQueryState();
  const at = steps.value;
  const by: LaneKind = values["by"] === "channel" ? "channel" : "room";
  const narrow = matchMedia("(max-width: 40rem)").matches;
  const zoom = ZOOMS.find((each) => String(each) === values["hours"]) ?? (narrow ? 2 : 6);
  const asked = Date.parse(values["from"] ?? "");
  const follows = Number.isNaN(asked);
  const from = follows ? at - zoom * HOUR * NOW_AT : asked;
  const show: View["show"] = (changed) => {
    const next: Record<string, string> = {};
    if (changed.by) next["by"] = changed.by;
    if (changed.zoom) {
      next["hours"] = String(changed.zoom);
      if (!follows && changed.from === undefined) next["from"] = iso(from + ((zoom - changed.zoom) * HOUR) / 2);
    }
    if (changed.from !== undefined) next["from"] = changed.from === null ? "" : iso(changed.from);
    set(next);
  };
  return useMemo(() => ({ by, zoom, from, to: from + zoom * HOUR, at, follows, show }), [by, zoom, from, at, follows, set]);
}

/** The times of one request for many windows: whole parts of the zoom with a margin, including Events that began long before. */
export function asked({ from, to, zoom }: Pick<View, "from" | "to" | "zoom">): { from: string; to: string } {
  const part = (zoom * HOUR) / 2;
  return { from: iso(Math.floor(from / part) * part - 12 * HOUR), to: iso((Math.floor(to / part) + 1) * part) };
}

function iso(at: number): string {
  return new Date(Math.min(Math.max(at, 0), 8.64e15)).toISOString();
}
