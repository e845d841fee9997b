import { api, dataOf, type Schemas } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { Answered, DataTable, PageHead, Time, type Column } from "../../parts";
import { Checkpoints } from "./Checkpoints";
import { TakeAway } from "./TakeAway";
import { VerifyPanel } from "./VerifyPanel";
import "../audit/value.css";
import "../audit/audit.css";
import "./integrity.css";

type Partition = Schemas["LogPartitionState"];

const PARTITIONS: readonly Column<Partition>[] = [
  { key: "positions", title: "Positions", cell: (one) => `${one.first.toLocaleString("en")} to ${one.last.toLocaleString("en")}` },
  { key: "events", title: "Events", width: "8rem", align: "end", cell: (one) => one.events.toLocaleString("en") },
  { key: "size", title: "Size", width: "7rem", align: "end", secondary: true, cell: (one) => size(one.bytes) },
  { key: "from", title: "From", width: "13rem", secondary: true, cell: (one) => <Time at={one.beginsAt} /> },
  { key: "seal", title: "Seal", width: "15rem", cell: (one) => <Seal partition={one} /> },
];

/** The integrity of the log: verification, checkpoints, files for auditors, and partitions. */
export default function IntegrityPage() {
  const integrity = useQuery("integrity", (signal) => dataOf(api.GET("/api/audit/integrity", { signal })), { every: 15_000 });
  return (
    <>
      <PageHead title="Integrity">
        <span class="faint">Is the log complete and unchanged, and how is that proven?</span>
      </PageHead>
      <Answered query={integrity}>
        {(found) => (
          <>
            <VerifyPanel integrity={found} />
            <Checkpoints integrity={found} />
            <TakeAway integrity={found} />
            <section aria-label="Partitions" class="checkpoint-list">
              <DataTable caption="Partitions of the log" columns={PARTITIONS} rows={[...found.partitions].reverse()} rowKey={(one) => one.first} />
            </section>
          </>
        )}
      </Answered>
    </>
  );
}

function Seal({ partition }: { partition: Partition }) {
  if (partition.sealedAt) {
    return (
      <span title={`Chain hash ${partition.chainHash ?? ""}`}>
        sealed <Time at={partition.sealedAt} />
      </span>
    );
  }
  const isFull = partition.events === partition.last - partition.first + 1;
  return <span class="faint">{isFull ? "full, not sealed: medialedger log seal" : "open"}</span>;
}

/** `12 kB`, `3.4 MB`. */
function size(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const power = Math.min(units.length - 1, bytes < 1 ? 0 : Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1000 ** power;
  return `${power > 0 && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[power]}`;
}
