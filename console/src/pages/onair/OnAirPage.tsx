import { useCallback, useMemo } from "preact/hooks";
import { api, dataOf, type MediaEvent, type Schemas } from "../../kernel/api";
import { useKey } from "../../kernel/keys";
import { useQuery } from "../../kernel/query";
import { useQueryState } from "../../kernel/router";
import { duration, now } from "../../kernel/time";
import { Answered, Button, EmptyState, NoAnswer, PageHead } from "../../parts";
import { EventDrawer } from "./EventDrawer";
import { lanes, type Lane, type Placed } from "./lanes";
import { TimeLine } from "./TimeLine";
import { asked, useView, type View, ZOOMS } from "./useView";
import "./onair.css";

const MOST = 1000;
const MANY = 100;
const ON_AIR: Schemas["EventStateInput"][] = [1, 2, 3, 24, 25];
const HOUR = 3_600_000;

interface Shown {
  events: readonly MediaEvent[];
  /** The number of Events in the window, including those not shown. */
  total: number;
}

/** Events that are on the air, next and late: lanes of channels or rooms on a time line. */
export default function OnAirPage() {
  const view = useView();
  const { values, set } = useQueryState();
  const window = asked(view);
  const size = useMemo(() => ({ many: false }), []);
  const events = useQuery(`on air ${window.from} ${window.to}`, (signal) => read(window, signal), {
    changes: { aggregates: ["event", "room", "channel"] },
    quiet: size.many ? 2000 : 250,
  });
  size.many = (events.data.value?.events.length ?? 0) > MANY;
  const live = (events.data.value?.events ?? []).some((each) => each.state === 1 || each.state === 2 || each.state === 24);
  const points = useQuery(live ? "on air points" : null, (signal) => dataOf(api.GET("/api/health/live/stream/", { signal })), { every: 5000 });
  const open = useCallback((id: string) => set({ event: id }), [set]);
  useKey("n", "Back to now", useCallback(() => view.show({ from: null }), [view]));
  useKey("+", "Show fewer hours", useCallback(() => zoomed(view, -1), [view]));
  useKey("-", "Show more hours", useCallback(() => zoomed(view, 1), [view]));
  useKey(",", "Go to earlier times", useCallback(() => moved(view, -1), [view]));
  useKey(".", "Go to later times", useCallback(() => moved(view, 1), [view]));
  return (
    <>
      <PageHead title="On air" actions={<ViewControls view={view} />}>
        {events.data.value && <Summary events={events.data.value.events} at={view.at} open={open} />}
      </PageHead>
      {points.failure.value && (
        <p class="page-line">
          Signals: <NoAnswer query={points} />
        </p>
      )}
      <Answered query={events}>
        {(found) => <Lanes found={found} view={view} points={points.current.value} open={open} stale={events.stale.value} />}
      </Answered>
      {values["event"] && <EventDrawer key={values["event"]} id={values["event"]} onClose={() => set({ event: "" })} all={events.data.value?.events ?? []} />}
    </>
  );
}

/** Events that are scheduled around the window, and all that are live, whenever they were to start. */
async function read(window: { from: string; to: string }, signal: AbortSignal): Promise<Shown> {
  const [scheduled, live] = await Promise.all([
    dataOf(api.GET("/api/event/", { params: { query: { ...window, pageSize: MOST } }, signal })),
    dataOf(api.GET("/api/event/", { params: { query: { eventState: ON_AIR, pageSize: MOST } }, signal })),
  ]);
  const byId = new Map([...scheduled.results, ...live.results].map((each) => [each.id, each]));
  return { events: [...byId.values()], total: scheduled.totalCount };
}

interface LanesProps {
  found: Shown;
  view: View;
  points: Schemas["LiveStreamHealth"] | undefined;
  open: (id: string) => void;
  stale: boolean;
}

