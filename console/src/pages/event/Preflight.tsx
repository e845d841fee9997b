import { api, dataOf, found, type MediaEvent } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { EVENT_STATES, PLANNED, stateWord } from "../../kernel/states";
import { clock, now } from "../../kernel/time";
import { Answered } from "../../parts";

interface Check {
  /** Missing parts and conflicts. */
  warnings: readonly string[];
  /** The channel and its parts. */
  ready: string;
}

const HOUR = 3_600_000;
const MOST = 3;

/** Warnings before an Event goes on the air: no channel, no encoder, no publishing point, or another Event on the channel. */
export function Preflight({ event }: { event: MediaEvent }) {
  const check = useQuery(`preflight ${event.id} ${event.channelId}`, (signal) => looked(event, signal));
  return (
    <Answered query={check}>
      {({ warnings, ready }) =>
        warnings.length === 0 ? (
          <p class="faint">{ready}</p>
        ) : (
          <div class="notice warnings" role="status">
            <ul class="changes">
              {warnings.map((each) => (
                <li key={each}>{each}</li>
              ))}
            </ul>
          </div>
        )
      }
    </Answered>
  );
}

async function looked(event: MediaEvent, signal: AbortSignal): Promise<Check> {
  const { channelId } = event;
  if (channelId === null) return { warnings: ["It has no channel: no encoder starts, and there is nothing to watch."], ready: "" };
  const [channel, live, scheduled] = await Promise.all([
    found(api.GET("/api/channel/{id}", { params: { path: { id: channelId } }, signal })),
    liveOn(channelId, event.id, signal),
    scheduledOn(channelId, event, signal),
  ]);
  const { encoders, points } = counted(channel.data.configurationJson);
  const name = channel.data.name.slice(0, 100);
  const warnings = [
    encoders === 0 && `Its channel ${name} has no encoder: nothing is sent, and there is nothing to watch.`,
    encoders > 0 && points === 0 && `Its channel ${name} has no publishing point: its encoders have nowhere to send to.`,
    ...live.map((each) => `${titled(each)} is on the channel: ${stateWord(EVENT_STATES, each.state).word}.`),
    ...scheduled.map((each) => `${titled(each)} is planned on the channel from ${clock(new Date(each.scheduledStart!))}.`),
  ];
  const many = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;
  return { warnings: warnings.filter((each) => each !== false), ready: `On the channel ${name}, with ${many(encoders, "encoder")} and ${many(points, "publishing point")}.` };
}

const titled = (event: MediaEvent): string => event.title.slice(0, 80) || "An Event without a title";

async function liveOn(channelId: string, own: string, signal: AbortSignal): Promise<readonly MediaEvent[]> {
  const points = await dataOf(api.GET("/api/health/live/stream/{channelId}", { params: { path: { channelId } }, signal }));
  const ids = Object.keys(points).filter((id) => id !== own).slice(0, MOST);
  return ids.length === 0 ? [] : (await dataOf(api.GET("/api/event/", { params: { query: { ids } }, signal }))).results;
}

/** Finds the Events that begin on the channel before this Event ends, or within an hour. */
async function scheduledOn(channelId: string, event: MediaEvent, signal: AbortSignal): Promise<readonly MediaEvent[]> {
  const from = now.peek();
  const end = event.scheduledEnd === null ? NaN : Date.parse(event.scheduledEnd);
  const to = end > from ? end : from + HOUR;
  const query = { from: new Date(from).toISOString(), to: new Date(to).toISOString(), eventState: [PLANNED as 0], pageSize: 1000 };
  const { results } = await dataOf(api.GET("/api/event/", { params: { query }, signal }));
  return results.filter((each) => each.channelId === channelId && each.id !== event.id).slice(0, MOST);
}

interface Configuration {
  encoders?: { streamingServer?: { streamingServerSpecific?: Record<string, { publishingPointUrl?: string | null } | null> | null } | null }[] | null;
}

function counted(configurationJson: string): { encoders: number; points: number } {
  const encoders = (JSON.parse(configurationJson) as Configuration | null)?.encoders ?? [];
  const points = encoders.flatMap((each) => {
    const server = each?.streamingServer?.streamingServerSpecific;
    return [server?.["primaryPublishingPoint"], server?.["secondaryPublishingPoint"]].filter((point) => point?.publishingPointUrl);
  });
  return { encoders: encoders.length, points: points.length };
}
