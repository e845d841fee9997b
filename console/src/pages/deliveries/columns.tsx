/** The columns of lists of deliveries. */

import type { Schemas } from "../../kernel/api";
import { DELIVERY_STATES, stateWord } from "../../kernel/states";
import { absolute, now } from "../../kernel/time";
import { Badge, Time, type Column } from "../../parts";
import { titleOr, type Titles } from "../events/titles";

export type WebhookHealth = Schemas["WebhookHealth"];
export type Delivery = Schemas["Delivery"];

export const STATES = { FAILED: 2, PENDING: 0, DELIVERED: 1 } as const;

/** A due delivery waits behind earlier deliveries, or for a paused receiver. */
export function NextTry({ at }: { at: string | null | undefined }) {
  if (at && Date.parse(at) <= now.value) return <span title={absolute(new Date(at))}>due now</span>;
  return <Time at={at} as="relative" />;
}

export const columnsOf = (titles: Titles): readonly Column<Delivery>[] => [
  {
    key: "what",
    title: "Delivery",
    cell: (each) => (
      <span class="row-link" title={each.id}>
        <bdi>{each.action}</bdi> <bdi class="faint">{titleOf(each, titles)}</bdi>
      </span>
    ),
  },
  { key: "state", title: "State", width: "8rem", cell: (each) => <Badge state={stateWord(DELIVERY_STATES, STATES[each.state])} /> },
  { key: "tries", title: "Tries", width: "4.5rem", align: "end", cell: (each) => each.attempts.length },
  {
    key: "error",
    title: "Last answer",
    secondary: true,
    cell: (each) => <span title={each.error ?? ""}>{each.error ?? answerOf(each)}</span>,
  },
  { key: "created", title: "Created", width: "11.5rem", cell: (each) => <Time at={each.createdAt} /> },
  { key: "due", title: "Next try", width: "9rem", secondary: true, cell: (each) => <NextTry at={each.dueAt} /> },
];

/** The subject: the title of the Event as it was sent, else its current title, else its id, or the job. */
function titleOf(delivery: Delivery, titles: Titles): string {
  const payload = delivery.payload as Record<string, unknown>;
  const title = [payload["title"], payload["eventTitle"]].find((each) => typeof each === "string" && each !== "");
  if (typeof title === "string") return title.slice(0, 300);
  if (delivery.eventId !== null) return titleOr(titles, delivery.eventId).slice(0, 300);
  return delivery.jobId !== null ? `job ${delivery.jobId}` : `position ${delivery.position}`;
}

function answerOf(delivery: Delivery): string {
  const last = delivery.attempts[delivery.attempts.length - 1];
  return last?.status ? `HTTP ${last.status}` : "not attempted yet";
}
