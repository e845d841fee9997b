import { useState } from "preact/hooks";
import { answered, api, dataOf, found, type Schemas } from "../../kernel/api";
import { useHere } from "../../kernel/here";
import { useQuery } from "../../kernel/query";
import { eventPath, jobPath, useQueryState } from "../../kernel/router";
import { jobState, PUBLICATION_STATES, stateWord } from "../../kernel/states";
import { toast } from "../../kernel/toasts";
import { Answered, Badge, Button, Check, Confirm, DataTable, Drawer, EmptyState, Facts, FilterBar, JsonView, NoAnswer, Pager, Progress, Time, type Column } from "../../parts";
import { titleOr, useTitles, type Titles } from "../events/titles";
import { useRunning } from "../jobs/progress";
import { ORDERS, check, ordersOf, send, type Order } from "./orders";
import { targetOf } from "./targets";

type Publication = Schemas["VodPublication"];
type Act = "publish" | "unpublish" | Order | "delete";

const SIZE = 100;
const columnsOf = (titles: Titles): readonly Column<Publication>[] => [
  { key: "content", title: "Content", cell: (each) => <bdi title={each.contentId}>{titleOr(titles, each.contentId).slice(0, 300)}</bdi> },
  { key: "destination", title: "Destination", cell: (each) => <bdi title={each.destinationName}>{each.destinationName.slice(0, 100)}</bdi> },
  { key: "target", title: "Target", width: "10rem", secondary: true, cell: (each) => targetOf(each.target).word },
  { key: "state", title: "State", width: "11rem", cell: (each) => <Badge state={stateWord(PUBLICATION_STATES, each.publicationState)} /> },
  { key: "started", title: "Started", width: "12rem", secondary: true, cell: (each) => <Time at={each.dateStarted} /> },
  { key: "completed", title: "Completed", width: "12rem", cell: (each) => <Time at={each.dateCompleted} /> },
];

/** Publications of films or of live streams in the order of the API, the oldest first. */
export function Publications({ live, editable }: { live: boolean; editable: boolean }) {
  const { values, set } = useQueryState();
  const pageNumber = Math.max(1, Number(values["page"]) || 1);
  const query = { pageSize: SIZE, pageNumber, contentIdFilter: values["search"] };
  const publications = useQuery(
    `publications ${live} ${JSON.stringify(query)}`,
    async (signal) => {
      if (!live) return dataOf(api.GET("/api/vodpublications/", { params: { query }, signal }));
      const results: Publication[] = await dataOf(api.GET("/api/media/livepublication/", { params: { query }, signal }));
      // This list has no count: a full page may have a successor.
      return { results, totalCount: (pageNumber - 1) * SIZE + results.length + (results.length === SIZE ? 1 : 0) };
    },
    { changes: { aggregates: ["publication"] } },
  );
  const titles = useTitles((publications.data.value?.results ?? []).map((each) => each.contentId));
  return (
    <>
      <FilterBar filters={[{ name: "search", label: "Content id", kind: "search" }]} />
      <Answered query={publications}>
        {(page) => {
          return (
            <>
              <DataTable
                caption={live ? "Live publications" : "Publications of films"}
                columns={columnsOf(titles)}
                rows={page.results}
                rowKey={(each) => each.id}
                onRow={(each) => set({ publication: each.id, destination: each.destinationId, page: String(pageNumber) })}
                list={publications.key}
                stale={publications.stale.value}
                empty={<EmptyState title="No publications">None match, or none has been created yet. “Publish” creates one.</EmptyState>}
              />
              {page.totalCount > SIZE && <Pager page={pageNumber} pageSize={SIZE} total={page.totalCount} onPage={(next) => set({ page: String(next) })} />}
              {values["publication"] && values["destination"] && <Details key={values["publication"]} id={values["publication"]} destinationId={values["destination"]} {...{ live, editable }} onClose={() => set({ publication: "", destination: "", page: String(pageNumber) })} onDone={publications.refresh} />}
            </>
          );
        }}
      </Answered>
    </>
  );
}

interface DetailsProps {
  of: Publication;
  live: boolean;
  editable: boolean;
  onClose: () => void;
  onDone: () => void;
}

/** A publication, read separately: a new one may not be on the page of the list. */
function Details({ id, destinationId, ...rest }: Omit<DetailsProps, "of"> & { id: string; destinationId: string }) {
  const params = { path: { id }, query: { destinationId } };
  const read = (signal: AbortSignal): Promise<Publication> =>
    rest.live
      ? found(api.GET("/api/media/livepublication/{id}", { params, signal })).then((answer) => answer.data)
      : found(api.GET("/api/vodpublications/{id}", { params, signal })).then((answer) => answer.data);
  const publication = useQuery(`publication ${id}`, read, { changes: { aggregates: ["publication"], ids: [id] } });
  return (
    <Drawer title={rest.live ? "Live publication" : "Publication"} open onClose={rest.onClose}>
      <Answered query={publication}>{(of) => <Shown of={of} {...rest} />}</Answered>
    </Drawer>
  );
}

