import { useState } from "preact/hooks";
import { asFailure, fasterOne } from "../../kernel/api";
import { absolute } from "../../kernel/time";
import { toast, toastFailure } from "../../kernel/toasts";
import { Button, Confirm, Field } from "../../parts";
import { ACTIONS, act, allows, change, hasEnded, refusal, type Action, type Job } from "../jobs/jobActions";

interface JobButtonsProps {
  job: Job;
  etag: string | null;
  /** Called after an action, with the number of the new job after “Run again”. */
  onDone: (made: number | null) => void;
}

const ORDER: readonly Action[] = ["retry", "resume", "pause", "cancel", "rerun"];
const PRIORITIES = Array.from({ length: 10 }, (_, index) => {
  const number = String(index + 1);
  return [number, index === 0 ? "1, most urgent" : index === 9 ? "10, least urgent" : number] as const;
});

/** The actions on a job in its state. */
export function JobButtons({ job, etag, onDone }: JobButtonsProps) {
  const [asked, setAsked] = useState<Action | "priority" | null>(null);
  const [priority, setPriority] = useState(String(job.priority));
  const refused = refusal(job);
  const withReason = (word: string): { disabled: boolean; label?: string } => (refused ? { disabled: true, label: `${word}: ${refused}` } : { disabled: false });
  const attempt = async (what: string, does: () => Promise<void>): Promise<void> => {
    try {
      await does();
    } catch (thrown) {
      onDone(null);
      if (!asFailure(thrown).wasOvertaken) return toastFailure(`Not done: ${what}`, thrown);
      const faster = await fasterOne("job", String(job.id)).catch(() => null);
      const who = faster ? `${faster.actor} was faster, ${absolute(new Date(faster.at))}.` : "It was changed meanwhile by a user or the engine.";
      toast(`Not done: ${what}`, "bad", `${who} Check the job, and repeat the action if it is still needed.`);
    }
  };
  const perform = (action: Action): Promise<void> =>
    attempt(`${ACTIONS[action].word} job ${job.id}`, async () => {
      const made = await act(job.id, action, etag);
      toast(made === null ? `Job ${job.id} ${ACTIONS[action].done}` : `Job ${job.id} runs again as job ${made}`);
      onDone(made);
    });
  const prioritise = (): Promise<void> =>
    attempt(`Priority of job ${job.id}`, async () => {
      await change(job.id, { priority: Number(priority) }, etag);
      toast(`Job ${job.id} has priority ${priority}`);
      onDone(null);
    });
  return (
    <>
      {ORDER.filter((action) => allows(job, action)).map((action) => (
        <Button key={action} kind={action === "retry" || action === "resume" ? "primary" : "plain"} {...withReason(ACTIONS[action].word)} onClick={() => setAsked(action)}>
          {ACTIONS[action].word}
        </Button>
      ))}
      {!hasEnded(job) && (
        <Button
          {...withReason(`Priority ${job.priority}`)}
          onClick={() => {
            setPriority(String(job.priority));
            setAsked("priority");
          }}
        >
          Priority {job.priority}
        </Button>
      )}
      {asked === "priority" && (
        <Confirm title={`Priority of job ${job.id}`} action="Change" open onClose={() => setAsked(null)} onConfirm={prioritise}>
          <Field
            label="Priority"
            name="priority"
            value={priority}
            onInput={setPriority}
            options={PRIORITIES}
            hint="It applies among the jobs of the client, and to tasks that wait for a worker."
          />
        </Confirm>
      )}
      {asked !== null && asked !== "priority" && (
        <Confirm
          title={`${ACTIONS[asked].word} job ${job.id}?`}
          action={`${ACTIONS[asked].word} job ${job.id}`}
          danger={ACTIONS[asked].danger}
          open
          onClose={() => setAsked(null)}
          onConfirm={() => perform(asked)}
        >
          <p>
            {job.workflow}, <bdi>{String(job.parameters?.["content_id"] ?? "").slice(0, 200)}</bdi>
          </p>
          <p>{ACTIONS[asked].about}</p>
        </Confirm>
      )}
    </>
  );
}
