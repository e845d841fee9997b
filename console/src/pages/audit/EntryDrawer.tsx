import { Failure, api, dataOf } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { to } from "../../kernel/router";
import { Answered, CopyButton, Drawer, Facts, JsonView, Time } from "../../parts";
import { Value } from "./Value";
import { actorWord, fieldWord, historyOf, isErased, kindWord, pageOf, typeWord, type Entry } from "./words";

interface EntryDrawerProps {
  position: number;
  /** The entry of the list, if it is loaded. */
  known: Entry | undefined;
  onClose: () => void;
}

/** An entry of the log: its content, its author, and the proof that it is in the log. */
export function EntryDrawer({ position, known, onClose }: EntryDrawerProps) {
  const entry = useQuery(`audit entry ${position}`, async (signal) => {
    if (known) return known;
    const query = { after: position - 1, before: position + 1, pageSize: 1, order: "ASC" as const };
    const found = await dataOf(api.GET("/api/audit/events/", { params: { query }, signal }));
    if (found.results[0] === undefined) throw new Failure(404, `The log has no position ${position}.`);
    return found.results[0];
  });
  return (
    <Drawer title={entry.data.value ? `${kindWord(entry.data.value.aggregate)}: ${typeWord(entry.data.value.type)}` : "Entry"} open onClose={onClose}>
      <Answered query={entry}>{(shown) => <Content entry={shown} />}</Answered>
    </Drawer>
  );
}

function Content({ entry }: { entry: Entry }) {
  const page = pageOf(entry.aggregate, entry.id);
  return (
    <div class="entry">
      <Facts
        facts={[
          ["Recorded", <Time at={entry.recordedAt} as="full" />],
          ["Client", <Only of={{ actor: entry.actor }} word={actorWord(entry.actor, entry.actorKind)} />],
          ["Person", entry.endUser && <Only of={{ actor: entry.endUser }} word={entry.endUser} />],
          ["Request", <Only of={{ transaction: entry.transactionId }} word={entry.transactionId} />],
          [
            kindWord(entry.aggregate),
            <span>
              <code class="id">{entry.id}</code> <CopyButton text={entry.id} label="Copy the id" />
            </span>,
          ],
          ["Version", entry.version],
        ]}
      />
      <p class="links">
        <a href={to(historyOf(entry.aggregate, entry.id), { v: entry.version })}>This moment in its history</a>
        {page && <a href={to(page)}>As it is now</a>}
        <a href={to("/audit", { type: entry.type, kind: entry.aggregate })}>All of this type</a>
      </p>
      <h3>Content</h3>
      {isErased(entry) ? (
        <p class="erased">
          Its content was erased. <a href={to(historyOf(entry.aggregate, entry.id))}>The history</a> names the redaction.
        </p>
      ) : (
        <>
          <Facts
            facts={Object.entries(entry.data)
              .filter(([name]) => name !== "timestamp")
              .map(([name, value]) => [fieldWord(name), <Value kind={entry.aggregate} field={name} value={value} type={entry.type} />] as const)}
          />
          <details>
            <summary>As stored</summary>
            <JsonView value={entry.data} label="Data as JSON" />
          </details>
        </>
      )}
      <h3>Proof</h3>
      <Proof entry={entry} />
    </div>
  );
}

function Only({ of, word }: { of: Record<string, string>; word: string }) {
  return (
    <a href={to("/audit", of)}>
      <bdi>{word}</bdi>
    </a>
  );
}

function Proof({ entry }: { entry: Entry }) {
  const { position } = entry;
  const proof = useQuery(`audit proof ${position}`, async (signal) => {
    const [newest] = await dataOf(api.GET("/api/audit/checkpoints/", { params: { query: { pageSize: 1 } }, signal }));
    if (newest === undefined || newest.events < position) return null;
    return dataOf(api.GET("/api/audit/proof/inclusion", { params: { query: { position } }, signal }));
  });
  return (
    <>
      <Facts
        facts={[
          ["Position", entry.position.toLocaleString("en")],
          ["Leaf", <code class="hash">{entry.hash}</code>],
        ]}
      />
      <Answered query={proof}>
        {(found) =>
          found === null ? (
            <p class="faint">No checkpoint includes it yet. The log is sealed every minute in which an event was written.</p>
          ) : (
            <>
              <Facts
                facts={[
                  ["Commit", `${found.commit.toLocaleString("en")}, event ${entry.position - found.first + 1} of ${found.count}`],
                  ["Checkpoint", `with ${found.size.toLocaleString("en")} commits`],
                  ["Path to the root", `${found.path.length} hashes in the commit, ${found.tree.length} in the tree`],
                ]}
              />
              <p class="links">
                <a href={`/api/audit/proof/inclusion?position=${entry.position}`} download={`proof-${entry.position}.json`}>
                  Download the proof
                </a>
                <a href={`/api/audit/export?${new URLSearchParams({ aggregate: entry.aggregate, id: entry.id })}`} download="stream.ndjson">
                  Export its history with proofs
                </a>
              </p>
            </>
          )
        }
      </Answered>
    </>
  );
}
