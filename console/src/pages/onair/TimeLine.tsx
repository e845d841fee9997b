import type { RefObject } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Schemas } from "../../kernel/api";
import { oldSince } from "../../kernel/changes";
import { EVENT_STATES, stateWord, type Tone } from "../../kernel/states";
import { clock, day, duration, now, running, zone } from "../../kernel/time";
import { type Lane, type Placed, ticks } from "./lanes";
import { signalOf } from "../event/signal";
import type { View } from "./useView";

const HOUR = 3_600_000;
const LINES: Readonly<Record<number, number>> = { 2: HOUR / 4, 6: HOUR, 24: 3 * HOUR };
/** Pixels that a finger or a mouse moves before it drags. */
const SLIP = 5;

interface TimeLineProps {
  lanes: readonly Lane[];
  view: View;
  /** The current reports of the publishing points; undefined if unknown. */
  points: Schemas["LiveStreamHealth"] | undefined;
  open: (id: string) => void;
  stale: boolean;
}

/** The lanes under their axis. Drag or turn the wheel sideways to scroll; arrow keys go from bar to bar. */
export function TimeLine({ lanes, view, points, open, stale }: TimeLineProps) {
  const stage = useRef<HTMLDivElement>(null);
  const [shift, setShift] = useState(0);
  const drag = useRef<{ x: number; width: number; moved: boolean } | null>(null);
  const from = view.from - shift;
  const span = view.to - view.from;
  const at = (time: number): number => ((time - from) / span) * 100;

  const began = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    const width = stage.current?.querySelector(".track")?.clientWidth ?? 1;
    drag.current = { x: event.clientX, width, moved: false };
  };
  const moved = (event: PointerEvent): void => {
    const begun = drag.current;
    if (!begun) return;
    const distance = event.clientX - begun.x;
    if (!begun.moved && Math.abs(distance) < SLIP) return;
    if (!begun.moved) (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
    begun.moved = true;
    setShift((distance / begun.width) * span);
  };
  const ended = (): void => {
    if (drag.current?.moved && shift !== 0) view.show({ from: view.from - shift });
    setShift(0);
    setTimeout(() => (drag.current = null)); // the click of the same button comes after this
  };
  const turned = (event: WheelEvent): void => {
    const sideways = event.shiftKey ? event.deltaY : event.deltaX;
    if (Math.abs(sideways) <= (event.shiftKey ? 0 : Math.abs(event.deltaY))) return;
    event.preventDefault();
    view.show({ from: view.from + (sideways / 800) * span });
  };
  const pressed = (event: KeyboardEvent): void => {
    const bar = (event.target as HTMLElement).closest<HTMLElement>(".bar");
    if (bar && neighbour(stage.current!, bar, event.key)) event.preventDefault();
  };
  return (
    <div
      class={`timeline${stale ? " stale" : ""}${shift ? " dragged" : ""}`}
      ref={stage}
      role="group"
      aria-label={`Time line from ${clock(new Date(from))} to ${clock(new Date(from + span))}`}
      onPointerDown={began}
      onPointerMove={moved}
      onPointerUp={ended}
      onPointerCancel={ended}
      onWheel={turned}
      onKeyDown={pressed}
      onClickCapture={(event) => drag.current?.moved && event.stopPropagation()}
    >
      <div class="axis" aria-hidden="true">
        <div class="lane-title faint">
          {day(new Date(from))} <span>{zone(new Date(from))}</span>
        </div>
        <div class="track">
          {ticks(from, from + span, LINES[view.zoom]!).map((time) => (
            <Tick key={time} time={time} from={from} span={span} stage={stage} />
          ))}
          <NowLine from={from} span={span} named />
        </div>
      </div>
      {lanes.map((lane) => (
        <section class="lane" key={lane.key} aria-label={lane.title}>
          <h2 class="lane-title" title={lane.title}>
            <bdi>{lane.title}</bdi>
          </h2>
          <ul class="track" style={{ height: `${lane.rows * 3.5 + 0.5}rem` }}>
            {ticks(from, from + span, LINES[view.zoom]!).map((time) => (
              <li key={time} class="line" aria-hidden="true" style={{ left: `${at(time)}%` }} />
            ))}
            {lane.placed.map((placed) => (
              <Bar key={placed.event.id} placed={placed} from={from} span={span} points={points} open={open} />
            ))}
            <NowLine from={from} span={span} />
          </ul>
        </section>
      ))}
    </div>
  );
}

const LABEL_PIXELS = 44;

/** A line of the axis, without its label if the current time would cover it. */
function Tick({ time, from, span, stage }: { time: number; from: number; span: number; stage: RefObject<HTMLElement | null> }) {
  const pixels = ((stage.current?.querySelector(".axis .track")?.clientWidth ?? 1000) * Math.abs(time - now.value)) / span;
  return (
    <span class="tick" style={{ left: `${((time - from) / span) * 100}%` }}>
      {pixels > LABEL_PIXELS && label(time)}
    </span>
  );
}

