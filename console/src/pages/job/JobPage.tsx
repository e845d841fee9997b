import "./job.css";
import { useState } from "preact/hooks";
import { Failure, answered, api, dataOf, type Schemas } from "../../kernel/api";
import { type Query, useQuery } from "../../kernel/query";
import { eventPath, jobPath, to, useGo, useQueryState } from "../../kernel/router";
import { jobState } from "../../kernel/states";
import { Answered, Badge, CopyButton, EmptyState, Facts, JsonView, PageHead, Panel, Tabs, Time } from "../../parts";
import type { PageProps } from "..";
import { titleOr, useTitles } from "../events/titles";
import { contentOf } from "../jobs/columns";
import { hasEnded, type Job } from "../jobs/jobActions";
import { JobButtons } from "./JobButtons";
import { JobLog } from "./JobLog";
import { Attempts, Files, TaskGraph } from "./Tasks";
import { Timeline } from "./Timeline";
import { useJobLog } from "./records";

type JobTask = Schemas["JobTask"];

const NUMBER = /^[0-9]{1,15}$/;

/** A job: its progress, its tasks with all runs, its log, and its actions. */
export default function JobPage({ params }: PageProps) {
  const id = params["id"] ?? "";
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href={to("/jobs")}>Jobs</a>
      </nav>
      {NUMBER.test(id) ? <Found key={id} id={Number(id)} /> : <Unknown id={id} />}
    </>
  );
}

function Unknown({ id }: { id: string }) {
  return (
    <>
      <PageHead title="The job does not exist" />
      <EmptyState
        title="No job has this number"
        action={
          <a class="button" href={to("/jobs")}>
            All jobs
          </a>
        }
      >
        <code>{id.slice(0, 40)}</code> was never used, or the job ended so long ago that it has been removed.
      </EmptyState>
    </>
  );
}

function Found({ id }: { id: number }) {
  const concerns = { changes: { aggregates: ["job"], ids: [String(id)] } };
  const job = useQuery(`job ${id}`, (signal) => read(id, signal), concerns);
  const runs = job.data.value?.data.queue_state === "started";
  const tasks = useQuery(
    job.data.value ? `job tasks ${id}` : null,
    (signal) => dataOf(api.GET("/engine/jobs/{job_id}/tasks", { params: { path: { job_id: id } }, signal })),
    runs ? { ...concerns, every: 1000 } : concerns,
  );
  if (job.failure.value?.isAbsent) return <Unknown id={String(id)} />;
  return (
    <Answered query={job}>
      {({ data, etag }) => <Whole job={data} etag={etag} tasks={tasks} onDone={job.refresh} />}
    </Answered>
  );
}

/** Reads the job. The engine answers 400 where other surfaces answer 404. */
async function read(id: number, signal: AbortSignal): Promise<{ data: Schemas["SingleJob"]; etag: string | null }> {
  try {
    const { data, etag } = await answered(api.GET("/engine/jobs/{job_id}", { params: { path: { job_id: id } }, signal }));
    return { data, etag };
  } catch (thrown) {
    if (thrown instanceof Failure && thrown.status === 400) throw new Failure(404, thrown.detail);
    throw thrown;
  }
}

type Tasks = Query<Schemas["JobTasks"]>;

interface WholeProps {
  job: Job;
  etag: string | null;
  tasks: Tasks;
  onDone: () => void;
}

const PARTS = ["overview", "log", "timeline"] as const;

function Whole({ job, etag, tasks, onDone }: WholeProps) {
  const { values, set } = useQueryState();
  const go = useGo();
  const part = PARTS.find((each) => each === values["part"]) ?? "overview";
  const log = useJobLog(job.id, hasEnded(job) ? "ended" : "open");
  const titles = useTitles([contentOf(job)]);
  return (
    <>
      <PageHead
        title={`Job ${job.id}: ${titleOr(titles, contentOf(job)) || job.workflow}`}
        actions={<JobButtons job={job} etag={etag} onDone={(made) => (made === null ? onDone() : go(jobPath(made)))} />}
      >
        <Badge state={jobState(job)} />
        <span>{job.workflow}</span>
        <span class="faint">accepted</span> <Time at={job.created_at} />
      </PageHead>
      {job.queue_state === "completed" && job.failed && <Reason job={job} tasks={tasks.data.value?.tasks} />}
      <Tabs
        label="Parts of the job"
        tabs={[
          { key: "overview", title: "Overview" },
          { key: "log", title: "Log", count: log.records.value.length },
          { key: "timeline", title: "Timeline" },
        ]}
        chosen={part}
        onChoose={(key) => set({ part: key === "overview" ? "" : key })}
        controls="job-part"
      />
      <div id="job-part" role="tabpanel" aria-label={part} class="job-part">
        {part === "overview" && <Overview job={job} tasks={tasks} />}
        {part === "log" && <JobLog log={log} />}
        {part === "timeline" && <Timeline log={log} />}
      </div>
    </>
  );
}

/** The reason of the failure, from the failed task. */
function Reason({ job, tasks }: { job: Job; tasks: readonly JobTask[] | undefined }) {
  const failed = tasks?.find((task) => task.state === "failed");
  return (
    <div class="failure" role="status">
      <p>
        <strong>Failed{failed ? ` in the task ${failed.name}` : ""}.</strong> <bdi>{failed?.error ?? job.reason ?? "See the log for the reason."}</bdi>
      </p>
      <p class="faint">“Retry” continues where it stopped; “Run again” starts a new job from the beginning.</p>
    </div>
  );
}

function Overview({ job, tasks }: { job: Job; tasks: Tasks }) {
  const [whole, setWhole] = useState(false);
  const content = contentOf(job);
  return (
    <>
      <Panel title="Tasks"><Answered query={tasks}>{(found) => <TaskGraph tasks={found.tasks} />}</Answered></Panel>
      <Panel title="Attempts"><Answered query={tasks}>{(found) => <Attempts tasks={found.tasks} />}</Answered></Panel>
      <div class="panels">
        <Panel title="About">
          <Facts
            facts={[
              ["Content", content && <Content id={content} />],
              ["Client", <bdi>{job.client}</bdi>],
              ["Workflow", job.workflow],
              ["Priority", `${job.priority} (1 is the most urgent)`],
              ["Accepted", <Time at={job.created_at} />],
              ["Not before", job.run_at && <Time at={job.run_at} />],
              ["Last change", <Time at={job.updated_at} />],
              ["Position in the queue", job.position > 0 && String(job.position)],
            ]}
          />
        </Panel>
        <Panel title="Files"><Answered query={tasks}>{(found) => <Files tasks={found.tasks} />}</Answered></Panel>
      </div>
      <Panel
        title="Parameters"
        actions={
          <button type="button" class="button quiet" aria-expanded={whole} onClick={() => setWhole(!whole)}>
            {whole ? "Only the parameters" : "The whole job as JSON"}
          </button>
        }
      >
        <JsonView value={whole ? job : job.parameters} label={whole ? "Job as JSON" : "Parameters as JSON"} />
      </Panel>
    </>
  );
}

/** Links to the Event if the content id is an Event's. */
function Content({ id }: { id: string }) {
  const titles = useTitles([id]);
  return (
    <span class="text">
      {titles.has(id.toLowerCase()) ? (
        <a href={eventPath(id)}>
          <bdi>{titleOr(titles, id)}</bdi>
        </a>
      ) : (
        <bdi>{id}</bdi>
      )}
      <CopyButton text={id} label="Copy the content id" />
    </span>
  );
}
