import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { MediaEvent } from "../../kernel/api";
import { EVENT_STATES, isOnAir, stateWord } from "../../kernel/states";
import { WEEKDAYS, clock, day, now, zone } from "../../kernel/time";
import { HOUR, HOUR_WIDTH, NO_LANE, STEP, drawnEnd, laneOf, placed, shifted, stepped, timesOf } from "./timeline";
import type { Lane, LaneKind, Placed, Span, Times } from "./timeline";

const ROW = 44;

export interface Move {
  event: MediaEvent;
  times: Times;
  lane: string;
}

interface GridProps {
  events: readonly MediaEvent[];
  lanes: readonly Lane[];
  kind: LaneKind;
  span: Span;
  range: { from: Date; to: Date; days: Date[] };
  /** The day to scroll to if the current time is not visible. */
  date: string;
  /** Moves an Event. Absent if the role does not allow it. */
  onMove?: ((move: Move) => Promise<void>) | undefined;
  onOpen: (event: MediaEvent) => void;
  onAdd?: ((lane: string, start: number) => void) | undefined;
  stale: boolean;
}

type Draft = Move & { saving: boolean };

/** Lanes below each other, time from left to right. Events are moved by the pointer, or by Alt and arrow keys. */
export function Grid(props: GridProps) {
  const { lanes, kind, span, range } = props;
  const [draft, setDraft] = useState<Draft | null>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const width = HOUR_WIDTH[span];
  const x = (at: number): number => ((at - range.from.getTime()) / HOUR) * width;
  const total = x(range.to.getTime());
  useLayoutEffect(() => {
    const here = Math.min(Math.max(now.peek(), range.from.getTime()), range.to.getTime());
    const morning = Date.parse(`${props.date}T08:00:00`);
    scroller.current?.scrollTo({ left: Math.max(0, x(here === now.peek() ? here - HOUR : morning) - 20) });
  }, [span, range.from.getTime(), props.date]);

  const save = async (made: Move): Promise<void> => {
    const before = timesOf(made.event);
    const same = before?.start === made.times.start && before.end === made.times.end && laneOf(made.event, kind) === made.lane;
    if (same || !props.onMove) return setDraft(null);
    setDraft({ ...made, saving: true });
    await props.onMove(made).finally(() => setDraft(null));
  };
  const shown = props.events.map((event) => (draft?.event.id === event.id ? withDraft(event, draft, kind) : event));
  const at = now.value;
  const { onAdd } = props;
  return (
    <div class={`grid${props.stale ? " stale" : ""}`} ref={scroller} tabIndex={0} role="region" aria-label="Schedule by time" aria-busy={props.stale || undefined}>
      <div class="grid-inside" style={{ "--hours": `${total}px`, "--hour": `${width}px` }}>
        <Head range={range} span={span} x={x} />
        {at >= range.from.getTime() && at < range.to.getTime() && <div class="now-line" style={{ left: `calc(var(--lane) + ${x(at)}px)` }} aria-hidden="true" />}
        {lanes.map((lane) => {
          const inLane = placed(shown.filter((event) => laneOf(event, kind) === lane.id), lane.id !== NO_LANE);
          const rows = Math.max(1, ...inLane.map((each) => each.row + 1));
          return (
            <div key={lane.id} class="lane" role="group" aria-label={lane.name} style={{ minHeight: `${rows * ROW + 8}px` }}>
              <h2 class="lane-name" title={lane.name}>
                <bdi>{lane.name}</bdi>
              </h2>
              <div
                class="lane-time"
                data-lane={lane.id}
                onDblClick={(event) => {
                  if (event.target === event.currentTarget) onAdd?.(lane.id, range.from.getTime() + stepped((event.offsetX / width) * HOUR, STEP[span]));
                }}
              >
                {inLane.map((each) => (
                  <Block
                    key={each.event.id}
                    placed={each}
                    x={x}
                    {...{ kind, span, lanes, total, width }}
                    draft={draft?.event.id === each.event.id ? draft : null}
                    original={props.events.find((one) => one.id === each.event.id)!}
                    onDraft={(next) => setDraft(next && { ...next, saving: false })}
                    onSave={(made) => void save(made)}
                    onOpen={props.onOpen}
                    movable={props.onMove !== undefined && !draft?.saving}
                  />
                ))}
              </div>
            </div>
          );
        })}
      </div>
      <p class="unseen" role="status">
        {draft && !draft.saving ? sentence(draft, lanes) : ""}
      </p>
    </div>
  );
}

