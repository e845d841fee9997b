import { api, dataOf, type Schemas } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { SESSION_STATES, stateWord } from "../../kernel/states";
import { Answered, Badge, Facts, Time } from "../../parts";

/** The sessions of an Event's encoders: the current or last session of each channel. */
export function EncoderSessions({ id }: { id: string }) {
  const sessions = useQuery(
    `sessions ${id}`,
    (signal) => dataOf(api.GET("/api/health/live/session/event/{eventId}", { params: { path: { eventId: id } }, signal })),
    { changes: { aggregates: ["event"], ids: [id.toLowerCase()] }, every: 5000 },
  );
  return (
    <Answered query={sessions}>
      {(found) => {
        if (found.length === 0) return <p class="faint">Its encoders did not run.</p>;
        return (
          <ul class="stack">
            {found.map((each) => (
              <li key={each.channelId}>
                <Session session={each} />
              </li>
            ))}
          </ul>
        );
      }}
    </Answered>
  );
}

function Session({ session }: { session: Schemas["EncoderSession"] }) {
  return (
    <Facts
      facts={[
        ["State", <Badge state={stateWord(SESSION_STATES, session.state)} />],
        ["Started", <Time at={session.startedAt} />],
        ["Restarts", String(session.restarts)],
        ["Machine", <bdi>{session.host}</bdi>],
        ...(session.reason ? [["Reason", <bdi>{session.reason}</bdi>] as const] : []),
        ...session.encoders.map((each, index) => [each.name || `Encoder ${index + 1}`, <Encoder encoder={each} />] as const),
      ]}
    />
  );
}

function Encoder({ encoder }: { encoder: Schemas["SessionEncoder"] }) {
  if (!encoder.running) return <>not running{encoder.lastError && <>: <bdi>{encoder.lastError}</bdi></>}</>;
  return (
    <>
      {encoder.fps.toFixed(0)} pictures/s, {(encoder.bitrate / 1e6).toFixed(2)} Mbit/s, {(encoder.bytes / 1e6).toFixed(1)} MB
    </>
  );
}
