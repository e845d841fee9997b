import { useState } from "preact/hooks";
import { answered, api, dataOf, type Schemas } from "../../../kernel/api";
import { useQuery } from "../../../kernel/query";
import { jobPath } from "../../../kernel/router";
import { may, session } from "../../../kernel/session";
import { isVod, jobState } from "../../../kernel/states";
import { duration, now } from "../../../kernel/time";
import { Answered, Badge, Button, Confirm, DataTable, EmptyState, Panel, Time, type Column } from "../../../parts";
import type { TabProps } from "./props";

type Job = Schemas["FullJob"];
const MOST = 1000;
const RUNNING = new Set(["queued", "started", "pending", "scheduled", "paused"]);
const COLUMNS: readonly Column<Job>[] = [
  { key: "workflow", title: "Job", cell: (job) => <JobLink job={job} /> },
  { key: "state", title: "State", width: "11rem", cell: (job) => <Badge state={jobState(job)} /> },
  { key: "created", title: "Accepted", width: "13rem", value: (job) => Date.parse(job.created_at), cell: (job) => <Time at={job.created_at} /> },
  { key: "lasted", title: "Took", width: "8rem", secondary: true, align: "end", cell: (job) => <Lasted job={job} /> },
  { key: "client", title: "Client", width: "10rem", secondary: true, cell: (job) => <bdi>{job.client}</bdi> },
];

/** The jobs of an Event. */
export default function Jobs({ event }: TabProps) {
  const [asked, setAsked] = useState(false);
  const jobs = useQuery(
    `jobs of ${event.contentId}`,
    async (signal) => {
      const found = await dataOf(api.GET("/engine/jobs", { params: { query: { search: event.contentId, items: MOST } }, signal }));
      return found.filter((each) => each.parameters === null || each.parameters["content_id"] === event.contentId);
    },
    { changes: { aggregates: ["job"] }, quiet: 1000 },
  );
  const canFilm = may("operator") && event.channelId !== null && event.actualLiveStart !== null && !isVod(event.state);
  return (
    <Panel
      title="Jobs"
      actions={
        canFilm && (
          <Button kind="primary" onClick={() => setAsked(true)}>
            Make a film of it
          </Button>
        )
      }
    >
      <Answered query={jobs}>
        {(found) => (
          <DataTable
            caption="Jobs of this Event"
            columns={COLUMNS}
            rows={found}
            rowKey={(job) => job.id}
            rowHref={(job) => jobPath(job.id)}
            stale={jobs.stale.value}
            empty={<EmptyState title="No jobs">No job has worked for this Event yet.</EmptyState>}
          />
        )}
      </Answered>
      <Confirm title="Make a film of the live stream" action="Make the film" open={asked} onClose={() => setAsked(false)} onConfirm={() => capture(event.contentId, jobs.refresh)}>
        <p>
          A job captures the live stream from the origin of the channel and packages it for players.
          {event.autoPublish ? " The film becomes public." : " The film stays private until it is published."}
        </p>
      </Confirm>
    </Panel>
  );
}

async function capture(contentId: string, done: () => void): Promise<void> {
  const parameters = { content_id: contentId } as unknown as Record<string, never>;
  const params = { header: { client: session.peek()!.client } };
  await answered(api.POST("/engine/job", { params, body: { job: { workflow: "vod_capture" }, parameters } }));
  done();
}

function JobLink({ job }: { job: Job }) {
  return (
    <a class="row-link" href={jobPath(job.id)} tabIndex={-1}>
      {job.workflow} <span class="faint">{job.id}</span>
    </a>
  );
}

function Lasted({ job }: { job: Job }) {
  const until = RUNNING.has(job.queue_state) ? now.value : Date.parse(job.updated_at);
  return <>{duration(until - Date.parse(job.created_at))}</>;
}
