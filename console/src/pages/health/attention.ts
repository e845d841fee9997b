/** What needs somebody's attention, and the command or the page that helps. */

import type { Schemas } from "../../kernel/api";
import { to } from "../../kernel/router";
import { duration } from "../../kernel/time";

type Overview = Schemas["HealthOverview"];

export interface Finding {
  tone: "bad" | "warn";
  text: string;
  /** A command of the command line. */
  command?: string;
  /** A page of the console, and its name. */
  page?: readonly [href: string, word: string];
}

const LATE = 300;
const BEHIND = 10_000;
const UNSEALED = 600;
const UNANCHORED = 24 * 3600;

/** The worst first. `medialedger status` and the alert rules say the same. */
export function findings(seen: Overview): Finding[] {
  const found = [...log(seen), ...disks(seen), ...consumers(seen), ...events(seen), ...jobs(seen), ...deliveries(seen), ...sessions(seen)];
  return [...found.filter((each) => each.tone === "bad"), ...found.filter((each) => each.tone === "warn")];
}

function log({ log }: Overview): Finding[] {
  const found: Finding[] = [];
  if (log.badPosition !== null) found.push({ tone: "bad", text: `The log does not fit its hashes from position ${log.badPosition} on.`, command: "medialedger audit verify" });
  if (log.unsealedSeconds > UNSEALED && log.sealedAt !== null) {
    found.push({ tone: "warn", text: `${log.unsealedEvents} events have no signed checkpoint for ${words(log.unsealedSeconds)}.`, command: "medialedger workers sealer" });
  }
  if (log.unanchoredSeconds > UNANCHORED) {
    found.push({ tone: "warn", text: `Checkpoints were kept outside of the database last ${words(log.unanchoredSeconds)} ago.`, command: "medialedger audit checkpoint" });
  }
  return found;
}

const disks = ({ disks }: Overview): Finding[] =>
  disks.filter((each) => each.low).map((each) => ({ tone: "bad", text: `Too little room on the disk of ${each.name}.`, command: "medialedger status" }));

function consumers({ consumers, processes }: Overview): Finding[] {
  return consumers.flatMap((each): Finding[] => {
    const found: Finding[] = [];
    const failing = each.members.find((member) => (member.failingSeconds ?? 0) > 0);
    if (failing) found.push({ tone: "bad", text: `${each.name} fails on ${failing.host} for ${words(failing.failingSeconds ?? 0)}: ${failing.fault ?? ""}` });
    if (each.position !== null && each.held < each.shards && processes.length > 0) {
      found.push({ tone: "bad", text: `Nobody runs ${each.name}.`, command: `medialedger workers ${each.name}` });
    }
    if (each.parked > 0) found.push({ tone: "bad", text: `${each.name} could not process ${each.parked === 1 ? "1 record" : `${each.parked} records`}.`, command: `medialedger consumers parked ${each.name}` });
    if ((each.lag ?? 0) > BEHIND) found.push({ tone: "warn", text: `${each.name} is ${(each.lag ?? 0).toLocaleString("en")} events behind.` });
    return found;
  });
}

function events({ eventsDue, points }: Overview): Finding[] {
  const due = Object.entries(eventsDue).filter(([, count]) => count > 0);
  const found: Finding[] = due.map(([action, count]) => ({
    tone: "warn",
    text: `${count === 1 ? "1 Event is" : `${count} Events are`} late: the schedule should have done “${action}”.`,
    page: [to("/events"), "Events"],
  }));
  const silent = points["not_receiving"] ?? 0;
  if (silent > 0) found.push({ tone: "bad", text: `${silent} publishing ${silent === 1 ? "point of a live Event receives" : "points of live Events receive"} nothing.` });
  const idle = points["not_started"] ?? 0;
  if (idle > 0) found.push({ tone: "warn", text: `${idle} publishing ${idle === 1 ? "point of a live Event has" : "points of live Events have"} not started.` });
  return found;
}

function jobs({ jobs }: Overview): Finding[] {
  const found: Finding[] = [];
  const failed = jobs.states["failed"] ?? 0;
  if (failed > 0) found.push({ tone: "warn", text: failed === 1 ? "1 job has failed." : `${failed} jobs have failed.`, page: [to("/jobs", { state: "failed" }), "Failed jobs"] });
  if (jobs.workers === 0) found.push({ tone: "bad", text: "No process runs the steps of jobs.", command: "medialedger workers work" });
  if (jobs.oldestQueuedSeconds > LATE) {
    found.push({ tone: "warn", text: `A job has been queued for ${words(jobs.oldestQueuedSeconds)}.`, page: [to("/jobs", { state: "queued" }), "Queued jobs"] });
  }
  return found;
}

const deliveries = ({ deliveries }: Overview): Finding[] =>
  deliveries.oldestSeconds > LATE
    ? [{ tone: "warn", text: `A delivery has been due for ${words(deliveries.oldestSeconds)}.`, page: [to("/deliveries"), "Deliveries"] }]
    : [];

const sessions = ({ sessions }: Overview): Finding[] =>
  sessions
    .filter((each) => each.state === "failed" && each.count > 0)
    .map((each) => ({ tone: "bad", text: `${each.count} ${each.kind} ${each.count === 1 ? "session has" : "sessions have"} failed.`, command: "medialedger sessions list" }));

const words = (seconds: number): string => duration(seconds * 1000);
