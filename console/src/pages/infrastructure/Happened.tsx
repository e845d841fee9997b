import { api, answered, dataOf, type MediaEvent, type Schemas } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { to } from "../../kernel/router";
import { may } from "../../kernel/session";
import { Answered, Time } from "../../parts";
import { historyOf, typeWord, whoWord, type Entry } from "../audit/words";

type Info = NonNullable<MediaEvent["provisionInfo"]>;
type LogEntry = Schemas["LogEntry"];

const MOST = 30;
/** States with a fault: provisioning failed, partly provisioned, terminating failed. */
const WITH_REASON: ReadonlySet<number> = new Set([2, 4, 6]);

/** The last failure, the states over time, and the entries of the provisioner in the log store. */
export function Happened({ event, info }: { event: MediaEvent; info: Info }) {
  const changes = { aggregates: ["provision"], ids: [info.id] };
  const log = useQuery(`log of ${event.id} ${info.stateString}`, (signal) => readLog(event.id, signal), { changes, every: info.state === 1 || info.state === 5 ? 3000 : 60_000 });
  return (
    <>
      {WITH_REASON.has(info.state) && <Reason entries={log.current.value ?? []} />}
      {may("auditor") ? <States info={info} /> : <p class="hint">Its states over time need the role auditor.</p>}
      <Answered query={log}>
        {(entries) =>
          entries.length > 0 && (
            <>
              <h3 class="part-title">Log</h3>
              <ol class="happened">
                {entries.map((each) => (
                  <li key={each.id}>
                    <Time at={each.date} />
                    <span class={each.level === "Error" ? "is-error" : ""}>
                      <bdi>{each.message}</bdi>
                    </span>
                  </li>
                ))}
              </ol>
            </>
          )
        }
      </Answered>
    </>
  );
}

/** The newest error about the Event. */
function Reason({ entries }: { entries: readonly LogEntry[] }) {
  const error = entries.find((each) => each.level === "Error");
  if (!error) return null;
  return (
    <p class="failure" role="status">
      <bdi>{error.message}</bdi>
    </p>
  );
}

function States({ info }: { info: Info }) {
  const query = { aggregate: "provision", id: info.id, order: "DESC" as const, pageSize: MOST };
  const history = useQuery(`states of ${info.id}`, async (signal) => (await dataOf(api.GET("/api/audit/events/", { params: { query }, signal }))).results, {
    changes: { aggregates: ["provision"], ids: [info.id] },
  });
  return (
    <>
      <h3 class="part-title">What happened</h3>
      <Answered query={history}>
        {(entries) => (
          <ol class="happened">
            {entries.map((each) => (
              <li key={each.position}>
                <Time at={each.recordedAt} />
                <span>
                  {typeWord(each.type)} <span class="faint">by <bdi>{whoWord(each)}</bdi></span>
                  {reasonOf(each) && <bdi class="why">{reasonOf(each)}</bdi>}
                </span>
              </li>
            ))}
          </ol>
        )}
      </Answered>
      <p>
        <a href={to(historyOf("provision", info.id))}>Its whole history</a>
      </p>
    </>
  );
}

function reasonOf(entry: Entry): string {
  const reason = entry.data["reason"];
  return typeof reason === "string" ? reason : "";
}

/** The newest first; an empty log is an answer without content. */
async function readLog(eventId: string, signal: AbortSignal): Promise<readonly LogEntry[]> {
  const { data } = await answered(api.GET("/api/log/event/{eventId}", { params: { path: { eventId }, query: { pageSize: MOST, queryOrder: "DESC" } }, signal }));
  return data?.results ?? [];
}
