import { api, dataOf } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { useQueryState } from "../../kernel/router";
import { Answered, DataTable, EmptyState, FilterBar, Pager, Panel, Time, type Column } from "../../parts";
import type { Schemas } from "../../kernel/api";

const SIZE = 100;
const COLUMNS: readonly Column<Schemas["ContentKey"]>[] = [
  { key: "kid", title: "Key id", cell: (key) => <code>{key.kid}</code> },
  { key: "client", title: "Client", width: "10rem", cell: (key) => <bdi>{key.client}</bdi> },
  { key: "period", title: "Period", width: "6rem", secondary: true, cell: (key) => key.period },
  { key: "issued", title: "Issued", width: "12rem", cell: (key) => <Time at={key.issuedAt} /> },
  { key: "answers", title: "Given out", width: "6rem", align: "end", cell: (key) => key.answers },
  { key: "last", title: "Last issued", width: "12rem", secondary: true, cell: (key) => <Time at={key.lastAnsweredAt} /> },
  { key: "systems", title: "DRM systems", width: "12rem", secondary: true, cell: (key) => key.systems.join(", ") },
];

/** The content keys of a content id. A key itself is never shown. */
export function ContentKeys() {
  const { values, set } = useQueryState();
  const contentId = (values["content"] ?? "").slice(0, 256);
  const pageNumber = Math.max(1, Number(values["page"]) || 1);
  const query = { contentId, pageSize: SIZE, pageNumber };
  const keys = useQuery(contentId === "" ? null : `content keys ${contentId} ${pageNumber}`, (signal) => dataOf(api.GET("/api/contentkey/", { params: { query }, signal })), {
    changes: { aggregates: ["content_key"] },
  });
  return (
    <Panel title="Content keys">
      <div class="client">
        <FilterBar label="Content id of keys" filters={[{ name: "content", label: "Content id", kind: "search" }]} />
        {contentId === "" ? (
          <p class="faint">Give the content id of an Event to list its keys. Keys themselves are never shown.</p>
        ) : (
          <Answered query={keys}>
            {(page) => (
              <>
                <DataTable
                  caption="Content keys"
                  columns={COLUMNS}
                  rows={page.results}
                  rowKey={(key) => key.id}
                  stale={keys.stale.value}
                  empty={<EmptyState title="No content keys">There are none for this content id. It is compared exactly.</EmptyState>}
                />
                {page.totalCount > SIZE && <Pager page={pageNumber} pageSize={SIZE} total={page.totalCount} onPage={(next) => set({ page: String(next) })} />}
              </>
            )}
          </Answered>
        )}
      </div>
    </Panel>
  );
}
