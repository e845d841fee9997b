import "./jobs.css";
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import { NO_CLIENT, answered, api, dataOf } from "../../kernel/api";
import { parameterOfNext, usePages } from "../../kernel/pages";
import { useQuery } from "../../kernel/query";
import { jobPath, to, useQueryState } from "../../kernel/router";
import { may } from "../../kernel/session";
import { Answered, Button, DataTable, EmptyState, FilterBar, PageHead, RunReport, Shown, Tabs, type Filter, type Tab } from "../../parts";
import { BulkBar, changing } from "./BulkBar";
import { useTitles } from "../events/titles";
import { columnsOf, contentOf } from "./columns";
import type { Job } from "./jobActions";
import { useRunning } from "./progress";

type Counts = Readonly<Record<string, number>>;

const FIRST = 200;
const FURTHER = 1000;
const TABS: readonly (Tab & { state?: "STARTED" | "QUEUED" | "SCHEDULED" | "PENDING" | "PAUSED" | "COMPLETED" | "BROKEN"; failed?: boolean })[] = [
  { key: "failed", title: "Failed", tone: "bad", failed: true },
  { key: "started", title: "Running", tone: "busy", state: "STARTED" },
  { key: "queued", title: "Queued", tone: "ready", state: "QUEUED" },
  { key: "scheduled", title: "Scheduled", state: "SCHEDULED" },
  { key: "pending", title: "At a gate", tone: "warn", state: "PENDING" },
  { key: "paused", title: "Paused", tone: "warn", state: "PAUSED" },
  { key: "completed", title: "Completed", tone: "ok", state: "COMPLETED", failed: false },
  { key: "broken", title: "Cancelled", state: "BROKEN" },
  { key: "total", title: "All" },
];
const JOBS = { changes: { aggregates: ["job"] } };

/** The jobs of the engine by state, failed jobs first. */
export default function JobsPage() {
  const { values, set } = useQueryState();
  const limits = { workflow: values["workflow"], client: values["client"] };
  const counts = useQuery(`job counts ${JSON.stringify(limits)}`, (signal) => dataOf(api.GET("/engine/jobs/counts", { params: { query: limits }, signal })), {
    ...JOBS,
    every: 15_000,
  });
  const workflows = useQuery("workflows", (signal) => dataOf(api.GET("/engine/workflows", { params: { header: NO_CLIENT }, signal })));
  const counted = counts.current.value as unknown as Counts | undefined;
  const first = useFirst(counted, counts.failure.value !== null);
  const chosen = TABS.find((each) => each.key === values["state"])?.key ?? first;
  const filters = useMemo<readonly Filter[]>(
    () => [
      { name: "search", label: "Search", kind: "search" },
      { name: "workflow", label: "Workflow", kind: "choice", options: (workflows.data.value ?? []).map((each) => [each.name, each.name] as const) },
      { name: "client", label: "Client", kind: "text" },
      { name: "from", label: "Accepted from", kind: "date" },
      { name: "to", label: "Until", kind: "date" },
    ],
    [workflows.data.value],
  );
  const tabs = TABS.map((each) => ({ ...each, ...(counted === undefined ? {} : { count: countOf(each.key, counted) }) }));
  return (
    <>
      <PageHead
        title="Jobs"
        actions={
          may("operator") ? (
            <a class="button primary" href={to("/jobs/new")}>
              New job
            </a>
          ) : (
            <Button disabled label="New job: this needs the role operator or admin.">
              New job
            </Button>
          )
        }
      />
      <Tabs label="Jobs by state" tabs={tabs} chosen={chosen ?? ""} onChoose={(key) => set({ state: key, sort: "", order: "" })} controls="jobs-list" />
      <FilterBar filters={filters} />
      <RunReport run={changing} />
      <div id="jobs-list" role="tabpanel" aria-label="Jobs" class="jobs-list">
        {chosen === undefined ? null : <List chosen={chosen} values={values} set={set} />}
      </div>
    </>
  );
}

