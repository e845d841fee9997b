import { useState } from "preact/hooks";
import { api, dataOf, type MediaEvent, type Schemas } from "../../kernel/api";
import { usePages } from "../../kernel/pages";
import { eventPath, useQueryState } from "../../kernel/router";
import { EVENT_STATES, stateWord } from "../../kernel/states";
import { Answered, Badge, DataTable, EmptyState, FilterBar, PageHead, Time, type Column, type Filter } from "../../parts";
import { EventTitle } from "./EventTitle";

const SIZE = 200;
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
  const sort = { key: values["sort"] ?? "scheduledStart", descending: values["order"] !== "asc" };
  const query = {
    pageSize: SIZE,
    search: values["search"],
    eventState: values["state"] ? [values["state"] as Schemas["EventStateInput"]] : undefined,
    from: startOfDay(values["from"]),
    to: endOfDay(values["to"]),
    orderColumn: sort.key === "scheduledStart" ? undefined : (sort.key as OrderColumn),
    order: sort.descending ? ("DESC" as const) : ("ASC" as const),
  };
  const [total, setTotal] = useState(0);
  const events = usePages(
    `events ${JSON.stringify(query)}`,
    async (next, signal) => {
      const pageNumber = Number(next ?? 1);
      const found = await dataOf(api.GET("/api/event/", { params: { query: { ...query, pageNumber } }, signal }));
      setTotal(found.totalCount);
      return { rows: found.results, next: pageNumber * SIZE < found.totalCount ? String(pageNumber + 1) : null };
    },
    { changes: { aggregates: ["event"] } },
  );
  return (
    <>
      <PageHead title="Events" />
      <FilterBar filters={FILTERS} />
      <Answered query={events}>
        {({ rows }) => (
          <>
            <DataTable
              caption="Events"
              columns={COLUMNS}
              rows={rows}
              rowKey={(event) => event.id}
              rowHref={(event) => eventPath(event.id)}
              sort={sort}
              onSort={({ key, descending }) => set({ sort: key, order: descending ? "desc" : "asc" })}
              list={events.key}
              stale={events.stale.value}
              empty={<EmptyState title="No Events">None match the filters, or none has been created yet.</EmptyState>}
              onEnd={events.extend}
            />
            <p class="pager faint" role="status">
              {rows.length.toLocaleString("en")} of {Math.max(total, rows.length).toLocaleString("en")} read
            </p>
          </>
        )}
      </Answered>
    </>
  );
}

/** Days are in the user's zone. */
function startOfDay(day: string | undefined): string | undefined {
  return day ? isoOf(new Date(`${day}T00:00:00`)) : undefined;
}

function endOfDay(day: string | undefined): string | undefined {
  return day ? isoOf(new Date(`${day}T23:59:59.999`)) : undefined;
}

/** An edited address may hold no date. */
function isoOf(at: Date): string | undefined {
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
}
