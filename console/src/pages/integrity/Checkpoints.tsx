import { useState } from "preact/hooks";
import { api, dataOf, type Schemas } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { Answered, Button, CopyButton, DataTable, Drawer, EmptyState, Facts, Panel, Time, type Column } from "../../parts";
import { save } from "../audit/files";

type Checkpoint = Schemas["LogCheckpoint"];
const SIZE = 50;
const ANCHORS: Readonly<Record<string, string>> = { file: "File", s3: "Bucket", webhook: "Webhook", timestamp: "Time stamp" };

const COLUMNS: readonly Column<Checkpoint>[] = [
  { key: "time", title: "Signed", cell: (one) => <Time at={one.time} /> },
  { key: "number", title: "Number", width: "6rem", align: "end", cell: (one) => one.number.toLocaleString("en") },
  { key: "events", title: "Events", width: "7rem", align: "end", cell: (one) => one.events.toLocaleString("en") },
  { key: "root", title: "Root", width: "13rem", secondary: true, cell: (one) => <code>{one.root.slice(0, 16)}…</code> },
  { key: "anchors", title: "Kept by", width: "12rem", cell: (one) => anchorsOf(one) || <span class="faint">nothing else</span> },
];

function anchorsOf(one: Checkpoint): string {
  return [...new Set(one.anchors.map((each) => ANCHORS[each.kind] ?? each.kind))].join(", ");
}

/** The signed checkpoints: the newest with its actions, and the previous ones. */
export function Checkpoints({ integrity }: { integrity: Schemas["LogIntegrity"] }) {
  const [before, setBefore] = useState<readonly number[]>([]);
  const [chosen, setChosen] = useState<Checkpoint | null>(null);
  const page = before.at(-1);
  const checkpoints = useQuery(
    `checkpoints ${page ?? ""}`,
    (signal) => dataOf(api.GET("/api/audit/checkpoints/", { params: { query: { pageSize: SIZE, before: page } }, signal })),
    { every: 15_000 },
  );
  return (
    <Answered query={checkpoints}>
      {(found) =>
        found.length === 0 && page === undefined ? (
          <Panel title="Checkpoints">
            <EmptyState title="No checkpoint yet">The log is sealed every minute in which an event was written.</EmptyState>
          </Panel>
        ) : (
          <>
            {page === undefined && found[0] && <Newest checkpoint={found[0]} integrity={integrity} />}
            <section aria-label="All checkpoints" class="checkpoint-list">
              <DataTable caption="Checkpoints, the newest first" columns={COLUMNS} rows={found} rowKey={(one) => one.number} onRow={setChosen} list={checkpoints.key} stale={checkpoints.stale.value} />
              {(page !== undefined || found.length === SIZE) && (
                <div class="links">
                  <Button disabled={page === undefined} onClick={() => setBefore(before.slice(0, -1))}>
                    Newer
                  </Button>
                  <Button disabled={found.length < SIZE} onClick={() => setBefore([...before, found.at(-1)!.number])}>
                    Older
                  </Button>
                </div>
              )}
            </section>
            {chosen && (
              <Drawer title={`Checkpoint ${chosen.number}`} open onClose={() => setChosen(null)}>
                <Content checkpoint={chosen} keys={integrity.keys} />
              </Drawer>
            )}
          </>
        )
      }
    </Answered>
  );
}

function Newest({ checkpoint, integrity }: { checkpoint: Checkpoint; integrity: Schemas["LogIntegrity"] }) {
  return (
    <Panel title="Newest checkpoint" actions={<Actions checkpoint={checkpoint} />}>
      {integrity.anchoredCheckpoint === null && (
        <p class="notice">
          <strong>No checkpoint is stored outside the database.</strong> Anyone with the database and the master key could rewrite the log unnoticed. Set{" "}
          <code>MEDIALEDGER_SEAL_FILE</code>, <code>MEDIALEDGER_SEAL_BUCKET</code> or <code>MEDIALEDGER_SEAL_TIMESTAMP_URL</code>, or download a checkpoint and store it elsewhere.
        </p>
      )}
      {integrity.anchoredCheckpoint !== null && integrity.anchoredCheckpoint !== undefined && integrity.anchoredCheckpoint < checkpoint.number && (
        <p class="notice">The newest checkpoint that is stored elsewhere is number {integrity.anchoredCheckpoint.toLocaleString("en")}.</p>
      )}
      <Content checkpoint={checkpoint} keys={integrity.keys} />
    </Panel>
  );
}

function Actions({ checkpoint }: { checkpoint: Checkpoint }) {
  return (
    <span class="links">
      <Button kind="quiet" onClick={() => save([checkpoint.note], `checkpoint-${checkpoint.number}.txt`, "text/plain;charset=utf-8")}>
        Download
      </Button>
      <Button kind="quiet" onClick={() => print()}>
        Print
      </Button>
    </span>
  );
}

function Content({ checkpoint, keys }: { checkpoint: Checkpoint; keys: readonly string[] }) {
  const signers = checkpoint.signedBy.map((id) => ({ id, known: keys.some((key) => key.split("+")[1] === id) }));
  return (
    <div class="checkpoint">
      <Facts
        facts={[
          ["Signed", <Time at={checkpoint.time} as="full" />],
          ["Holds", `${checkpoint.events.toLocaleString("en")} events in ${checkpoint.commits.toLocaleString("en")} commits`],
          ["Root", <code class="hash">{checkpoint.root}</code>],
          [
            "Signatures",
            <>
              {signers.map(({ id, known }) => (
                <span key={id} class="line">
                  key <code>{id}</code> {known ? "" : "– this key does not belong to the log"}
                </span>
              ))}
            </>,
          ],
          ["Hands over to", checkpoint.nextKey && <code class="hash">{checkpoint.nextKey}</code>],
          [
            "Kept by",
            checkpoint.anchors.length > 0 &&
              checkpoint.anchors.map((each) => (
                <span key={each.kind + each.place} class="line">
                  {ANCHORS[each.kind] ?? each.kind} <bdi>{each.place}</bdi>
                </span>
              )),
          ],
        ].map(([name, value]) => [name as string, value === false ? null : value] as const)}
      />
      <div class="json">
        <CopyButton text={checkpoint.note} label="Copy the checkpoint" />
        <pre tabIndex={0} role="region" aria-label="The checkpoint as it was signed">
          {checkpoint.note}
        </pre>
      </div>
    </div>
  );
}