function label(time: number): string {
  const at = new Date(time);
  return at.getHours() === 0 && at.getMinutes() === 0 ? day(at).slice(5) : clock(at);
}

function NowLine({ from, span, named = false }: { from: number; span: number; named?: boolean }) {
  const place = ((now.value - from) / span) * 100;
  if (place < 0 || place > 100) return null;
  const Element = named ? "span" : "li";
  return (
    <Element class="now-line" aria-hidden="true" style={{ left: `${place}%` }}>
      {named && <span class="now-time">{clock(new Date(now.value))}</span>}
    </Element>
  );
}

interface BarProps {
  placed: Placed;
  from: number;
  span: number;
  points: Schemas["LiveStreamHealth"] | undefined;
  open: (id: string) => void;
}

function Bar({ placed, from, span, points, open }: BarProps) {
  const { event, start, end, row, standing, overlaps } = placed;
  const left = Math.max(0, ((start - from) / span) * 100);
  const right = Math.min(100, ((end - from) / span) * 100);
  const signal = standing === "onair" || standing === "over" ? signalOf(event, points) : null;
  const state = stateWord(EVENT_STATES, event.state);
  const times = `${clock(new Date(start))} to ${placed.open ? "open end" : clock(new Date(end))}`;
  const classes = ["bar", `tone-${toneOf(placed, state.tone)}`, standing, signal !== null && event.channelId === null && "without-channel", overlaps.length > 0 && "overlapping", placed.open && "open-end", start < from && "cut"];
  return (
    <li class="slot" style={{ left: `${left}%`, width: `${Math.max(right - left, 0)}%`, top: `${row * 3.5 + 0.25}rem` }}>
      <button type="button" class={classes.filter(Boolean).join(" ")} data-event={event.id} onClick={() => open(event.id)}>
        <span class="bar-title">
          <bdi>{event.title.slice(0, 200) || "Without a title"}</bdi>
        </span>
        <span class="bar-line">
          <Standing placed={placed} word={state.word} />
          {overlaps.length > 0 && <span class="mark-overlap">Overlaps</span>}
          {signal && <span class={`mark-signal tone-${signal.tone}`}>{signal.word}</span>}
        </span>
        <span class="unseen">
          {", "}
          {(standing === "late" || standing === "missed" || standing === "next") && `${state.word}, `}
          {times}
        </span>
      </button>
    </li>
  );
}

/** The words that change with time, which are drawn separately. */
function Standing({ placed, word }: { placed: Placed; word: string }) {
  const { standing, start, event } = placed;
  const at = now.value;
  if (oldSince.value !== null) return <span>{`${word} when last seen`}</span>;
  if (standing === "onair") return <span>{`${word} ${running(at - start)}`}</span>;
  if (standing === "over") return <span>{`${word}, over by ${duration(at - Date.parse(event.scheduledEnd!))}`}</span>;
  if (standing === "late") return <span>{`Late ${duration(at - start)}`}</span>;
  if (standing === "missed") return <span>Did not start</span>;
  if (standing === "next") return <span>{`Next in ${duration(Math.max(0, start - at))}`}</span>;
  return <span>{word}</span>;
}

function toneOf({ standing }: Placed, tone: Tone): Tone {
  if (standing === "late") return "bad";
  if (standing === "missed") return "off";
  return tone;
}

/** Moves the focus to the adjacent bar, or to the nearest bar of the next lane. */
function neighbour(stage: HTMLElement, bar: HTMLElement, key: string): boolean {
  const bars = [...stage.querySelectorAll<HTMLElement>(".bar")];
  const lane = bar.closest(".lane");
  const inLane = (one: Element | null): HTMLElement[] => [...(one?.querySelectorAll<HTMLElement>(".bar") ?? [])];
  const mine = inLane(lane);
  const nearest = (found: HTMLElement[]): HTMLElement | undefined =>
    found.sort((one, other) => Math.abs(one.getBoundingClientRect().left - bar.getBoundingClientRect().left) - Math.abs(other.getBoundingClientRect().left - bar.getBoundingClientRect().left))[0];
  const to: Record<string, () => HTMLElement | undefined> = {
    ArrowRight: () => mine[mine.indexOf(bar) + 1],
    ArrowLeft: () => mine[mine.indexOf(bar) - 1],
    ArrowDown: () => nearest(inLane(lane?.nextElementSibling ?? null)),
    ArrowUp: () => nearest(inLane(lane?.previousElementSibling ?? null)),
    Home: () => bars[0],
    End: () => bars.at(-1),
  };
  const next = to[key]?.();
  next?.focus();
  return next !== undefined;
}
