/** What can be done with a job, by whom and in which state, as the engine allows it. */

import { Failure, NO_CLIENT, answered, api, ifMatch, type Schemas } from "../../kernel/api";
import { may, session } from "../../kernel/session";

export type Job = Schemas["FullJob"];
export type Action = "retry" | "resume" | "pause" | "cancel" | "rerun";

export const ACTIONS: Readonly<Record<Action, { word: string; done: string; danger: boolean; about: string }>> = {
  retry: {
    word: "Retry",
    done: "is queued again",
    danger: false,
    about: "It goes on where it stopped: completed tasks stay completed, the others are tried anew.",
  },
  resume: { word: "Resume", done: "is queued again", danger: false, about: "It is queued at once. Its time and its gate are not asked again." },
  pause: { word: "Pause", done: "is paused", danger: false, about: "A step that runs goes on to its end; no further one starts." },
  cancel: { word: "Cancel", done: "is cancelled", danger: true, about: "Steps that run are stopped at once, and what they were making is thrown away." },
  rerun: {
    word: "Run again",
    done: "is run again",
    danger: true,
    about: "It is cancelled, whatever its state, and a new job with the same parameters begins from the start.",
  },
};

const OPEN = ["queued", "started", "pending", "scheduled"];

export function hasEnded(job: Pick<Job, "queue_state">): boolean {
  return job.queue_state === "completed" || job.queue_state === "broken";
}

/** Whether the state of the job allows it. */
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

/** Why the caller may not change the job; null where it may. */
export function refusal(job: Pick<Job, "client">): string | null {
  if (!may("operator")) return "This needs the role operator or admin.";
  if (may() || job.client === session.value?.client) return null;
  return `The job belongs to the client ${job.client}; only it and an admin may change it.`;
}

/** Does it. The number of the new job for `rerun`, else null. `etag` is of the job as it was seen. */
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
