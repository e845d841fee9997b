import "./health.css";
import { useState } from "preact/hooks";
import { answered, api, dataOf, type Schemas } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { eventPath } from "../../kernel/router";
import { may } from "../../kernel/session";
import { stateWord, type StateWord, type Tone } from "../../kernel/states";
import { duration } from "../../kernel/time";
import { toast } from "../../kernel/toasts";
import { Answered, Badge, Button, Confirm, CopyButton, DataTable, Drawer, EmptyState, Facts, PageHead, Panel, Sparkline, Time, type Column } from "../../parts";
import { size } from "../jobs/progress";
import { pageOf, type Finding } from "./attention";

type Overview = Schemas["HealthOverview"];
type Consumer = Schemas["Consumer"];
type Sample = Schemas["HealthSample"];

const EVERY = 2000;
const whole = (value: number): string => value.toLocaleString("en");

/** The installation at a glance: what needs attention first, then its parts. */
export default function HealthPage() {
  const overview = useQuery("health overview", (signal) => dataOf(api.GET("/api/health/overview/", { signal })), { every: EVERY });
  return (
    <>
      <PageHead title="Health" />
      <Answered query={overview}>
        {(seen) => (
          <div class={`health${overview.stale.value ? " stale" : ""}`}>
            <Attention found={seen.attention} at={seen.at} />
            <Hour seen={seen} />
            <div class="panels">
              <Store seen={seen} />
              <Log log={seen.log} />
              <Work seen={seen} />
              <Live seen={seen} />
            </div>
            <Consumers consumers={seen.consumers} onDone={overview.refresh} />
            <Processes seen={seen} />
          </div>
        )}
      </Answered>
    </>
  );
}

