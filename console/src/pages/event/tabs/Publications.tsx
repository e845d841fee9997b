import { useState } from "preact/hooks";
import { answered, api, dataOf, type Schemas } from "../../../kernel/api";
import { useQuery } from "../../../kernel/query";
import { may } from "../../../kernel/session";
import { isOnAir, PUBLICATION_STATES, stateWord } from "../../../kernel/states";
import { toast } from "../../../kernel/toasts";
import { Answered, Badge, Button, Check, Confirm, DataTable, EmptyState, NoAnswer, Panel, Time, type Column } from "../../../parts";
import { size as sizeWord } from "../../jobs/progress";
import { ORDERS, check, ordersOf, send, type Order } from "../../destinations/orders";
import { PublishDialog } from "../../destinations/PublishDialog";
import type { TabProps } from "./props";

type Publication = Schemas["VodPublication"] & { kind: "film" | "live" };
const MOST = 500;

/** The publications of the film and the live stream of an Event, with their progress. */
export default function Publications({ event }: TabProps) {
  const [adding, setAdding] = useState(false);
  const [deleted, setDeleted] = useState<Publication | null>(null);
  const [hard, setHard] = useState(false);
  const [asked, setAsked] = useState<{ of: Publication; order: Order } | null>(null);
  const publications = useQuery(`publications of ${event.contentId}`, (signal) => read(event.contentId, signal), { changes: { aggregates: ["publication"] } });
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
          {(each.kind === "live" ? ordersOf(each) : [])
            .filter((order) => order === "stop" || isOnAir(event.state))
            .map((order) => (
              <Button key={order} kind="quiet" onClick={() => setAsked({ of: each, order })}>
                {ORDERS[order].word}
              </Button>
            ))}
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
            empty={<EmptyState title="Not published yet">A film, or the live stream, can be published at a destination such as a bucket or a platform.</EmptyState>}
          />
        )}
      </Answered>
      {adding && <PublishDialog event={event} onClose={() => setAdding(false)} onDone={() => (setAdding(false), publications.refresh())} />}
      {asked && (
        <Confirm
          title={`${ORDERS[asked.order].word} the publication?`}
          action={ORDERS[asked.order].word}
          danger={asked.order === "stop"}
          open
          onClose={() => setAsked(null)}
          onConfirm={async () => {
            await send(asked.order, asked.of).finally(publications.refresh);
            toast(ORDERS[asked.order].done, "ok", asked.of.destinationName);
          }}
        >
          <p>
            The live stream at <bdi>{asked.of.destinationName}</bdi>. {ORDERS[asked.order].about}
          </p>
        </Confirm>
      )}
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
            The publication at <bdi>{deleted?.destinationName}</bdi> is removed; a running upload or stream is stopped.
          </p>
          <Check label="Remove it from the destination too" checked={hard} onChange={setHard} hint="Otherwise it stays there." />
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
  check(data[0]);
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

/** Bytes at the destination: of a film when it is complete, of a live stream continuously. */
function Sent({ publication }: { publication: Publication }) {
  const { id, destinationId, kind, publicationState } = publication;
  const runs = kind === "live" && publicationState === 2;
  const statistics = useQuery(
    runs ? `pushed ${id}` : null,
    (signal) => dataOf(api.GET("/api/media/livepublication/statistics/{publicationId}", { params: { path: { publicationId: id }, query: { destinationId } }, signal })),
    { every: 5000 },
  );
  const size = publication.details?.["size"];
  if (statistics.failure.value) return <NoAnswer query={statistics} />;
  const bytes = statistics.data.value?.bytes ?? (typeof size === "number" ? size : null);
  if (bytes === null) return <span class="faint">–</span>;
  return (
    <>
      {sizeWord(bytes)}
      {statistics.data.value && !statistics.data.value.connected && <span class="faint"> not connected</span>}
    </>
  );
}
