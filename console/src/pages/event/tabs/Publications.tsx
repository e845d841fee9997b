import { useState } from "preact/hooks";
import { answered, api, dataOf, type MediaEvent, type Schemas } from "../../../kernel/api";
import { useQuery } from "../../../kernel/query";
import { may } from "../../../kernel/session";
import { isOnAir, PUBLICATION_STATES, stateWord } from "../../../kernel/states";
import { toast, toastFailure } from "../../../kernel/toasts";
import { Answered, Badge, Button, Check, Confirm, DataTable, Dialog, EmptyState, Field, FormError, Panel, Time, useSubmit, type Column } from "../../../parts";
import type { TabProps } from "../EventPage";

type Publication = Schemas["VodPublication"] & { kind: "film" | "live" };
const MOST = 500;

/** Where the film and the live stream of an Event are published, and how far that is. */
export default function Publications({ event }: TabProps) {
  const [adding, setAdding] = useState(false);
  const [deleted, setDeleted] = useState<Publication | null>(null);
  const [hard, setHard] = useState(false);
  const publications = useQuery(`publications of ${event.contentId}`, (signal) => read(event.contentId, signal), { changes: { aggregates: ["publication"] } });
  const order = (publication: Publication, action: "start" | "stop"): void => {
    const body = { eventId: event.id, publicationId: publication.id, destinationId: publication.destinationId };
    const sent = answered(action === "start" ? api.PUT("/api/media/livepublication/start/", { body }) : api.PUT("/api/media/livepublication/stop/", { body }));
    sent.then(
      () => (toast(action === "start" ? "Started" : "Stopped", "ok", publication.destinationName), publications.refresh()),
      (thrown: unknown) => toastFailure(action === "start" ? "Not started" : "Not stopped", thrown),
    );
  };
  const columns: Column<Publication>[] = [
    { key: "destination", title: "Destination", cell: (each) => <Where publication={each} /> },
    { key: "kind", title: "What", width: "7rem", secondary: true, cell: (each) => (each.kind === "film" ? "Film" : "Live stream") },
    { key: "state", title: "State", width: "11rem", cell: (each) => <Badge state={stateWord(PUBLICATION_STATES, each.publicationState)} title={each.publicationStateString} /> },
    { key: "progress", title: "Sent", width: "9rem", secondary: true, cell: (each) => <Sent publication={each} /> },
    { key: "created", title: "Created", width: "11rem", secondary: true, cell: (each) => <Time at={each.dateCreated} /> },
  ];
  if (may("operator")) {
    columns.push({
      key: "actions",
      title: "Change",
      width: "10rem",
      cell: (each) => (
        <span class="row-actions">
          {each.kind === "live" && each.publicationState === 1 && isOnAir(event.state) && (
            <Button kind="quiet" onClick={() => order(each, "start")}>
              Start
            </Button>
          )}
          {each.kind === "live" && each.publicationState === 2 && (
            <Button kind="quiet" onClick={() => order(each, "stop")}>
              Stop
            </Button>
          )}
          <Button kind="quiet" onClick={() => (setHard(false), setDeleted(each))}>
            Unpublish
          </Button>
        </span>
      ),
    });
  }
  return (
    <Panel
      title="Publications"
      actions={
        may("operator") && (
          <Button kind="primary" onClick={() => setAdding(true)}>
            Publish
          </Button>
        )
      }
    >
      <Answered query={publications}>
        {(found) => (
          <DataTable
            caption="Publications of this Event"
            columns={columns}
            rows={found}
            rowKey={(each) => each.id}
            stale={publications.stale.value}
            empty={<EmptyState title="Not published yet">A film, or the live stream, can be brought to a destination such as a bucket or a platform.</EmptyState>}
          />
        )}
      </Answered>
      {adding && <PublishDialog event={event} onClose={() => setAdding(false)} done={publications.refresh} />}
      <Confirm
        title="Unpublish"
        action="Unpublish"
        danger
        open={deleted !== null}
        onClose={() => setDeleted(null)}
        onConfirm={async () => {
          await remove(event.id, deleted!, hard);
          publications.refresh();
        }}
      >
        <div class="stack">
          <p>
            The publication at <bdi>{deleted?.destinationName}</bdi> is removed; an upload or a stream that runs is stopped.
          </p>
          <Check label="Remove it from the destination too" checked={hard} onChange={setHard} hint="Otherwise what is there stays there." />
        </div>
      </Confirm>
    </Panel>
  );
}

async function read(contentId: string, signal: AbortSignal): Promise<Publication[]> {
  const query = { contentIdFilter: contentId, pageSize: MOST };
  const [films, streams] = await Promise.all([
    dataOf(api.GET("/api/vodpublications/", { params: { query }, signal })),
    dataOf(api.GET("/api/media/livepublication/", { params: { query }, signal })),
  ]);
  const found: Publication[] = [...films.results.map((each) => ({ ...each, kind: "film" as const })), ...streams.map((each) => ({ ...each, kind: "live" as const }))];
  return found.filter((each) => each.contentId === contentId).sort((one, other) => other.dateCreated.localeCompare(one.dateCreated));
}

