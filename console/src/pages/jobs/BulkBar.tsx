import type { Signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { asFailure } from "../../kernel/api";
import { toast } from "../../kernel/toasts";
import { Button, Confirm } from "../../parts";
import { ACTIONS, act, allows, refusal, type Action, type Job } from "./jobActions";

interface BulkBarProps {
  /** The chosen ones. */
  jobs: readonly Job[];
  all: readonly Job[];
  selected: Signal<ReadonlySet<number>>;
  onDone: () => void;
}

const BULK: readonly Action[] = ["retry", "resume", "pause", "cancel"];
const AT_ONCE = 4;

/** What is done with several jobs at once. */
export function BulkBar({ jobs, all, selected, onDone }: BulkBarProps) {
  const [asked, setAsked] = useState<Action | null>(null);
  if (jobs.length === 0) return null;
  const of = (action: Action): Job[] => jobs.filter((job) => allows(job, action) && refusal(job) === null);
  const changeable = all.filter((job) => refusal(job) === null);
  const perform = async (action: Action): Promise<void> => {
    const wrong = await each(of(action), (job) => act(job.id, action));
    const done = of(action).length - wrong.length;
    selected.value = new Set(wrong.map(([job]) => job.id));
    onDone();
    if (done > 0) toast(`${ACTIONS[action].word}: ${count(done)} done`);
    if (wrong.length > 0) toast(`${ACTIONS[action].word}: ${count(wrong.length)} not done`, "bad", wrong.map(([job, why]) => `${job.id}: ${why}`).slice(0, 5).join("; "));
  };
  return (
    <div class="bulk" role="region" aria-label="Chosen jobs">
      <strong role="status">{count(jobs.length)} chosen</strong>
      {BULK.map((action) => (
        <Button key={action} disabled={of(action).length === 0} onClick={() => setAsked(action)}>
          {ACTIONS[action].word} {of(action).length > 0 && of(action).length}
        </Button>
      ))}
      {jobs.length < changeable.length && (
        <Button kind="quiet" onClick={() => (selected.value = new Set(changeable.map((job) => job.id)))}>
          Choose all {changeable.length}
        </Button>
      )}
      <Button kind="quiet" icon="close" onClick={() => (selected.value = new Set())}>
        Choose none
      </Button>
      {asked && (
        <Confirm
          title={`${ACTIONS[asked].word} ${count(of(asked).length)}?`}
          action={`${ACTIONS[asked].word} ${count(of(asked).length)}`}
          danger={ACTIONS[asked].danger}
          open
          onClose={() => setAsked(null)}
          onConfirm={() => perform(asked)}
        >
          <p>{ACTIONS[asked].about}</p>
          <p class="faint bulk-names">{of(asked).map((job) => job.id).slice(0, 100).join(", ")}</p>
        </Confirm>
      )}
    </div>
  );
}

const count = (jobs: number): string => (jobs === 1 ? "1 job" : `${jobs} jobs`);

/** A few at a time; those that were refused, with the reason. */
async function each(jobs: readonly Job[], perform: (job: Job) => Promise<unknown>): Promise<[Job, string][]> {
  const waiting = [...jobs];
  const wrong: [Job, string][] = [];
  const work = async (): Promise<void> => {
    for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) {
      try {
        await perform(job);
      } catch (thrown) {
        wrong.push([job, asFailure(thrown).detail]);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return wrong;
}