function Attention({ found, at }: { found: readonly Finding[]; at: string }) {
  return (
    <Panel title="Needs attention" actions={<Time at={at} as="absolute" />}>
      {found.length === 0 ? (
        <p class="all-well">
          <Badge state={{ word: "All well", tone: "ok" }} /> Nothing needs attention.
        </p>
      ) : (
        <ul class="findings" role="list">
          {found.map((each) => ({ ...each, page: pageOf(each) })).map((each) => (
            <li key={each.text}>
              <Badge state={each.level === "fault" ? { word: "Fault", tone: "bad" } : { word: "Look", tone: "warn" }} />
              <bdi>{each.text}</bdi>
              {each.page && <a href={each.page[0]}>{each.page[1]}</a>}
              {each.command && (
                <span class="text">
                  <code>{each.command}</code>
                  <CopyButton text={each.command} label={`Copy ${each.command}`} />
                </span>
              )}
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

interface Line {
  title: string;
  unit: string;
  of: (sample: Sample) => number;
  /** The current value; the rate of events is known for whole minutes only. */
  now?: (seen: Overview) => number;
}

const sum = (values: readonly number[]): number => values.reduce((all, each) => all + each, 0);
const LINES: readonly Line[] = [
  { title: "Events recorded", unit: "a minute", of: (sample) => sample.eventsPerMinute },
  { title: "Slowest consumer", unit: "events behind", of: (sample) => sample.lag, now: (seen) => Math.max(0, ...seen.consumers.map((each) => each.lag ?? 0)) },
  { title: "Deliveries", unit: "wait", of: (sample) => sample.pendingDeliveries, now: (seen) => seen.deliveries.pending },
  { title: "Jobs", unit: "queued", of: (sample) => sample.queuedJobs, now: (seen) => seen.jobs.states["queued"] ?? 0 },
  { title: "Steps of jobs", unit: "run", of: (sample) => sample.runningSteps, now: (seen) => sum(seen.jobs.steps.map((each) => each.running)) },
  {
    title: "Live points",
    unit: "not on the air",
    of: (sample) => sample.failedPoints,
    now: (seen) => sum(Object.entries(seen.points).map(([state, count]) => (state === "on_air" ? 0 : count))),
  },
];

function Hour({ seen }: { seen: Overview }) {
  return (
    <div class="hour" role="group" aria-label="Now, and in the last hour">
      {LINES.map(({ title, unit, of, now }) => {
        const values = seen.history.map(of);
        const current = now ? now(seen) : values[values.length - 1];
        const most = Math.max(0, ...values);
        return (
          <div key={title} class="hour-line">
            <span class="faint">{title}</span>
            <span>
              <strong>{current === undefined ? "–" : whole(current)}</strong> <span class="faint">{unit}</span>
            </span>
            <Sparkline values={values} label={`${title} in the last hour: at most ${most} ${unit}`} tone="ready" />
            <span class="faint">{values.length > 1 ? `at most ${whole(most)} in ${values.length} min` : "one sample per minute"}</span>
          </div>
        );
      })}
    </div>
  );
}

function Store({ seen }: { seen: Overview }) {
  return (
    <Panel title="Database and disks">
      <Facts
        facts={[
          ["PostgreSQL", seen.database.version],
          ["Database", size(seen.database.bytes)],
          ...seen.disks.map((each) => [
            `Free, ${each.name}`,
            <span class="text">
              {size(each.freeBytes)} {each.low && <Badge state={{ word: "Low", tone: "bad" }} />}
            </span>,
          ] as const),
        ]}
      />
    </Panel>
  );
}

function Log({ log }: { log: Overview["log"] }) {
  return (
    <Panel title="Log">
      <Facts
        facts={[
          ["Events", whole(log.position)],
          ["Last event", <Time at={log.recordedAt} />],
          [
            "Verified",
            log.badPosition !== null ? (
              <Badge state={{ word: `Damaged from ${log.badPosition} on`, tone: "bad" }} />
            ) : log.verifiedPosition === null ? (
              "not yet"
            ) : (
              <>
                up to {whole(log.verifiedPosition)}, <Time at={log.verifiedAt} as="relative" />
              </>
            ),
          ],
          ["Last checkpoint", log.sealedAt ? <Time at={log.sealedAt} /> : "none signed"],
          ["Without checkpoint", log.unsealedEvents === 0 ? "none" : `${whole(log.unsealedEvents)} events, ${duration(log.unsealedSeconds * 1000)}`],
          ["Stored elsewhere", log.unanchoredSeconds > 0 ? `not for ${duration(log.unanchoredSeconds * 1000)}` : "up to date, or nowhere else"],
        ]}
      />
    </Panel>
  );
}

function Work({ seen }: { seen: Overview }) {
  const { jobs, deliveries } = seen;
  return (
    <Panel title="Jobs and deliveries">
      <Facts
        facts={[
          ["Workers of steps", whole(jobs.workers)],
          ...jobs.steps.map((each) => [`Queue ${each.queue}`, `${whole(each.running)} run, ${whole(each.ready)} wait`] as const),
          ["First queued job", jobs.oldestQueuedSeconds > 0 ? `waits for ${duration(jobs.oldestQueuedSeconds * 1000)}` : "none waits"],
          ["Deliveries", `${whole(deliveries.pending)} wait, ${whole(deliveries.due)} due, ${whole(deliveries.inFlight)} being sent`],
          ["First due delivery", deliveries.oldestSeconds > 0 ? `late by ${duration(deliveries.oldestSeconds * 1000)}` : "none is late"],
        ]}
      />
    </Panel>
  );
}

const POINTS: Readonly<Record<string, StateWord>> = {
  on_air: { word: "On the air", tone: "ok" },
  not_receiving: { word: "Receives nothing", tone: "bad" },
  not_started: { word: "Not started", tone: "warn" },
  unknown: { word: "No report", tone: "neutral" },
};
const SESSION_TONES: Readonly<Record<string, Tone>> = { running: "ok", failed: "bad", starting: "busy", stopping: "busy" };

function Live({ seen }: { seen: Overview }) {
  const [shown, setShown] = useState(false);
  const points = Object.entries(seen.points).filter(([, count]) => count > 0);
  const states = seen.sessions.filter((each) => each.count > 0);
  return (
    <Panel
      title="Live"
      actions={
        <Button kind="quiet" onClick={() => setShown(true)}>
          Publishing points
        </Button>
      }
    >
      <Facts
        facts={[
          [
            "Publishing points",
            points.length === 0 ? (
              "no Event is live"
            ) : (
              <span class="badges">
                {points.map(([state, count]) => {
                  const { word, tone } = stateWord(POINTS, state);
                  return <Badge key={state} state={{ word: `${count} ${word}`, tone }} />;
                })}
              </span>
            ),
          ],
          [
            "Sessions",
            states.length === 0 ? (
              "none"
            ) : (
              <span class="badges">
                {states.map((each) => (
                  <Badge key={`${each.kind} ${each.state}`} state={{ word: `${each.count} ${each.kind} ${each.state}`, tone: SESSION_TONES[each.state] ?? "neutral" }} />
                ))}
              </span>
            ),
          ],
          [
            "Which, and stop",
            <span class="text">
              <code>medialedger sessions list</code>
              <CopyButton text="medialedger sessions list" />
            </span>,
          ],
        ]}
      />
      {shown && <Points onClose={() => setShown(false)} />}
    </Panel>
  );
}

function Points({ onClose }: { onClose: () => void }) {
  const points = useQuery("live points", (signal) => dataOf(api.GET("/api/health/live/stream/", { signal })), { every: 5000 });
  return (
    <Drawer title="Publishing points of live Events" open onClose={onClose}>
      <Answered query={points}>
        {(found) => {
          const events = Object.entries(found);
          if (events.length === 0) return <EmptyState title="No Event is live" />;
          return (
            <ul class="points" role="list">
              {events.map(([event, { urls }]) => (
                <li key={event}>
                  <a href={eventPath(event)}>{event}</a>
                  {urls.length === 0 && <p class="faint">Its channel has no publishing points.</p>}
                  {urls.map((point) => (
                    <p key={point.url} class="point">
                      <Badge state={point.receivingData ? { word: "Receives data", tone: "ok" } : { word: point.hasStarted ? "Receives nothing" : `State: ${point.state}`, tone: point.hasStarted ? "bad" : "warn" }} />
                      <bdi>{point.name || point.url}</bdi> <Time at={point.lastUpdated} as="relative" />
                    </p>
                  ))}
                </li>
              ))}
            </ul>
          );
        }}
      </Answered>
    </Drawer>
  );
}

function conditionOf(consumer: Consumer): StateWord {
  if (consumer.members.some((member) => (member.failingSeconds ?? 0) > 0)) return { word: "Fails", tone: "bad" };
  if (consumer.members.some((member) => (member.readsLogSeconds ?? 0) > 0)) return { word: "Reads the log", tone: "warn" };
  if (consumer.parked > 0) return { word: "Has parked", tone: "bad" };
  if (consumer.held < consumer.shards) return { word: consumer.held === 0 ? "Not running" : "Partly running", tone: consumer.position === null ? "neutral" : "bad" };
  return { word: "Runs", tone: "ok" };
}

function Consumers({ consumers, onDone }: { consumers: readonly Consumer[]; onDone: () => void }) {
  const [parked, setParked] = useState<string | null>(null);
  const columns: readonly Column<Consumer>[] = [
    { key: "name", title: "Role", cell: (each) => each.name, value: (each) => each.name },
    { key: "state", title: "Condition", width: "9.5rem", cell: (each) => <Badge state={conditionOf(each)} />, value: (each) => conditionOf(each).word },
    { key: "lag", title: "Events behind", width: "8rem", align: "end", cell: (each) => (each.lag === null ? <span class="faint">–</span> : whole(each.lag)), value: (each) => each.lag },
    { key: "held", title: "Parts", width: "6rem", align: "end", secondary: true, cell: (each) => `${each.held} of ${each.shards}` },
    { key: "members", title: "Runs on", secondary: true, cell: (each) => [...new Set(each.members.map((member) => member.host))].join(", ") || "–" },
    {
      key: "parked",
      title: "Parked",
      width: "7rem",
      align: "end",
      cell: (each) =>
        each.parked === 0 ? (
          <span class="faint">0</span>
        ) : (
          <Button kind="quiet" onClick={() => setParked(each.name)}>
            {whole(each.parked)} …
          </Button>
        ),
      value: (each) => each.parked,
    },
  ];
  return (
    <Panel title="Workers by role">
      <div class="inner-table">
        <DataTable caption="Workers by role" columns={columns} rows={consumers} rowKey={(each) => each.name} />
      </div>
      {parked !== null && <Parked name={parked} onClose={() => setParked(null)} onDone={onDone} />}
    </Panel>
  );
}

/** The records that a consumer could not process, with their errors and a retry. */
function Parked({ name, onClose, onDone }: { name: string; onClose: () => void; onDone: () => void }) {
  const [asked, setAsked] = useState(false);
  const records = useQuery(`parked ${name}`, (signal) => dataOf(api.GET("/api/consumer/{name}/parked/", { params: { path: { name }, query: { pageSize: 200 } }, signal })), { every: 3000 });
  const replay = async (): Promise<void> => {
    const made = await answered(api.POST("/api/consumer/{name}/parked/replay/", { params: { path: { name } } }));
    toast(`${whole(made.data.replaying)} tried again`);
    records.refresh();
    onDone();
  };
  const allowed = may("operator");
  return (
    <Drawer
      title={`Parked by ${name}`}
      open
      onClose={onClose}
      actions={
        <Button kind="primary" disabled={!allowed} {...(allowed ? {} : { label: "Retry: this needs the role operator or admin." })} onClick={() => setAsked(true)}>
          Retry all
        </Button>
      }
    >
      <Answered query={records}>
        {(found) =>
          found.length === 0 ? (
            <EmptyState title="Nothing is parked" />
          ) : (
            <ul class="points" role="list">
              {found.map((each) => (
                <li key={each.position}>
                  <strong>{each.type}</strong> <span class="faint">{`position ${each.position}, ${each.attempts} tries`}</span> <Time at={each.parkedAt} />
                  {each.replay && <Badge state={{ word: "Will be retried", tone: "busy" }} />}
                  <p>
                    <bdi>{each.error}</bdi>
                  </p>
                  <p class="faint">
                    {each.aggregate} <bdi>{each.id}</bdi>
                  </p>
                </li>
              ))}
            </ul>
          )
        }
      </Answered>
      {asked && (
        <Confirm title={`Retry all parked records of ${name}?`} action="Retry" open onClose={() => setAsked(false)} onConfirm={replay}>
          <p>They are retried in order. Records that fail again stay parked.</p>
        </Confirm>
      )}
    </Drawer>
  );
}

type Process = Overview["processes"][number];

const PROCESS_COLUMNS: readonly Column<Process>[] = [
  { key: "host", title: "Machine", cell: (each) => each.host, value: (each) => each.host },
  { key: "pid", title: "Process", width: "8rem", align: "end", cell: (each) => each.pid, value: (each) => each.pid },
  { key: "build", title: "Build", width: "6rem", align: "end", cell: (each) => each.build, value: (each) => each.build },
  { key: "started", title: "Since", width: "12rem", cell: (each) => <Time at={each.startedAt} />, value: (each) => each.startedAt },
];

function Processes({ seen }: { seen: Overview }) {
  const builds = new Set(seen.processes.map((each) => each.build));
  return (
    <Panel title="Processes" actions={builds.size > 1 ? <Badge state={{ word: `${builds.size} builds`, tone: "warn" }} /> : undefined}>
      <div class="inner-table">
        <DataTable caption="Processes" columns={PROCESS_COLUMNS} rows={seen.processes} rowKey={(each) => `${each.host} ${each.pid}`} empty={<EmptyState title="No process was seen" />} />
      </div>
    </Panel>
  );
}
