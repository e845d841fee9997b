import type { ReadonlySignal } from "@preact/signals";
import { jobPath } from "../../kernel/router";
import { jobState } from "../../kernel/states";
import { duration, now } from "../../kernel/time";
import { Badge, Progress, Time, type Column } from "../../parts";
import { titleOr, type Titles } from "../events/titles";
import { refusal, type Job } from "./jobActions";
import type { Running } from "./progress";

interface Shown {
  running: ReadonlySignal<ReadonlyMap<number, Running>>;
  selected: ReadonlySignal<ReadonlySet<number>>;
  toggle: (job: Job, on: boolean) => void;
  mayChange: boolean;
  titles: Titles;
}

/** The columns of a tab. If all jobs have one state, it is not repeated in each row. */
export function columnsOf(tab: string, shown: Shown): readonly Column<Job>[] {
  const isMixed = tab === "total";
  const columns: (Column<Job> | false)[] = [
    { key: "id", title: "Job", sortable: true, cell: (job) => <Main job={job} shown={shown} /> },
    isMixed && { key: "queue_state", title: "State", sortable: true, width: "9.5rem", cell: (job) => <Badge state={jobState(job)} /> },
    { key: "workflow", title: "Workflow", sortable: true, width: "10rem", secondary: true, cell: (job) => job.workflow },
    { key: "about", title: ABOUT[tab] ?? "Progress", secondary: isMixed, cell: (job) => <About job={job} running={shown.running} /> },
    { key: "duration", title: "Took", width: "5.5rem", align: "end", secondary: true, cell: (job) => <Took job={job} /> },
    { key: "created_at", title: "Accepted", sortable: true, width: "11.5rem", cell: (job) => <Time at={job.created_at} /> },
    { key: "client", title: "Client", sortable: true, width: "8rem", secondary: true, cell: (job) => <bdi title={job.client}>{job.client}</bdi> },
    { key: "priority", title: "Prio", sortable: true, width: "4rem", align: "end", secondary: true, cell: (job) => job.priority },
  ];
  return columns.filter((each) => each !== false);
}

const ABOUT: Readonly<Record<string, string>> = {
  failed: "Reason",
  started: "Progress",
  queued: "Position in the queue",
  scheduled: "Starts",
  pending: "Waits for",
};

function Main({ job, shown }: { job: Job; shown: Shown }) {
  const refused = refusal(job);
  const content = contentOf(job);
  const about = titleOr(shown.titles, content);
  return (
    <span class="job-main">
      {shown.mayChange && (
        <input
          type="checkbox"
          tabIndex={-1}
          aria-label={`Choose job ${job.id}`}
          title={refused ?? `Choose job ${job.id}`}
          disabled={refused !== null}
          checked={shown.selected.value.has(job.id)}
          onChange={(event) => shown.toggle(job, event.currentTarget.checked)}
        />
      )}
      <a class="row-link" href={jobPath(job.id)} tabIndex={-1} title={`${about.slice(0, 300)}${about === content ? "" : ` (${content})`}`}>
        {job.id} <bdi>{about.slice(0, 300)}</bdi>
      </a>
    </span>
  );
}

/** The content id of the job. */
export function contentOf(job: Job): string {
  const content = job.parameters?.["content_id"];
  return typeof content === "string" ? content : "";
}

function About({ job, running }: { job: Job; running: ReadonlySignal<ReadonlyMap<number, Running>> }) {
  if (job.queue_state === "started") {
    const seen = running.value.get(job.id);
    if (seen === undefined) return <span class="faint">Starts</span>;
    return (
      <span class="job-progress" title={seen.text}>
        <Progress value={seen.fraction * 100} label={`Progress of job ${job.id}`} />
        <span class="faint">{seen.text}</span>
      </span>
    );
  }
  if (job.queue_state === "queued") return <>{job.position === 1 ? "next to start" : `position ${job.position}`}</>;
  if (job.queue_state === "scheduled") return <Time at={job.run_at} />;
  if (job.queue_state === "pending") return <span class="faint">its gate to answer 2xx or 3xx</span>;
  if (job.reason) {
    return (
      <span class="job-reason" title={job.reason}>
        <bdi>{job.reason}</bdi>
      </span>
    );
  }
  return <span class="faint">–</span>;
}

function Took({ job }: { job: Job }) {
  if (job.started_at === null) return <span class="faint">–</span>;
  const end = job.ended_at ? Date.parse(job.ended_at) : job.queue_state === "started" ? now.value : null;
  if (end === null) return <span class="faint">–</span>;
  const took = Math.max(0, end - Date.parse(job.started_at));
  return <>{took < 1000 ? `${took} ms` : duration(took)}</>;
}
