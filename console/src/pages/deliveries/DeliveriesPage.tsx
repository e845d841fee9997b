import "./deliveries.css";
import { useState } from "preact/hooks";
import { api, dataOf, type Schemas } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { useQueryState } from "../../kernel/router";
import type { StateWord } from "../../kernel/states";
import { Answered, Badge, Button, DataTable, EmptyState, PageHead, Tabs, Time, type Column } from "../../parts";
import { useTitles } from "../events/titles";
import { AllDeliveries } from "./AllDeliveries";
import { columnsOf, NextTry, STATES, type WebhookHealth } from "./columns";
import { DeliveryDrawer } from "./DeliveryDrawer";
import { EndpointActions } from "./EndpointActions";

const SIZE = 100;

/** Endpoints with the health of their deliveries, failing endpoints first; and the deliveries of all, or of the selected endpoint. */
export default function DeliveriesPage() {
  const { values, set } = useQueryState();
  const health = useQuery("webhook health", (signal) => dataOf(api.GET("/api/webhook/health", { signal })), {
    changes: { aggregates: ["webhook"] },
    every: 5000,
  });
  return (
    <>
      <PageHead title="Deliveries">
        <span class="faint">System-wide webhooks, failing webhooks first. The figures cover the last 24 hours.</span>
      </PageHead>
      <Answered query={health}>
        {(endpoints) => {
          const chosen = endpoints.find((each) => each.webhookId === values["webhook"]);
          return (
            <>
              <Endpoints endpoints={endpoints} chosen={chosen} onChoose={(webhook) => set({ webhook, delivery: "" })} stale={health.stale.value} />
              {chosen ? <Endpoint key={chosen.webhookId} endpoint={chosen} onDone={health.refresh} /> : <AllDeliveries endpoints={endpoints} onDone={health.refresh} />}
            </>
          );
        }}
      </Answered>
    </>
  );
}

/** The condition of an endpoint, in a word. */
export function conditionOf(endpoint: WebhookHealth): StateWord {
  if (endpoint.disabledAt) return { word: "Disabled", tone: "off" };
  if (endpoint.circuit === "open") return { word: "Resting", tone: "bad" };
  if (endpoint.failingSince) return { word: "Failing", tone: "bad" };
  if (endpoint.failed > 0) return { word: "Recovered", tone: "warn" };
  return endpoint.succeededAt ? { word: "Healthy", tone: "ok" } : { word: "Not used yet", tone: "neutral" };
}

/** The rate of the deliveries that ended within 24 hours. */
export function successRate(endpoint: Pick<WebhookHealth, "delivered" | "failed">): number | null {
  const all = endpoint.delivered + endpoint.failed;
  return all === 0 ? null : endpoint.delivered / all;
}

function percent(rate: number | null): string {
  if (rate === null) return "–";
  return rate === 1 ? "100 %" : `${(Math.floor(rate * 1000) / 10).toFixed(1)} %`;
}

interface EndpointsProps {
  endpoints: readonly WebhookHealth[];
  chosen: WebhookHealth | undefined;
  onChoose: (id: string) => void;
  stale: boolean;
}

function Endpoints({ endpoints, chosen, onChoose, stale }: EndpointsProps) {
  const columns: readonly Column<WebhookHealth>[] = [
    {
      key: "url",
      title: "Endpoint",
      cell: (each) => (
        <button
          type="button"
          class="row-link endpoint-name"
          tabIndex={-1}
          aria-pressed={each.webhookId === chosen?.webhookId}
          title={each.webhookUrl}
          onClick={() => onChoose(each.webhookId)}
        >
          <bdi>{each.webhookUrl}</bdi>
        </button>
      ),
      value: (each) => each.webhookUrl,
    },
    { key: "state", title: "Condition", width: "9rem", cell: (each) => <Badge state={conditionOf(each)} /> },
    { key: "rate", title: "Success 24 h", width: "7.5rem", align: "end", cell: (each) => percent(successRate(each)), value: successRate },
    { key: "pending", title: "Waiting", width: "5.5rem", align: "end", cell: (each) => (each.pending >= 1000 ? "1,000+" : each.pending), value: (each) => each.pending },
    { key: "oldest", title: "Oldest waits", width: "8rem", secondary: true, cell: (each) => <Time at={each.oldestPendingAt} as="relative" /> },
    { key: "since", title: "Failing since", width: "8rem", secondary: true, cell: (each) => <Time at={each.failingSince} as="relative" /> },
    { key: "next", title: "Next try", width: "9rem", secondary: true, cell: (each) => <NextTry at={each.nextTryAt} /> },
  ];
  return (
    <div class="endpoints">
      <DataTable
        caption="Endpoints"
        columns={columns}
        rows={endpoints}
        rowKey={(each) => each.webhookId}
        onRow={(each) => onChoose(each.webhookId)}
        stale={stale}
        empty={<EmptyState title="No system-wide webhook">POST /api/webhook/ adds one; it is notified of every change of every Event.</EmptyState>}
      />
    </div>
  );
}