function Lanes({ found, view, points, open, stale }: LanesProps) {
  const { by, from, to, at, zoom } = view;
  const all = useMemo(() => lanes(found.events, { by, at, shortest: (zoom * HOUR) / 80 }), [found.events, by, at, zoom]);
  const seen = useMemo(() => all.map((lane) => within(lane, from, to)).filter((lane) => lane.placed.length > 0), [all, from, to]);
  return (
    <>
      {found.total > MOST && (
        <p class="notice" role="status">
          Of {found.total.toLocaleString("en")} Events around this time the first {MOST.toLocaleString("en")} are shown. Show fewer hours to see all.
        </p>
      )}
      <TimeLine lanes={seen} view={view} points={points} open={open} stale={stale} />
      {seen.length === 0 && (
        <EmptyState
          title="Nothing is scheduled in these hours"
          action={<Button onClick={() => view.show({ zoom: 24, from: null })}>Show 24 hours around now</Button>}
        >
          Events with a scheduled start and all live Events are shown here.
        </EmptyState>
      )}
    </>
  );
}

/** The visible part of a lane, with rows only where they are needed. */
function within(lane: Lane, from: number, to: number): Lane {
  const placed = lane.placed.filter((each) => each.end > from && each.start < to);
  const used = [...new Set(placed.map((each) => each.row))].sort((one, other) => one - other);
  const row = new Map(used.map((each, index) => [each, index]));
  return { ...lane, rows: Math.max(1, used.length), placed: placed.map((each) => ({ ...each, row: row.get(each.row)! })) };
}

function ViewControls({ view }: { view: View }) {
  return (
    <div class="onair-controls">
      <div class="switch" role="group" aria-label="Lanes">
        {(["room", "channel"] as const).map((each) => (
          <button key={each} type="button" aria-pressed={view.by === each} onClick={() => view.show({ by: each })}>
            {each === "room" ? "Rooms" : "Channels"}
          </button>
        ))}
      </div>
      <div class="switch" role="group" aria-label="Visible hours">
        {ZOOMS.map((each) => (
          <button key={each} type="button" aria-pressed={view.zoom === each} onClick={() => view.show({ zoom: each })}>
            {each} h
          </button>
        ))}
      </div>
      <span class="steps">
        <Button kind="quiet" icon="left" label="Earlier" onClick={() => moved(view, -1)} />
        <Button kind={view.follows ? "quiet" : "primary"} disabled={view.follows} onClick={() => view.show({ from: null })}>
          Now
        </Button>
        <Button kind="quiet" icon="right" label="Later" onClick={() => moved(view, 1)} />
      </span>
    </div>
  );
}

function moved(view: View, direction: number): void {
  view.show({ from: view.from + (direction * view.zoom * HOUR) / 2 });
}

function zoomed(view: View, direction: number): void {
  const next = ZOOMS[ZOOMS.indexOf(view.zoom) + direction];
  if (next) view.show({ zoom: next });
}

/** The numbers of live, late and overlapping Events, and the next Event. Each leads to an Event. */
function Summary({ events, at, open }: { events: readonly MediaEvent[]; at: number; open: (id: string) => void }) {
  const placed = useMemo(() => lanes(events, { by: "room", at, shortest: 0 }).flatMap((each) => each.placed), [events, at]);
  const of = (...standings: Placed["standing"][]): Placed[] => placed.filter((each) => standings.includes(each.standing));
  const live = of("onair", "over");
  const late = of("late");
  const over = of("over");
  const next = of("next").sort((one, other) => one.start - other.start)[0];
  return (
    <span class="summary">
      <Count of={live} word="on air" tone="live" open={open} />
      <Count of={late} word="late" tone="bad" open={open} />
      <Count of={over} word="over time" tone="warn" open={open} />
      {next ? (
        <span class="summary-next">
          <span class="faint">Next</span>{" "}
          <button type="button" class="link" onClick={() => open(next.event.id)}>
            <bdi>{next.event.title || "Without a title"}</bdi>
          </button>{" "}
          <Countdown to={next.start} />
        </span>
      ) : (
        <span class="faint">No Event begins in these hours</span>
      )}
    </span>
  );
}

function Count({ of, word, tone, open }: { of: readonly Placed[]; word: string; tone: string; open: (id: string) => void }) {
  if (of.length === 0) return word === "on air" ? <span class="faint">Nothing is on air</span> : null;
  const longest = of.reduce((one, other) => (other.start < one.start ? other : one));
  return (
    <button type="button" class={`chip tone-${tone}`} title={`Show the first: ${longest.event.title.slice(0, 100)}`} onClick={() => open(longest.event.id)}>
      <strong>{of.length}</strong> {word}
    </button>
  );
}

function Countdown({ to }: { to: number }) {
  return <span>in {duration(Math.max(0, to - now.value))}</span>;
}
