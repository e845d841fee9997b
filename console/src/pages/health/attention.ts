/** The pages of the console for the findings of the server. */

import type { Schemas } from "../../kernel/api";
import { to } from "../../kernel/router";

export type Finding = Schemas["Attention"];

/** The address of a page, and its name. */
export function pageOf(finding: Finding): readonly [href: string, word: string] | null {
  if (finding.jobs) return [to("/jobs", { state: finding.jobs }), finding.jobs === "failed" ? "Failed jobs" : "Queued jobs"];
  if (finding.about === "events") return [to("/events"), "Events"];
  if (finding.about === "deliveries") return [to("/deliveries"), "Deliveries"];
  return null;
}