function Endpoint({ endpoint, onDone }: { endpoint: WebhookHealth; onDone: () => void }) {
  const { values, set } = useQueryState();
  const usual = endpoint.pending > 0 && endpoint.failed === 0 ? "PENDING" : "FAILED";
  const [first] = useState(usual);
  const chosen = values["state"] ?? first;
  const state = chosen in STATES ? STATES[chosen as keyof typeof STATES] : undefined;
  const before = values["before"];
  const query = { pageSize: SIZE, state: state as Schemas["DeliveryStateInput"] | undefined, before };
  const path = { id: endpoint.webhookId };
  const deliveries = useQuery(
    `deliveries ${endpoint.webhookId} ${JSON.stringify(query)}`,
    (signal) => dataOf(api.GET("/api/webhook/{id}/deliveries/", { params: { path, query }, signal })),
    { every: 3000 },
  );
  const titles = useTitles((deliveries.data.value?.results ?? []).flatMap((each) => each.eventId ?? []));
  const done = (): void => {
    onDone();
    deliveries.refresh();
  };
  return (
    <section class="endpoint" aria-label={`Deliveries to ${endpoint.webhookUrl}`}>
      <header class="endpoint-head">
        <h2>
          <bdi>{endpoint.webhookUrl}</bdi>
        </h2>
        <Button kind="quiet" icon="left" onClick={() => set({ webhook: "", delivery: "", before: "" })}>
          All webhooks
        </Button>
        <EndpointActions endpoint={endpoint} onDone={done} />
      </header>
      <Condition endpoint={endpoint} />
      <Tabs
        label="Deliveries by state"
        tabs={[
          { key: "FAILED", title: "Failed", count: endpoint.failed, tone: "bad" },
          { key: "PENDING", title: "Waiting", count: endpoint.pending, tone: "busy" },
          { key: "DELIVERED", title: "Delivered", count: endpoint.delivered, tone: "ok" },
          { key: "all", title: "All" },
        ]}
        chosen={chosen}
        onChoose={(key) => set({ state: key, before: "", delivery: "" })}
        controls="deliveries-list"
      />
      <div id="deliveries-list" role="tabpanel" aria-label="Deliveries" class="deliveries-list">
        <Answered query={deliveries}>
          {(found) => (
            <>
              <DataTable
                caption="Deliveries"
                columns={columnsOf(titles)}
                rows={found.results}
                rowKey={(each) => each.id}
                onRow={(each) => set({ delivery: each.id, ...(before ? { before } : {}) })}
                list={deliveries.key}
                stale={deliveries.stale.value}
                empty={<EmptyState title={chosen === "FAILED" ? "Nothing has failed" : "No deliveries"}>No delivery of this webhook is in this state.</EmptyState>}
              />
              <nav class="pager" aria-label="Pages of deliveries">
                <span class="faint">{found.results.length} shown</span>
                {before && (
                  <Button kind="quiet" icon="left" onClick={() => set({ before: "" })}>
                    Newest
                  </Button>
                )}
                {found.next && (
                  <Button kind="quiet" icon="right" onClick={() => set({ before: found.results[found.results.length - 1]!.id })}>
                    Older
                  </Button>
                )}
              </nav>
            </>
          )}
        </Answered>
      </div>
      {values["delivery"] && <DeliveryDrawer key={values["delivery"]} endpoint={endpoint} id={values["delivery"]} onClose={() => set({ delivery: "" })} onDone={done} />}
    </section>
  );
}

/** Warnings about the endpoint. */
function Condition({ endpoint }: { endpoint: WebhookHealth }) {
  if (endpoint.disabledAt) {
    return (
      <p class="failure" role="status">
        Nothing is sent: disabled since&nbsp;
        <Time at={endpoint.disabledAt} /> “Enable” sends future notifications; “Recover” sends those that were omitted meanwhile.
      </p>
    );
  }
  if (!endpoint.failingSince) return null;
  return (
    <p class="failure" role="status">
      <span>
        <strong>Every attempt has failed since</strong> <Time at={endpoint.failingSince} />
        {endpoint.succeededAt ? (
          <>
            ; the last success was <Time at={endpoint.succeededAt} as="relative" />.
          </>
        ) : (
          "; none has ever succeeded."
        )}{" "}
        {endpoint.circuitUntil && (
          <>
            Its circuit breaker is open: nothing is sent until <Time at={endpoint.circuitUntil} />.{" "}
          </>
        )}
        A failing receiver is paused for a while: {endpoint.nextTryAt ? <>the next attempt is <NextTry at={endpoint.nextTryAt} />.</> : "no delivery is pending."}{" "}
        “Test” calls it immediately.
      </span>
    </p>
  );
}
