import { api, dataOf, found, type MediaEvent } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { eventPath, useQueryState } from "../../kernel/router";
import { PROVISION_STATES, stateWord } from "../../kernel/states";
import { now } from "../../kernel/time";
import { Answered, Badge, DataTable, Drawer, EmptyState, FilterBar, Pager, Time, type Column } from "../../parts";
import { Infrastructure, Orders, automatic } from "./Infrastructure";

const SIZE = 100;
/** Maximum number of Events from yesterday on that are searched for planned infrastructure. */
const LOOKED_AT = 500;
const DAY = 86_400_000;
const CHANGES = { changes: { aggregates: ["event"] }, quiet: 1000 };
const STATES = Object.entries(PROVISION_STATES).map(([state, { word }]) => [state, word] as const);

const NAME: Column<MediaEvent> = { key: "event", title: "Event", value: (each) => each.title, cell: (each) => <bdi title={each.title.slice(0, 300)}>{each.title.slice(0, 300) || "Without a title"}</bdi> };
const PROFILE: Column<MediaEvent> = {
  key: "profile",
  title: "Profile",
  secondary: true,
  value: (each) => each.infrastructureProfile,
  cell: (each) => (each.infrastructureProfile ? <bdi title={each.infrastructureProfile.slice(0, 300)}>{each.infrastructureProfile.slice(0, 300)}</bdi> : <span class="faint">–</span>),
};
const COLUMNS: readonly Column<MediaEvent>[] = [
  NAME,
  { key: "state", title: "Infrastructure", width: "12.5rem", value: (each) => each.provisionInfo?.state, cell: ({ provisionInfo: info }) => info && <Badge state={stateWord(PROVISION_STATES, info.state)} title={info.stateString} /> },
  PROFILE,
  { key: "key", title: "Key", secondary: true, value: (each) => each.provisionInfo?.infrastructureKey, cell: (each) => <bdi title={each.provisionInfo?.infrastructureKey}>{each.provisionInfo?.infrastructureKey}</bdi> },
  { key: "since", title: "Provisioned", width: "11rem", value: (each) => each.provisionInfo?.provisionedAt, cell: (each) => <Time at={each.provisionInfo?.provisionedAt} /> },
  { key: "end", title: "To be terminated", width: "11rem", secondary: true, value: (each) => each.scheduledTerminateAt, cell: (each) => <Time at={each.scheduledTerminateAt} /> },
];
const PLANNED: readonly Column<MediaEvent>[] = [
  NAME,
  PROFILE,
  { key: "begin", title: "To be provisioned", width: "11rem", value: (each) => each.scheduledProvisionAt, cell: (each) => <Time at={each.scheduledProvisionAt} /> },
  { key: "end", title: "To be terminated", width: "11rem", secondary: true, value: (each) => each.scheduledTerminateAt, cell: (each) => <Time at={each.scheduledTerminateAt} /> },
  { key: "automatic", title: "By itself", width: "22rem", secondary: true, cell: automatic },
];

/** Events whose infrastructure was requested by a user or the schedule. */
export function Provisioned() {
  const { values, set } = useQueryState();
  const pageNumber = Math.max(1, Number(values["page"]) || 1);
  const chosen = STATES.some(([state]) => state === values["state"]) ? [values["state"]!] : STATES.map(([state]) => state);
  const query = { provisionState: chosen as never, search: values["search"], pageSize: SIZE, pageNumber, order: "DESC" as const };
  const events = useQuery(`provisioned ${JSON.stringify(query)}`, (signal) => dataOf(api.GET("/api/event/", { params: { query }, signal })), CHANGES);
  return (
    <>
      <FilterBar
        filters={[
          { name: "search", label: "Search", kind: "search" },
          { name: "state", label: "State", kind: "choice", options: STATES },
        ]}
      />
      <Answered query={events}>
        {(page) => (
          <>
            <DataTable
              caption="Provisioned Events"
              columns={COLUMNS}
              rows={page.results}
              rowKey={(each) => each.id}
              onRow={(each) => set({ open: each.id, page: String(pageNumber) })}
              list={events.key}
              stale={events.stale.value}
              empty={<EmptyState title="No infrastructure">No matching Event has infrastructure.</EmptyState>}
            />
            {page.totalCount > SIZE && <Pager page={pageNumber} pageSize={SIZE} total={page.totalCount} onPage={(next) => set({ page: String(next) })} />}
          </>
        )}
      </Answered>
      <Open />
    </>
  );
}

/** Events from yesterday on that have a profile and were not provisioned yet. */
export function Planned() {
  const { set } = useQueryState();
  const from = new Date(now.peek() - DAY).toISOString().slice(0, 13) + ":00:00Z";
  const query = { from, pageSize: LOOKED_AT };
  const events = useQuery(`planned ${from}`, (signal) => dataOf(api.GET("/api/event/", { params: { query }, signal })), CHANGES);
  return (
    <>
      <Answered query={events}>
        {(page) => (
          <>
            <DataTable
              caption="Planned Events"
              columns={PLANNED}
              rows={page.results.filter((each) => each.infrastructureProfileId !== null && each.provisionInfo === null)}
              rowKey={(each) => each.id}
              onRow={(each) => set({ open: each.id })}
              list={events.key}
              stale={events.stale.value}
              empty={<EmptyState title="Nothing planned">No Event from yesterday on has a profile and waits to be provisioned.</EmptyState>}
            />
            {page.totalCount > LOOKED_AT && <p class="hint">Only the next {LOOKED_AT} of {page.totalCount.toLocaleString("en")} Events were searched.</p>}
          </>
        )}
      </Answered>
      <Open />
    </>
  );
}

/** The Event in the address. */
function Open() {
  const { values, set } = useQueryState();
  const id = values["open"];
  const event = useQuery(id ? `event ${id}` : null, (signal) => found(api.GET("/api/event/{id}", { params: { path: { id: id! } }, signal })), { changes: { aggregates: ["event"], ids: [id ?? ""] } });
  if (!id) return null;
  return (
    <Drawer title="Infrastructure of an Event" open onClose={() => set({ open: "", page: values["page"] ?? "" })}>
      <Answered query={event}>
        {({ data }) => (
          <div class="infrastructure">
            <p>
              <a href={eventPath(data.id)}>
                <bdi>{data.title.slice(0, 300) || "Without a title"}</bdi>
              </a>
            </p>
            <Orders event={data} />
            <Infrastructure event={data} />
          </div>
        )}
      </Answered>
    </Drawer>
  );
}
