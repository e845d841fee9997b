/** The actions on a job, with the roles and states that the engine allows. */

import { Failure, NO_CLIENT, answered, api, ifMatch, type Schemas } from "../../kernel/api";
import { may, session } from "../../kernel/session";

export type Job = Schemas["FullJob"];
export type Action = "retry" | "resume" | "pause" | "cancel" | "rerun";

export const ACTIONS: Readonly<Record<Action, { word: string; done: string; danger: boolean; about: string }>> = {
  retry: {
    word: "Retry",
    done: "is queued again",
    danger: false,
    about: "It continues where it stopped: completed tasks stay completed, the others are retried.",
  },
  resume: { word: "Resume", done: "is queued again", danger: false, about: "It is queued immediately. Its time and its gate are not checked again." },
  pause: { word: "Pause", done: "is paused", danger: false, about: "A running step continues to its end; no further step starts." },
  cancel: { word: "Cancel", done: "is cancelled", danger: true, about: "Running steps are stopped immediately, and their unfinished files are discarded." },
  rerun: {
    word: "Run again",
    done: "runs again",
    danger: true,
    about: "It is cancelled, whatever its state, and a new job with the same parameters starts from the beginning.",
  },
};

const OPEN = ["queued", "started", "pending", "scheduled"];

export function hasEnded(job: Pick<Job, "queue_state">): boolean {
  return job.queue_state === "completed" || job.queue_state === "broken";
}

/** Returns true if the state of the job allows the action. */
export function allows(job: Pick<Job, "queue_state" | "failed">, action: Action): boolean {
  switch (action) {
    case "retry":
      return job.queue_state === "broken" || (job.queue_state === "completed" && job.failed);
    case "resume":
      return job.queue_state === "paused";
    case "pause":
      return OPEN.includes(job.queue_state);
    case "cancel":
      return OPEN.includes(job.queue_state) || job.queue_state === "paused";
    case "rerun":
      return true;
  }
}

/** Returns the reason why the caller may not change the job; null if it may. */
export function refusal(job: Pick<Job, "client">): string | null {
  if (!may("operator")) return "This needs the role operator or admin.";
  if (may() || job.client === session.value?.client) return null;
  return `The job belongs to the client ${job.client}; only it and an admin may change it.`;
}

/** Carries out the action. Returns the number of the new job for `rerun`, else null. `etag` is the version of the job as it was shown. */
export async function act(id: number, action: Action, etag: string | null = null): Promise<number | null> {
  if (action === "rerun") {
    const made = await answered(api.POST("/engine/jobs/{job_id}/rerun", { params: { path: { job_id: id }, header: NO_CLIENT }, headers: ifMatch(etag) }));
    return made.data.id;
  }
  if (action === "retry") {
    const paused = await change(id, { queue_state: "PAUSED" }, etag);
    try {
      await change(id, { queue_state: "QUEUED" }, paused);
    } catch (thrown) {
      const why = thrown instanceof Failure ? thrown.detail : String(thrown);
      throw new Failure(thrown instanceof Failure ? thrown.status : 0, `The job is paused now, and was not queued: ${why}`);
    }
    return null;
  }
  await change(id, { queue_state: action === "cancel" ? "BROKEN" : action === "pause" ? "PAUSED" : "QUEUED" }, etag);
  return null;
}

export async function change(id: number, body: Schemas["ChangeJobRequest"], etag: string | null): Promise<string | null> {
  return (await answered(api.PUT("/engine/job/{job_id}", { params: { path: { job_id: id }, header: NO_CLIENT }, headers: ifMatch(etag), body }))).etag;
}