async function remove(eventId: string, { id, destinationId, kind }: Publication, hardDelete: boolean): Promise<void> {
  if (kind === "film") {
    await answered(api.DELETE("/api/vodpublications/{id}", { params: { path: { id }, query: { destinationId, hardDelete } } }));
    return;
  }
  const body = { eventId, publications: [{ publicationId: id, destinationId, hardDelete }] };
  const { data } = await answered(api.DELETE("/api/media/livepublication/", { body }));
  const refused = data.find((each) => !each.isSuccessful);
  if (refused) throw new Error(refused.description);
}

function Where({ publication }: { publication: Publication }) {
  const link = publication.details?.["link"];
  const isLink = typeof link === "string" && /^https?:\/\//.test(link);
  return (
    <>
      <bdi>{publication.destinationName}</bdi>
      {isLink && (
        <>
          {" "}
          <a href={link} target="_blank" rel="noreferrer noopener">
            Open
          </a>
        </>
      )}
    </>
  );
}

/** Bytes at the destination: of a film when it is there, of a live stream as they go. */
function Sent({ publication }: { publication: Publication }) {
  const { id, destinationId, kind, publicationState } = publication;
  const runs = kind === "live" && publicationState === 2;
  const statistics = useQuery(
    runs ? `pushed ${id}` : null,
    (signal) => dataOf(api.GET("/api/media/livepublication/statistics/{publicationId}", { params: { path: { publicationId: id }, query: { destinationId } }, signal })),
    { every: 5000 },
  );
  const size = publication.details?.["size"];
  const bytes = statistics.data.value?.bytes ?? (typeof size === "number" ? size : null);
  if (bytes === null) return <span class="faint">–</span>;
  return (
    <>
      {bytesWord(bytes)}
      {statistics.data.value && !statistics.data.value.connected && <span class="faint"> not connected</span>}
    </>
  );
}

function bytesWord(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const power = bytes < 1000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  return `${(bytes / 1000 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`;
}

function PublishDialog({ event, onClose, done }: { event: MediaEvent; onClose: () => void; done: () => void }) {
  const live = isOnAir(event.state) || event.mp4State !== 1;
  const [kind, setKind] = useState(live ? "live" : "film");
  const [destination, setDestination] = useState("");
  const [title, setTitle] = useState(event.title);
  const [description, setDescription] = useState(event.description ?? "");
  const [starts, setStarts] = useState(isOnAir(event.state));
  const destinations = useQuery("destinations", (signal) => dataOf(api.GET("/api/media/destination/", { signal })), { changes: { aggregates: ["destination"] } });
  const form = useSubmit(async () => {
    const publications = [{ destinationId: destination, publicationJson: JSON.stringify({ title, description }) }];
    if (kind === "film") await answered(api.POST("/api/media/vodpublication/", { body: { eventId: event.id, publications } }));
    else await answered(api.POST("/api/media/livepublication/", { body: { eventId: event.id, publications, startInstantly: starts } }));
    toast("The publication is made", "ok", event.title.slice(0, 100));
    done();
    onClose();
  });
  const actions = (
    <>
      <Button onClick={onClose}>Back</Button>
      <Button kind="primary" type="submit" form="publish" busy={form.busy} disabled={destination === ""}>
        Publish
      </Button>
    </>
  );
  return (
    <Dialog title="Publish" open onClose={onClose} actions={actions}>
      <Answered query={destinations}>
        {(found) =>
          found.length === 0 ? (
            <EmptyState title="There are no destinations">Somebody has to add one first.</EmptyState>
          ) : (
            <form id="publish" class="stack" onSubmit={form.submit}>
              <Field
                label="What"
                name="kind"
                value={kind}
                onInput={setKind}
                options={[
                  ["film", event.mp4State === 1 ? "The film" : "The film (it has none yet)"],
                  ["live", "The live stream"],
                ]}
              />
              <Field
                label="Destination"
                name="destinationId"
                value={destination}
                onInput={setDestination}
                failure={form.failure}
                options={[["", "Choose one"], ...found.map((each) => [each.id, `${each.name.slice(0, 100)}${each.active ? "" : " (not active)"}`] as const)]}
              />
              <Field label="Title" name="title" value={title} onInput={setTitle} />
              <Field label="Description" name="description" lines={3} value={description} onInput={setDescription} />
              {kind === "live" && <Check label="Start at once" checked={starts} onChange={setStarts} hint="The Event must be live." />}
              <FormError failure={form.failure} shown={["destinationId"]} />
            </form>
          )
        }
      </Answered>
    </Dialog>
  );
}
