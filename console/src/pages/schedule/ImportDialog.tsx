import { useEffect, useRef, useState } from "preact/hooks";
import { asFailure } from "../../kernel/failure";
import type { Step } from "../../kernel/runs";
import { Button, DataTable, Drawer, Progress, RunReport, type Column } from "../../parts";
import { COLUMNS as NAMES, changesOf, rowsOf, type Fields, type Row } from "./csv";
import type { Choices } from "../event/choices";
import { add, byReference, change, namesOf, type Changed } from "./events";
import { importing } from "./running";

const LARGEST = 5_000_000;
const AT_ONCE = 4;

/** A row with the effect of importing it. */
interface Planned {
  row: Row;
  known: Changed | null;
  changes: Fields;
}

interface Preview {
  planned: Planned[];
  looked: number;
  total: number;
}

/** Reads a CSV file, shows the effect of each row, and writes after confirmation. Reading writes nothing. */
export function ImportDialog({ choices, onClose, onDone }: { choices: Choices; onClose: () => void; onDone: () => void }) {
  const [problem, setProblem] = useState<string | null>(null);
  const [preview, setPreview] = useState<Preview | null>(null);
  const { running, total } = importing.state;
  const current = useRef(0);
  const batch = useRef(crypto.randomUUID());
  useEffect(() => () => void current.current++, []);
  const read = async (file: File | undefined): Promise<void> => {
    const turn = ++current.current;
    setProblem(null);
    setPreview(null);
    importing.reset();
    if (!file) return;
    try {
      if (file.size > LARGEST) throw new Error("The file is larger than 5 MB.");
      const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
      const rows = rowsOf(text, namesOf(choices));
      batch.current = crypto.randomUUID();
      await plan(rows, (next) => {
        if (turn === current.current) setPreview(next);
        return turn === current.current;
      });
    } catch (thrown) {
      if (turn === current.current) setProblem(thrown instanceof TypeError && !navigator.onLine ? "The server cannot be reached." : problemOf(thrown));
    }
  };
  const ready = preview !== null && preview.looked === preview.total;
  const good = preview?.planned.filter((each) => each.row.problems.length === 0) ?? [];
  const wrong = (preview?.planned.length ?? 0) - good.length;
  const due = good.filter((each) => Object.keys(each.changes).length > 0);
  const write = async (): Promise<void> => {
    setPreview(null);
    await importing.start(`Import of ${due.length} ${due.length === 1 ? "row" : "rows"}`, due.map((each) => stepOf(each, batch.current)));
    onDone();
  };
  return (
    <Drawer title="Import a schedule" open onClose={onClose}>
      <div class="stack">
        <p class="faint">
          A CSV file in UTF-8 with a head. Columns: {NAMES.join(", ")}. The reference identifies the Event of a row; unknown references are added. A missing column changes nothing, an empty cell
          clears. Times without a zone are local. Nothing is written before you confirm.
        </p>
        <input type="file" accept=".csv,text/csv" aria-label="CSV file" disabled={running} onChange={(event) => void read(event.currentTarget.files?.[0])} />
        {problem && (
          <p class="form-error" role="alert">
            {problem}
          </p>
        )}
        {preview && !ready && <Progress value={preview.looked} max={preview.total} label="Rows compared" />}
        {ready && total === 0 && (
          <>
            <p role="status">
              {due.filter((each) => each.known === null).length} to add, {due.filter((each) => each.known !== null).length} to change, {good.length - due.length} as they are, {wrong} with errors
              {wrong > 0 ? ", which are omitted" : ""}.
            </p>
            <div class="preview">
              <DataTable caption="Effects of the import" columns={COLUMNS} rows={preview.planned} rowKey={(each) => each.row.line} />
            </div>
          </>
        )}
        <RunReport run={importing} />
        {ready && total === 0 && (
          <div class="page-actions">
            <Button kind="primary" disabled={due.length === 0} onClick={() => void write()}>
              {`Write ${due.length} ${due.length === 1 ? "row" : "rows"}`}
            </Button>
          </div>
        )}
      </div>
    </Drawer>
  );
}

const COLUMNS: readonly Column<Planned>[] = [
  { key: "reference", title: "Reference", cell: ({ row }) => <bdi>{row.reference.slice(0, 100) || "–"}</bdi> },
  { key: "line", title: "Line", width: "4rem", cell: ({ row }) => row.line },
  { key: "what", title: "What happens", width: "60%", value: ({ row }) => -row.problems.length, cell: (each) => <span class={each.row.problems.length > 0 ? "wrong" : ""} title={outcome(each)}>{outcome(each)}</span> },
];

function outcome({ row, known, changes }: Planned): string {
  if (row.problems.length > 0) return row.problems.join("; ");
  if (known === null) return `Add ${row.title.slice(0, 100)}`;
  const names = Object.keys(changes);
  return names.length === 0 ? "Unchanged" : `Change ${names.join(", ")}`;
}

/** Finds the Event of each row, several at once. `tell` returns true to continue. */
async function plan(rows: readonly Row[], tell: (preview: Preview) => boolean): Promise<void> {
  const planned: Planned[] = [];
  for (let at = 0; at < rows.length; at += AT_ONCE) {
    const part = await Promise.all(rows.slice(at, at + AT_ONCE).map(plannedOf));
    planned.push(...part);
    if (!tell({ planned: [...planned], looked: planned.length, total: rows.length })) return;
  }
  if (rows.length === 0) throw new Error("The file has a head and no rows.");
}

async function plannedOf(row: Row): Promise<Planned> {
  if (row.problems.length > 0) return { row, known: null, changes: {} };
  const known = await byReference(row.reference);
  const changes = known === null ? row.fields : changesOf(row, known.event);
  return { row, known, changes };
}

/** The idempotency key of a row: the same row of the same file is added once, however often it is sent. */
function stepOf({ row, known, changes }: Planned, batch: string): Step {
  return {
    what: `Line ${row.line}, ${row.reference}`,
    act: async () => {
      if (known === null && (await byReference(row.reference)) !== null) throw new Error("it was added meanwhile; read the file again");
      if (known === null) await add(changes, `schedule-${batch}-${row.line}`);
      else await change(known.event.id, changes, known.etag);
      return known === null ? "added" : "changed";
    },
  };
}

function problemOf(thrown: unknown): string {
  if (thrown instanceof TypeError) return "The file is not UTF-8 text.";
  return asFailure(thrown).detail;
}
