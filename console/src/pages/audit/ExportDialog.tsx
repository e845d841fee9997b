import { useEffect, useRef, useState } from "preact/hooks";
import { asFailure } from "../../kernel/failure";
import { toast, toastFailure } from "../../kernel/toasts";
import { Button, Dialog, Progress } from "../../parts";
import { CSV_HEAD, csvOf, ndjsonOf, save } from "./files";
import { pages, type Filters } from "./useLog";

/** Maximum number of entries in a file made by the browser. */
export const MOST = 10_000;

interface ExportDialogProps {
  filters: Filters;
  ascending: boolean;
  onClose: () => void;
}

/** Files of the log: the verifiable export of the server, or the matching entries as a table. */
export function ExportDialog({ filters, ascending, onClose }: ExportDialogProps) {
  const [read, setRead] = useState<number | null>(null);
  const end = useRef<AbortController | null>(null);
  useEffect(() => () => end.current?.abort(), []);
  const make = async (form: "csv" | "ndjson"): Promise<void> => {
    const own = new AbortController();
    end.current = own;
    const [write, type] = form === "csv" ? [csvOf, "text/csv;charset=utf-8"] : [ndjsonOf, "application/x-ndjson"];
    const found: string[] = form === "csv" ? [CSV_HEAD] : [];
    let count = 0;
    setRead(0);
    try {
      for await (const entries of pages(filters, ascending, MOST, own.signal)) {
        found.push(write(entries));
        count += entries.length;
        setRead(count);
      }
      save(found, `audit.${form}`, type);
      toast(`${count.toLocaleString("en")} entries were written`, count >= MOST ? "warn" : "ok", count >= MOST ? `Only the first ${MOST.toLocaleString("en")}: choose a shorter time for the rest.` : undefined);
    } catch (thrown) {
      if (!own.signal.aborted) toastFailure("The file could not be made", asFailure(thrown));
    } finally {
      setRead(null);
    }
  };
  const { aggregate, from, to } = filters;
  const rest = [filters.id && "id", filters.type && "type", filters.actor && "who", filters.transactionId && "request"].filter(Boolean);
  const query = new URLSearchParams(Object.entries({ aggregate, from, to }).filter((each): each is [string, string] => each[1] !== undefined));
  return (
    <Dialog title="Export" open onClose={onClose}>
      <div class="export">
        <section>
          <h3>The log for verify.py</h3>
          <p>
            By the server, of any size{query.size > 0 ? ", of the kind and the time chosen" : ", all of it"}.{" "}
            {rest.length > 0 && `The filters ${rest.join(", ")} do not apply. `}
            {aggregate ? "An export of one kind has gaps, so verify.py cannot verify it." : "It can be verified without the product."}
          </p>
          <a class="button" href={`/api/audit/export?${query}`} download="log.ndjson">
            Download NDJSON
          </a>
        </section>
        <section>
          <h3>The matching entries as a table</h3>
          <p>By this browser, {MOST.toLocaleString("en")} entries at most.</p>
          {read === null ? (
            <span class="links">
              <Button onClick={() => void make("csv")}>Make CSV</Button>
              <Button onClick={() => void make("ndjson")}>Make NDJSON</Button>
            </span>
          ) : (
            <>
              <Progress value={read} max={MOST} label="Entries read" />
              <span class="links">
                <span>{read.toLocaleString("en")} entries</span>
                <Button onClick={() => end.current?.abort()}>Cancel</Button>
              </span>
            </>
          )}
        </section>
      </div>
    </Dialog>
  );
}
