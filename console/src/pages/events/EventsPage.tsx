import { api, dataOf, type MediaEvent, type Schemas } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { eventPath, useQueryState } from "../../kernel/router";
import { EVENT_STATES, stateWord } from "../../kernel/states";
import { Answered, Badge, DataTable, EmptyState, FilterBar, PageHead, Pager, Time, type Column, type Filter } from "../../parts";
import { EventTitle } from "./EventTitle";

const SIZE = 100;
const STATES = Object.entries(EVENT_STATES).map(([number, { word }]) => [number, word] as const);
const FILTERS: readonly Filter[] = [
  { name: "search", label: "Search", kind: "search" },
  { name: "state", label: "State", kind: "choice", options: STATES },
  { name: "from", label: "From", kind: "date" },
  { name: "to", label: "To", kind: "date" },
];
const COLUMNS: readonly Column<MediaEvent>[] = [
  { key: "Title", title: "Title", sortable: true, cell: (event) => <EventTitle event={event} /> },
  { key: "State", title: "State", sortable: true, width: "12.5rem", cell: (event) => <Badge state={stateWord(EVENT_STATES, event.state)} /> },
  { key: "scheduledStart", title: "Scheduled", sortable: true, width: "15rem", cell: (event) => <Time at={event.scheduledStart} /> },
  { key: "Room", title: "Room", sortable: true, width: "10rem", secondary: true, cell: (event) => event.room },
  { key: "Channel", title: "Channel", sortable: true, width: "10rem", secondary: true, cell: (event) => event.channel },
];
type OrderColumn = "Title" | "State" | "Room" | "Channel";

/** The list of Events: searched, filtered, sorted and paged by the server. */
export default function EventsPage() {
  const { values, set } = useQueryState();
  const page = Math.max(1, Number(values["page"]) || 1);
  const sort = { key: values["sort"] ?? "scheduledStart", descending: values["order"] !== "asc" };
  const query = {
    pageSize: SIZE,
    pageNumber: page,
    search: values["search"],
    eventState: values["state"] ? [values["state"] as Schemas["EventStateInput"]] : undefined,
    from: startOfDay(values["from"]),
    to: endOfDay(values["to"]),
    orderColumn: sort.key === "scheduledStart" ? undefined : (sort.key as OrderColumn),
    order: sort.descending ? ("DESC" as const) : ("ASC" as const),
  };
  const events = useQuery(
    `events ${JSON.stringify(query)}`,
    (signal) => dataOf(api.GET("/api/event/", { params: { query }, signal })),
    { changes: { aggregates: ["event"] } },
  );
  return (
    <>
      <PageHead title="Events" />
      <FilterBar filters={FILTERS} />
      <Answered query={events}>
        {(found) => (
          <>
            <DataTable
              caption="Events"
              columns={COLUMNS}
              rows={found.results}
              rowKey={(event) => event.id}
              rowHref={(event) => eventPath(event.id)}
              sort={sort}
              onSort={({ key, descending }) => set({ sort: key, order: descending ? "desc" : "asc" })}
              stale={events.stale.value}
              empty={<EmptyState title="No Events">None match the filters, or none has been made yet.</EmptyState>}
            />
            <Pager page={page} pageSize={SIZE} total={found.totalCount} onPage={(next) => set({ page: String(next) })} />
          </>
        )}
      </Answered>
    </>
  );
}

/** Days are those of the reader. */
function startOfDay(day: string | undefined): string | undefined {
  return day ? isoOf(new Date(`${day}T00:00:00`)) : undefined;
}

function endOfDay(day: string | undefined): string | undefined {
  return day ? isoOf(new Date(`${day}T23:59:59.999`)) : undefined;
}

/** An address that somebody has edited may hold no date. */
function isoOf(at: Date): string | undefined {
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
}