/** The first tab: the failed jobs if there are any. It stays selected while the page is open. */
function useFirst(counted: Counts | undefined, isUnknown: boolean): string | undefined {
  const [first, setFirst] = useState<string | undefined>();
  useEffect(() => {
    if (first === undefined && counted !== undefined) setFirst(counted["failed"] ? "failed" : "total");
  }, [counted]);
  return first ?? (isUnknown ? "total" : undefined);
}

function countOf(key: string, counted: Counts): number {
  const own = counted[key] ?? 0;
  return key === "completed" ? own - (counted["failed"] ?? 0) : own;
}

interface ListProps {
  chosen: string;
  values: Readonly<Record<string, string>>;
  set: (changed: Record<string, string>) => void;
}

function List({ chosen, values, set }: ListProps) {
  const tab = TABS.find((each) => each.key === chosen)!;
  const sort = { key: values["sort"] ?? "id", descending: values["order"] !== "asc" };
  const query = {
    order_by: sort.key as "id",
    asc: !sort.descending,
    state: tab.state,
    failed: tab.failed,
    search: values["search"],
    workflow: values["workflow"],
    client: values["client"],
    from: instant(values["from"], "T00:00:00"),
    to: instant(values["to"], "T23:59:59.999"),
  };
  const jobs = usePages(
    `jobs ${JSON.stringify(query)}`,
    async (after, signal) => {
      const page = { ...query, items: after === null ? FIRST : FURTHER, after: after ?? undefined };
      const { data, response } = await answered(api.GET("/engine/jobs", { params: { query: page }, signal }));
      return { rows: data, next: parameterOfNext(response, "after") };
    },
    JOBS,
  );
  const running = useRunning(chosen === "started" || (jobs.data.value?.rows ?? []).some((job) => job.queue_state === "started"));
  const selected = useSignal<ReadonlySet<number>>(new Set());
  useEffect(() => void (selected.value = new Set()), [chosen]);
  const toggle = (job: Job, on: boolean): void => {
    const next = new Set(selected.value);
    if (on) next.add(job.id);
    else next.delete(job.id);
    selected.value = next;
  };
  const titles = useTitles((jobs.data.value?.rows ?? []).map(contentOf));
  const columns = columnsOf(chosen, { running, titles, selected, toggle, mayChange: may("operator") });
  const filtered = ["search", "workflow", "client", "from", "to"].some((name) => values[name]);
  return (
    <Answered query={jobs}>
      {({ rows, more }) => (
        <>
          <BulkBar jobs={rows.filter((job) => selected.value.has(job.id))} all={rows} selected={selected} onDone={jobs.refresh} />
          <DataTable
            caption={`Jobs: ${tab.title}`}
            columns={columns}
            rows={rows}
            rowKey={(job) => job.id}
            rowHref={(job) => jobPath(job.id)}
            sort={sort}
            onSort={({ key, descending }) => set({ sort: key, order: descending ? "" : "asc" })}
            list={jobs.key}
            stale={jobs.stale.value}
            empty={<Nothing tab={tab} filtered={filtered} />}
            onEnd={jobs.extend}
          />
          <Shown count={rows.length} more={more} />
        </>
      )}
    </Answered>
  );
}

function Nothing({ tab, filtered }: { tab: Tab; filtered: boolean }) {
  if (filtered) return <EmptyState title="No jobs">None match the filters in “{tab.title}”.</EmptyState>;
  if (tab.key === "failed") return <EmptyState title="No failed jobs">There is nothing to check here.</EmptyState>;
  if (tab.key === "total") return <EmptyState title="No jobs yet">“New job” submits one; the product does it for VODs, assets and compositions.</EmptyState>;
  return <EmptyState title="No jobs">No job is in this state.</EmptyState>;
}

/** A day in the user's zone. An edited address may hold no date. */
function instant(day: string | undefined, time: string): string | undefined {
  const at = day ? new Date(`${day}${time}`) : null;
  return at === null || Number.isNaN(at.getTime()) ? undefined : at.toISOString();
}
