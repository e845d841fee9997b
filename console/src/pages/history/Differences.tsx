import { api, dataOf, type Schemas } from "../../kernel/api";
import { useQuery, type Query } from "../../kernel/query";
import { to } from "../../kernel/router";
import { Answered, EmptyState, Time } from "../../parts";
import { LONG, Value, itemWord } from "../audit/Value";
import type { Entry } from "../audit/words";
import { authorOfEntry, parts, rowsOf, type Row, type State } from "./differences";

/** The limit of the API above which authors are not shown. */
const MOST = 500;

export interface Comparison {
  kind: string;
  id: string;
  left: number;
  right: number;
  entries: readonly Entry[];
  before: State;
  after: State;
}

/** The differences between two versions, with their authors and requests. */
export function Differences(props: Comparison) {
  const { kind, id, left, right, entries, before, after } = props;
  const [low, high] = [Math.max(1, Math.min(left, right)), Math.max(left, right)];
  const isFar = high - low > MOST;
  const authors = useQuery(isFar || low === high ? null : `diff ${kind} ${id} ${low} ${high}`, (signal) =>
    dataOf(api.GET("/api/audit/{aggregate}/{id}/diff", { params: { path: { aggregate: kind, id }, query: { from: String(low), to: String(high) } }, signal })),
  );
  const first = left === 0 || right === 0 ? entries[0] : undefined;
  if (isFar || low === high) {
    return (
      <>
        {isFar && <p class="notice">More than {MOST} versions are between them: the authors of the changes are not shown.</p>}
        <Rows rows={rowsOf(before, after, [], first)} kind={kind} />
      </>
    );
  }
  return <WithAuthors authors={authors} {...props} first={first} />;
}

function WithAuthors({ authors, before, after, first, kind }: Comparison & { authors: Query<Schemas["AggregateDiff"]>; first: Entry | undefined }) {
  return <Answered query={authors}>{(found) => <Rows rows={rowsOf(before, after, found.changes, first)} kind={kind} />}</Answered>;
}

function Rows({ rows, kind }: { rows: readonly Row[]; kind: string }) {
  if (rows.length === 0) return <EmptyState title="No field differs">Both versions look the same in a GET. The list of versions shows the events.</EmptyState>;
  return (
    <table class="diff" aria-label="What differs">
      <thead>
        <tr>
          <th scope="col">Field</th>
          <th scope="col">Before</th>
          <th scope="col">After</th>
          <th scope="col">Author and time</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <OneRow key={row.field} row={row} kind={kind} />
        ))}
      </tbody>
    </table>
  );
}

function OneRow({ row, kind }: { row: Row; kind: string }) {
  const { author } = row;
  return (
    <tr>
      <th scope="row">{row.word}</th>
      <td class="before" data-side="Before">
        <Side row={row} kind={kind} side={0} />
      </td>
      <td class="after" data-side="After">
        <Side row={row} kind={kind} side={1} />
      </td>
      <td class="diff-who" data-side="By">
        {author ? <Who author={author} /> : <span class="faint">another record that is shown here</span>}
      </td>
    </tr>
  );
}

function Who({ author }: { author: ReturnType<typeof authorOfEntry> }) {
  return (
    <>
      <bdi>{author.who}</bdi>
      <span class="faint">
        version {author.version} · <Time at={author.at} as="full" />
      </span>
      <a href={to("/audit", { transaction: author.transactionId })}>Request</a>
    </>
  );
}

function Side({ row, kind, side }: { row: Row; kind: string; side: 0 | 1 }) {
  const { before, after, field } = row;
  const [value, other] = side === 0 ? [before, after] : [after, before];
  if (Array.isArray(value) && Array.isArray(other)) return <ListSide kind={kind} values={value} others={other} side={side} />;
  if (typeof value === "string" && typeof other === "string" && /\s/.test(value + other)) {
    const [head, changed, tail] = parts(value, other);
    const Mark = side === 0 ? "del" : "ins";
    return (
      <bdi class="long" tabIndex={value.length > LONG ? 0 : undefined}>
        {head}
        {changed && <Mark>{changed}</Mark>}
        {tail}
      </bdi>
    );
  }
  return <Value kind={kind} field={field} value={value} name={row.names[side]} />;
}

function ListSide({ kind, values, others, side }: { kind: string; values: readonly unknown[]; others: readonly unknown[]; side: 0 | 1 }) {
  const known = new Set(others.map((each) => JSON.stringify(each)));
  if (values.length === 0) return <span class="faint">none</span>;
  const Mark = side === 0 ? "del" : "ins";
  return (
    <ul class="value-list">
      {values.map((each, index) => (
        <li key={index}>
          <bdi>{known.has(JSON.stringify(each)) ? itemWord(kind, each) : <Mark>{itemWord(kind, each)}</Mark>}</bdi>
        </li>
      ))}
    </ul>
  );
}