function withDraft(event: MediaEvent, { times, lane }: Draft, kind: LaneKind): MediaEvent {
  const iso = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString());
  const place = kind === "room" ? { roomId: lane || null } : { channelId: lane || null };
  return { ...event, scheduledStart: iso(times.start), scheduledEnd: iso(times.end), ...place };
}

function sentence({ times, lane }: Move, lanes: readonly Lane[]): string {
  const start = new Date(times.start);
  const end = times.end === null ? "open end" : clock(new Date(times.end));
  return `${day(start)} ${clock(start)} to ${end}, ${lanes.find((each) => each.id === lane)?.name ?? ""}. Enter saves, Escape cancels.`;
}

function Head({ range, span, x }: { range: GridProps["range"]; span: Span; x: (at: number) => number }) {
  const every = span === "day" ? 1 : 6;
  const hours: Date[] = [];
  for (let at = range.from.getTime(); at < range.to.getTime(); at += HOUR) if (new Date(at).getHours() % every === 0) hours.push(new Date(at));
  return (
    <div class="grid-head" aria-hidden="true">
      <span class="corner">
        {span === "day" ? `${WEEKDAYS[range.from.getDay()]} ${day(range.from)}` : `From ${day(range.from)}`}
        <br />
        {zone(range.from)}
      </span>
      {range.days.map((each) => (
        <span key={each.getTime()} class={`grid-day${day(each) === day(new Date(now.peek())) ? " today" : ""}`} style={{ left: `calc(var(--lane) + ${x(each.getTime())}px)` }}>
          {WEEKDAYS[each.getDay()]} {day(each)}
        </span>
      ))}
      {hours.map((each) => (
        <span key={each.getTime()} class="grid-hour" style={{ left: `calc(var(--lane) + ${x(each.getTime())}px)` }}>
          {clock(each)}
        </span>
      ))}
    </div>
  );
}

interface BlockProps {
  placed: Placed;
  original: MediaEvent;
  draft: Draft | null;
  kind: LaneKind;
  span: Span;
  lanes: readonly Lane[];
  total: number;
  width: number;
  x: (at: number) => number;
  movable: boolean;
  onDraft: (draft: Move | null) => void;
  onSave: (made: Move) => void;
  onOpen: (event: MediaEvent) => void;
}

