import { useMemo, useRef } from "preact/hooks";
import { api, found, type MediaEvent } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { eventPath } from "../../kernel/router";
import { EVENT_STATES, isOnAir, stateWord } from "../../kernel/states";
import { now, running } from "../../kernel/time";
import { Answered, Badge, Drawer, Facts, Time, loaded } from "../../parts";
import { EncoderSessions } from "../event/EncoderSessions";
import { Playhead } from "../event/Playhead";
import { PointList, usePoints } from "../event/Points";
import { signalOf } from "../event/signal";
import { StateActions } from "../event/StateActions";
import { lanes } from "./lanes";

const Player = loaded(() => import("../event/player/Player"));

interface EventDrawerProps {
  id: string;
  onClose: () => void;
  /** The Events of the view, for overlaps. */
  all: readonly MediaEvent[];
}

/** An Event of the time line: its fields, the signal at its publishing points, and its actions. */
export function EventDrawer({ id, onClose, all }: EventDrawerProps) {
  const event = useQuery(`event ${id}`, (signal) => found(api.GET("/api/event/{id}", { params: { path: { id } }, signal })), {
    changes: { aggregates: ["event"], ids: [id.toLowerCase()] },
  });
  return (
    <Drawer title="Event" open onClose={onClose}>
      <Answered query={event}>
        {({ data, etag }) => (
          <div class="stack">
            <h3 class="drawer-title">
              <a href={eventPath(data.id)}>
                <bdi>{data.title || "Without a title"}</bdi>
              </a>
            </h3>
            <p class="page-line">
              <Badge state={stateWord(EVENT_STATES, data.state)} title={data.stateString} />
              {isOnAir(data.state) && data.channelId === null && <Badge state={signalOf(data, undefined)} />}
              {isOnAir(data.state) && data.actualLiveStart && <Running since={data.actualLiveStart} />}
            </p>
            <StateActions event={data} etag={etag} changed={event.refresh} />
            <Facts
              facts={[
                ["Scheduled start", <Time at={data.scheduledStart} />],
                ["Scheduled end", <Time at={data.scheduledEnd} />],
                ["Was live from", data.actualLiveStart && <Time at={data.actualLiveStart} />],
                ["Room", data.room && <bdi>{data.room}</bdi>],
                ["Channel", data.channel && <bdi>{data.channel}</bdi>],
                ["Type", data.eventType && <bdi>{data.eventType}</bdi>],
                ["By itself", automatic(data)],
                ["Overlaps with", <Overlaps id={data.id} all={all} />],
              ]}
            />
            {isOnAir(data.state) && <Stream key={data.id} event={data} />}
          </div>
        )}
      </Answered>
    </Drawer>
  );
}

/** The picture as soon as a signal arrives, with the encoders and publishing points. */
function Stream({ event }: { event: MediaEvent }) {
  const points = usePoints(event.id);
  const playhead = useMemo(() => new Playhead(), []);
  const hasArrived = useRef(false); // a gap of some seconds does not remove the player
  hasArrived.current ||= (points.data.value?.[event.id]?.urls ?? []).some((each) => each.receivingData);
  return (
    <section aria-label="Stream">
      {hasArrived.current && <Player event={event} playhead={playhead} />}
      <h3 class="part-title">Encoders</h3>
      <EncoderSessions id={event.id} />
      <h3 class="part-title">Publishing points</h3>
      <PointList id={event.id} points={points} />
    </section>
  );
}

function Running({ since }: { since: string }) {
  return <span>for {running(now.value - Date.parse(since))}</span>;
}

function automatic(event: MediaEvent): string {
  const said = [event.autoStart && (event.autoPublish ? "Starts, public" : "Starts, not public"), event.autoEnd && "Stops"].filter(Boolean);
  return said.length > 0 ? said.join("; ") : "None: it is started and stopped manually";
}

function Overlaps({ id, all }: { id: string; all: readonly MediaEvent[] }) {
  const found = (["room", "channel"] as const).flatMap((by) =>
    lanes(all, { by, at: now.peek(), shortest: 0 }).flatMap((lane) => lane.placed.filter((each) => each.event.id === id).flatMap((each) => each.overlaps)),
  );
  const once = [...new Map(found.map((each) => [each.id, each])).values()];
  if (once.length === 0) return <>nothing</>;
  return (
    <ul>
      {once.slice(0, 10).map((each) => (
        <li key={each.id}>
          <a href={eventPath(each.id)}>
            <bdi>{each.title.slice(0, 200) || "Without a title"}</bdi>
          </a>
        </li>
      ))}
      {once.length > 10 && <li>and {once.length - 10} more</li>}
    </ul>
  );
}
