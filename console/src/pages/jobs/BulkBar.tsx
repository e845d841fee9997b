import type { Signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { Run } from "../../kernel/runs";
import { Button, Confirm } from "../../parts";
import { ACTIONS, act, allows, refusal, type Action, type Job } from "./jobActions";

interface BulkBarProps {
  /** The selected jobs. */
  jobs: readonly Job[];
  all: readonly Job[];
  selected: Signal<ReadonlySet<number>>;
  onDone: () => void;
}

const BULK: readonly Action[] = ["retry", "resume", "pause", "cancel"];
/** The run, which continues while another list or page is shown. */
export const changing = new Run({ page: "/jobs", atOnce: 4 });

/** The actions on several jobs at once. */
export function BulkBar({ jobs, all, selected, onDone }: BulkBarProps) {
  const [asked, setAsked] = useState<Action | null>(null);
  if (jobs.length === 0) return null;
  const of = (action: Action): Job[] => jobs.filter((job) => allows(job, action) && refusal(job) === null);
  const changeable = all.filter((job) => refusal(job) === null);
  const perform = async (action: Action): Promise<void> => {
    const step = async (id: number): Promise<string> => {
      await act(id, action);
      selected.value = new Set([...selected.peek()].filter((each) => each !== id)); // refused jobs stay selected
      return ACTIONS[action].done;
    };
    const steps = of(action).map(({ id }) => ({ what: `Job ${id}`, act: () => step(id) }));
    await changing.start(`${ACTIONS[action].word} ${count(steps.length)}`, steps);
    onDone();
  };
  return (
    <div class="bulk" role="region" aria-label="Chosen jobs">
      <strong role="status">{count(jobs.length)} chosen</strong>
      {BULK.map((action) => (
        <Button key={action} disabled={of(action).length === 0 || changing.state.running} onClick={() => setAsked(action)}>
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
          onConfirm={async () => void perform(asked)}
        >
          <p>{ACTIONS[asked].about}</p>
          <p class="faint bulk-names">{of(asked).map((job) => job.id).slice(0, 100).join(", ")}</p>
        </Confirm>
      )}
    </div>
  );
}

const count = (jobs: number): string => (jobs === 1 ? "1 job" : `${jobs} jobs`);