function Block(props: BlockProps) {
  const { original, draft, kind, span, lanes, total, width, x, movable } = props;
  const { event, overlaps } = props.placed;
  const state = stateWord(EVENT_STATES, event.state);
  const left = Math.max(0, x(props.placed.start));
  const right = Math.min(total, x(drawnEnd(props.placed)));
  const times = clock(new Date(props.placed.start)) + (props.placed.end === null ? "" : `–${clock(new Date(props.placed.end))}`);
  const title = event.title.slice(0, 200) || "Without a title";
  const conflict = overlaps.length > 0 ? `Overlaps ${overlaps.map((each) => each.title.slice(0, 60) || "an Event without a title").slice(0, 3).join(", ")}` : "";
  const about = [title, `${day(new Date(props.placed.start))} ${times}`, state.word, props.placed.end === null ? "without an end" : "", conflict].filter(Boolean).join(". ");
  const base: Move = draft ?? { event: original, times: timesOf(original)!, lane: laneOf(original, kind) };

  /** True for the click after a drag, which opens nothing. */
  const wasDragged = useRef(false);
  /** True if the Event has begun, so that only its end can change. */
  const onAir = isOnAir(original.state);
  const grab = (down: PointerEvent): void => {
    wasDragged.current = false;
    if (!movable || down.button !== 0 || down.pointerType === "touch") return;
    down.preventDefault();
    const element = down.currentTarget as HTMLElement;
    element.focus();
    const edge = onAir ? "end" : (((down.target as HTMLElement).dataset["edge"] ?? "both") as "both" | "start" | "end");
    drag({ down, element, onMove: (distance, lane) => {
      const delta = stepped((distance / width) * HOUR, STEP[span]);
      const made = { ...base, times: shifted(base.times, delta, { edge, step: STEP[span] }), lane: edge === "both" ? (lane ?? base.lane) : base.lane };
      props.onDraft(made);
      return made;
    }, onDrop: (made) => {
      wasDragged.current = true;
      if (made === null) return props.onDraft(null);
      setTimeout(() => (wasDragged.current = false));
      props.onSave(made);
    } });
  };
  const pressed = (key: KeyboardEvent): void => {
    const made = key.altKey && movable ? byKey({ key, base, step: STEP[span], lanes, onAir }) : null;
    if (made) props.onDraft(made);
    else if (key.key === "Enter") draft ? props.onSave(draft) : props.onOpen(original);
    else if (key.key === "Escape" && draft) props.onDraft(null);
    else return;
    key.preventDefault();
  };
  return (
    <div
      class={`block tone-${state.tone}${conflict ? " conflict" : ""}${draft ? " draft" : ""}${draft?.saving ? " saving" : ""}${props.placed.end === null ? " open" : ""}`}
      style={{ left: `${left}px`, width: `${Math.max(12, right - left)}px`, top: `${props.placed.row * ROW + 4}px` }}
      role="button"
      tabIndex={0}
      title={about}
      data-event={event.id}
      onPointerDown={grab}
      onKeyDown={pressed}
      onClick={() => wasDragged.current || props.onOpen(original)}
      onBlur={() => draft && !draft.saving && props.onDraft(null)}
    >
      {movable && !onAir && <span class="edge" data-edge="start" />}
      <span class="block-title">
        <bdi>{title}</bdi>
      </span>
      <span class="block-line">
        {conflict && <strong>Overlap </strong>}
        {times} {state.word}
        <span class="unseen">
          {" "}
          {day(new Date(props.placed.start))}. {conflict}
        </span>
      </span>
      {movable && <span class="edge end" data-edge="end" />}
    </div>
  );
}

/** Alt and arrows move, with Shift they move the end. */
function byKey({ key, base, step, lanes, onAir }: { key: KeyboardEvent; base: Move; step: number; lanes: readonly Lane[]; onAir: boolean }): Move | null {
  const sideways = { ArrowLeft: -step, ArrowRight: step }[key.key];
  if (sideways !== undefined) return { ...base, times: shifted(base.times, sideways, { edge: key.shiftKey || onAir ? "end" : "both", step }) };
  const down = onAir ? undefined : { ArrowUp: -1, ArrowDown: 1 }[key.key];
  const lane = down === undefined ? undefined : lanes[lanes.findIndex((each) => each.id === base.lane) + down];
  return lane ? { ...base, lane: lane.id } : null;
}

const THRESHOLD = 4;

interface Drag {
  down: PointerEvent;
  element: HTMLElement;
  onMove: (distance: number, lane: string | undefined) => Move;
  /** Called with the new times, or null after a cancellation. Not called for a click without a movement. */
  onDrop: (made: Move | null) => void;
}

/** Follows the pointer until it is released. Escape cancels. */
function drag({ down, element, onMove, onDrop }: Drag): void {
  let made: Move | null = null;
  const scroller = element.closest(".grid")!;
  const began = scroller.scrollLeft;
  const end = new AbortController();
  const { signal } = end;
  const follow = (event: PointerEvent): void => {
    const distance = event.clientX - down.clientX + scroller.scrollLeft - began;
    if (made === null && Math.hypot(distance, event.clientY - down.clientY) < THRESHOLD) return;
    const below = document.elementsFromPoint(event.clientX, event.clientY).find((each) => each instanceof HTMLElement && each.dataset["lane"] !== undefined);
    made = onMove(distance, (below as HTMLElement | undefined)?.dataset["lane"]);
  };
  const drop = (): void => {
    end.abort();
    if (made !== null) onDrop(made);
  };
  const give = (): void => {
    end.abort();
    onDrop(null);
  };
  addEventListener("pointermove", follow, { signal });
  addEventListener("pointerup", drop, { signal });
  addEventListener("pointercancel", give, { signal });
  addEventListener("keydown", (event) => event.key === "Escape" && (event.stopPropagation(), give()), { signal, capture: true });
}
