import { api, dataOf } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { to } from "../../kernel/router";
import { Answered, Time } from "../../parts";
import { historyOf, whoWord, type Entry } from "../audit/words";

/** The erased content of an aggregate, with its redactions. */
export function Erased({ entries, version }: { entries: readonly Entry[]; version: number }) {
  const told = entries.filter((each) => each.type.endsWith(".redacted") && typeof each.data["redaction"] === "string");
  if (told.length === 0) return null;
  return (
    <section class="erasures" aria-label="Erased content">
      {told.map((each) => (
        <Erasure key={each.version} told={each} entries={entries} version={version} />
      ))}
    </section>
  );
}

function Erasure({ told, entries, version }: { told: Entry; entries: readonly Entry[]; version: number }) {
  const id = String(told.data["redaction"]);
  const redaction = useQuery(`past log ${id}`, (signal) =>
    dataOf(api.GET("/api/audit/{aggregate}/{id}/state", { params: { path: { aggregate: "log", id } }, signal })),
  );
  return (
    <Answered query={redaction}>
      {(found) => {
        const lost = entries.filter((each) => covers(found.state["positions"], each.position)).map((each) => each.version);
        return (
          <div class="notice">
            <p>
              <strong>Content was erased</strong> of {lost.length === 1 ? "version" : "versions"} {ranges(lost)}
              {lost.includes(version) ? ", also of the one shown" : ""}, by <bdi>{whoWord(told)}</bdi>, <Time at={told.recordedAt} as="full" />.
            </p>
            <p>
              Reason: <bdi>{String(found.state["reason"] ?? "")}</bdi> · <a href={to(historyOf("log", id))}>Redaction</a>
            </p>
          </div>
        );
      }}
    </Answered>
  );
}

function covers(positions: unknown, position: number): boolean {
  return Array.isArray(positions) && positions.some((each) => Array.isArray(each) && each[0] <= position && position <= each[1]);
}

/** `1–3, 5`. */
export function ranges(numbers: readonly number[]): string {
  const found: [number, number][] = [];
  for (const each of numbers) {
    const last = found.at(-1);
    if (last && last[1] === each - 1) last[1] = each;
    else found.push([each, each]);
  }
  return found.map(([first, last]) => (first === last ? `${first}` : `${first}–${last}`)).join(", ");
}
