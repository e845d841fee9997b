import { answered, api, dataOf, type Schemas } from "../../kernel/api";
import { usePages } from "../../kernel/pages";
import { useQueryState } from "../../kernel/router";
import { may } from "../../kernel/session";
import { toast, toastFailure } from "../../kernel/toasts";
import { Answered, Button, DataTable, EmptyState, FilterBar, Shown, Tabs, type Column, type Filter } from "../../parts";
import { useTitles } from "../events/titles";
import { columnsOf, STATES, type WebhookHealth } from "./columns";
import { DeliveryDrawer } from "./DeliveryDrawer";

type Delivery = Schemas["DeliveryOfWebhook"];

const SIZE = 100;
const MOST_RESENT = 100;
const FILTERS: readonly Filter[] = [
  {
    name: "kind",
    label: "About",
    kind: "choice",
    options: [
      ["event", "Events"],
      ["job", "Jobs"],
      ["infrastructure", "Infrastructure"],
      ["log", "Checkpoints"],
    ],
  },
  { name: "from", label: "Created from", kind: "date" },
  { name: "to", label: "Until", kind: "date" },
];
const ENDPOINT: Column<Delivery> = {
  key: "endpoint",
  title: "Endpoint",
  secondary: true,
  cell: (each) => <bdi title={each.webhookUrl}>{each.webhookUrl}</bdi>,
};

interface AllDeliveriesProps {
  endpoints: readonly WebhookHealth[];
  onDone: () => void;
}

/** The deliveries of all webhooks and callbacks, newest first. */
export function AllDeliveries({ endpoints, onDone }: AllDeliveriesProps) {
  const { values, set } = useQueryState();
  const chosen = values["state"] ?? "FAILED";
  const query = {
    pageSize: SIZE,
    state: (chosen in STATES ? STATES[chosen as keyof typeof STATES] : undefined) as Schemas["DeliveryStateInput"] | undefined,
    kind: values["kind"] as Schemas["DeliveryKind"] | undefined,
    from: instant(values["from"], "T00:00:00"),
    to: instant(values["to"], "T23:59:59.999"),
  };
  const deliveries = usePages<Delivery>(
    `all deliveries ${JSON.stringify(query)}`,
    async (before, signal) => {
      const found = await dataOf(api.GET("/api/webhook/deliveries/", { params: { query: { ...query, before: before ?? undefined } }, signal }));
      return { rows: found.results, next: found.next === null ? null : (found.results[found.results.length - 1]?.id ?? null) };
    },
    { every: 5000 },
  );
  const titles = useTitles((deliveries.data.value?.rows ?? []).flatMap((each) => each.eventId ?? []));
  const done = (): void => {
    onDone();
    deliveries.refresh();
  };
  const resend = async (ids: string[]): Promise<void> => {
    try {
      const { data } = await answered(api.POST("/api/webhook/deliveries/resend/", { body: { ids } }));
      const refused = data.results.find((each) => each.error !== null);
      toast(`${data.requeued} of ${ids.length} are sent again${refused ? `; the others were not: ${refused.error}` : ""}`);
      done();
    } catch (thrown) {
      toastFailure("Not sent again", thrown);
    }
  };
  const shown = deliveries.data.value?.rows.find((each) => each.id === values["delivery"]);
  const open = endpoints.find((each) => each.webhookId === values["of"]) ?? (shown && { ...shown, disabledAt: null });
  return (
    <section class="endpoint" aria-label="Deliveries of all webhooks">
      <Tabs
        label="Deliveries by state"
        tabs={[
          { key: "FAILED", title: "Failed", tone: "bad" },
          { key: "PENDING", title: "Waiting", tone: "busy" },
          { key: "DELIVERED", title: "Delivered", tone: "ok" },
          { key: "all", title: "All" },
        ]}
        chosen={chosen}
        onChoose={(key) => set({ state: key, delivery: "" })}
        controls="deliveries-list"
      />
      <FilterBar filters={FILTERS} />
      <div id="deliveries-list" role="tabpanel" aria-label="Deliveries" class="deliveries-list">
        <Answered query={deliveries}>
          {({ rows, more }) => {
            const failed = rows.filter((each) => each.state === "FAILED").slice(0, MOST_RESENT);
            return (
              <>
                {failed.length > 0 && may("operator") && (
                  <div class="page-actions">
                    <Button onClick={() => void resend(failed.map((each) => each.id))}>{failed.length === 1 ? "Send 1 failed again" : `Send ${failed.length} failed again`}</Button>
                  </div>
                )}
                <DataTable
                  caption="Deliveries of all webhooks"
                  columns={[ENDPOINT, ...columnsOf(titles)]}
                  rows={rows}
                  rowKey={(each) => each.id}
                  onRow={(each) => set({ delivery: each.id, of: each.webhookId })}
                  list={deliveries.key}
                  stale={deliveries.stale.value}
                  empty={<EmptyState title={chosen === "FAILED" ? "Nothing has failed" : "No deliveries"}>No delivery of any webhook matches.</EmptyState>}
                  onEnd={deliveries.extend}
                />
                <Shown count={rows.length} more={more} />
              </>
            );
          }}
        </Answered>
      </div>
      {values["delivery"] && open && <DeliveryDrawer key={values["delivery"]} endpoint={open} id={values["delivery"]} onClose={() => set({ delivery: "", of: "" })} onDone={done} />}
    </section>
  );
}

/** A day in the user's zone. An edited address may hold no date. */
function instant(day: string | undefined, time: string): string | undefined {
  const at = day ? new Date(`${day}${time}`) : null;
  return at === null || Number.isNaN(at.getTime()) ? undefined : at.toISOString();
}