function Shown({ of, live, editable, onClose, onDone }: DetailsProps) {
  const [asks, setAsks] = useState<Act | null>(null);
  const [hard, setHard] = useState(false);
  const here = useHere();
  const titles = useTitles([of.contentId]);
  const acts: readonly (readonly [Act, string])[] = [...(live ? ordersOf(of).map((order) => [order, ORDERS[order].word] as const) : []), ["publish", "Make public"], ["unpublish", "Take back"], ["delete", "Delete"]];
  const word = asks === "start" || asks === "stop" ? ORDERS[asks].word : (acts.find(([act]) => act === asks)?.[1] ?? "");
  return (
    <>
      <div class="destination">
        <Facts
          facts={[
            ["State", <Badge state={stateWord(PUBLICATION_STATES, of.publicationState)} />],
            ["Content", <a href={eventPath(of.contentId)} title={of.contentId}><bdi>{titleOr(titles, of.contentId)}</bdi></a>],
            ["Destination", <bdi>{of.destinationName}</bdi>],
            ...(live ? [] : [["Upload", <Upload of={of} />] as const]),
            ["Created", <Time at={of.dateCreated} />],
            ["Started", <Time at={of.dateStarted} />],
            ["Completed", <Time at={of.dateCompleted} />],
            ["Request", <code>{of.transactionId}</code>],
            ...of.callbacks.map((each) => ["Callback", <span class="text"><bdi>{each.url}</bdi> <Time at={each.lastTriggered} /></span>] as const),
          ]}
        />
        {live && of.publicationState === 2 && <Statistics of={of} />}
        {editable && (
          <div class="page-actions">
            {acts.map(([act, name]) => (
              <Button key={act} onClick={() => setAsks(act)}>{name}</Button>
            ))}
          </div>
        )}
        {of.details && <JsonView value={of.details} label="Details from the target" />}
      </div>
      <Confirm title={`${word}?`} action={word} danger={asks === "delete" || asks === "stop"} open={asks !== null} onClose={() => setAsks(null)} onConfirm={async () => {
        await done({ of, live, act: asks!, hard });
        toast(`${word}: done`);
        onDone();
        if (asks === "delete" && here()) onClose();
      }}>
        <p>
          <bdi>{titleOr(titles, of.contentId).slice(0, 100)}</bdi> at <bdi>{of.destinationName.slice(0, 100)}</bdi>
        </p>
        {(asks === "start" || asks === "stop") && <p>{ORDERS[asks].about}</p>}
        {asks === "delete" && <Check label="Remove it at the target too" checked={hard} onChange={setHard} hint="Otherwise it stays at the target." />}
      </Confirm>
    </>
  );
}

/** The job that uploads a film to its target, with its progress. */
function Upload({ of }: { of: Publication }) {
  const query = { workflow: "publication_upload", search: of.id, items: 1 };
  const jobs = useQuery(`upload ${of.id}`, (signal) => dataOf(api.GET("/engine/jobs", { params: { query }, signal })), { changes: { aggregates: ["job"] } });
  const job = jobs.data.value?.[0];
  const running = useRunning(job?.queue_state === "started");
  if (jobs.failure.value) return <NoAnswer query={jobs} />;
  if (jobs.data.value === undefined) return <span class="faint">…</span>;
  if (job === undefined) return <span class="faint">no job, because the destination is not active</span>;
  const seen = running.value.get(job.id);
  return (
    <span class="upload">
      <span>
        <a href={jobPath(job.id)}>Job {job.id}</a> <Badge state={jobState(job)} />
      </span>
      {seen && <Progress value={seen.fraction * 100} label={`Upload of job ${job.id}`} />}
      {seen && <span class="faint">{seen.text}</span>}
      {job.reason && <bdi>{job.reason}</bdi>}
    </span>
  );
}

/** The bytes and the rate of a pushed stream. */
function Statistics({ of }: { of: Publication }) {
  const params = { path: { publicationId: of.id }, query: { destinationId: of.destinationId } };
  const statistics = useQuery(`statistics ${of.id}`, (signal) => dataOf(api.GET("/api/media/livepublication/statistics/{publicationId}", { params, signal })), { every: 5000 });
  return <Answered query={statistics}>{(said) => <JsonView value={said} label="Bytes and rate" />}</Answered>;
}

/** Throws the fault of a call, which may also be a 200 with `isSuccessful` false. */
async function done({ of, live, act, hard }: { of: Publication; live: boolean; act: Act; hard: boolean }): Promise<void> {
  const stream = { publicationId: of.id, destinationId: of.destinationId, eventId: of.contentId };
  if (act === "start" || act === "stop") return send(act, of);
  if (act === "delete" && live) {
    const body = { eventId: of.contentId, publications: [{ publicationId: of.id, destinationId: of.destinationId, hardDelete: hard }] };
    return check((await dataOf(api.DELETE("/api/media/livepublication/", { body: body as never })))[0]);
  }
  if (act === "delete") {
    await answered(api.DELETE("/api/vodpublications/{id}", { params: { path: { id: of.id }, query: { hardDelete: hard, destinationId: of.destinationId } } }));
  } else if (live) check(await dataOf(act === "publish" ? api.PUT("/api/media/livepublication/publish/", { body: stream }) : api.PUT("/api/media/livepublication/unpublish/", { body: stream })));
  else {
    const body = { id: of.id, destinationId: of.destinationId };
    check(await dataOf(act === "publish" ? api.PUT("/api/vodpublications/publish/", { body }) : api.PUT("/api/vodpublications/unpublish/", { body })));
  }
}
