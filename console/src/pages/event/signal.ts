import type { Schemas } from "../../kernel/api";
import type { StateWord } from "../../kernel/states";

type Point = Schemas["PublishingPointHealth"];

/** What comes at the publishing points of an Event, in a word. Null: it has none. */
export function signalOf(points: Schemas["PublishingPoints"] | undefined): StateWord | null {
  const urls = points?.urls ?? [];
  if (urls.length === 0) return null;
  const good = urls.filter((each) => each.hasStarted && each.receivingData).length;
  if (good === urls.length) return { word: "Signal", tone: "ok" };
  if (good > 0) return { word: `Signal at ${good} of ${urls.length}`, tone: "warn" };
  if (urls.every((each) => each.state === "unknown")) return { word: "Signal unknown", tone: "neutral" };
  return { word: "No signal", tone: "bad" };
}

export function pointWord(point: Point): StateWord {
  if (point.state === "unknown") return { word: "Unknown", tone: "neutral" };
  if (!point.hasStarted) return { word: point.state, tone: "warn" };
  return point.receivingData ? { word: "Receiving", tone: "ok" } : { word: "No data", tone: "bad" };
}
