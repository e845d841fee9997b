import { api, dataOf } from "../kernel/api";
import { useQuery } from "../kernel/query";
import { may } from "../kernel/session";
import { Time } from "../parts";

const EVERY = 30_000;

/** The notice above every page while the installation is quiet: everything to be sent waits. */
export function QuietNote() {
  const key = may("viewer", "operator", "auditor", "admin") ? "quiet" : null;
  const order = useQuery(key, (signal) => dataOf(api.GET("/api/quiet/", { signal })), { changes: { aggregates: ["quiet"] }, every: EVERY });
  const found = order.data.value;
  if (!found?.quiet) return null;
  return (
    <p class="notice quiet-note" role="status">
      <strong>This installation is quiet</strong> since <Time at={found.since} />: nothing leaves it, and the schedule starts nothing
      {found.reason === null ? "." : ". Reason: "}
      {found.reason !== null && <bdi>{found.reason}</bdi>}
    </p>
  );
}
