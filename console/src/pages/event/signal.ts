import type { MediaEvent, Schemas } from "../../kernel/api";
import type { StateWord } from "../../kernel/states";

type Point = Schemas["PublishingPointHealth"];

export const UNKNOWN: StateWord = { word: "Unknown", tone: "neutral" };
export const SIGNAL_UNKNOWN: StateWord = { word: "Signal unknown", tone: "neutral" };

/** The signal at the publishing points of an Event on the air, in a word. `points` are the current reports; undefined if unknown. */
export function signalOf(event: Pick<MediaEvent, "id" | "channelId">, points: Schemas["LiveStreamHealth"] | undefined): StateWord {
  if (event.channelId === null) return { word: "No channel", tone: "bad" };
  if (points === undefined) return SIGNAL_UNKNOWN;
  const urls = points[event.id]?.urls ?? [];
  if (urls.length === 0) return { word: "No publishing point", tone: "warn" };
  const good = urls.filter((each) => each.hasStarted && each.receivingData).length;
  if (good === urls.length) return { word: "Signal", tone: "ok" };
  if (good > 0) return { word: `Signal at ${good} of ${urls.length}`, tone: "warn" };
  if (urls.every((each) => each.state === "unknown")) return SIGNAL_UNKNOWN;
  return { word: "No signal", tone: "bad" };
}

export function pointWord(point: Point): StateWord {
  if (point.state === "unknown") return UNKNOWN;
  if (!point.hasStarted) return { word: point.state, tone: "warn" };
  return point.receivingData ? { word: "Receiving", tone: "ok" } : { word: "No data", tone: "bad" };
}
