import { useState } from "preact/hooks";
import { answered, api, dataOf, type Schemas } from "../../../kernel/api";
import { useQuery } from "../../../kernel/query";
import { useHere } from "../../../kernel/here";
import { may } from "../../../kernel/session";
import { DELIVERY_STATES, stateWord } from "../../../kernel/states";
import { toast, toastFailure } from "../../../kernel/toasts";
import { Answered, Badge, Button, Confirm, DataTable, Drawer, EmptyState, Facts, JsonView, Panel, Time, type Column } from "../../../parts";
import type { TabProps } from "./props";

type Delivery = Schemas["Delivery"];
interface Row {
  delivery: Delivery;
  address: string;
}
const NUMBERS: Readonly<Record<string, number>> = { PENDING: 0, DELIVERED: 1, FAILED: 2 };
/** Number of deliveries of each webhook. */
const MOST = 50;

/** The deliveries about an Event, of its own webhooks and of system-wide webhooks. */
export default function Deliveries({ event }: TabProps) {
  const [opened, setOpened] = useState<Row | null>(null);
  const [asked, setAsked] = useState(false);
  const deliveries = useQuery(`deliveries of ${event.id}`, (signal) => read(event.id, signal), { changes: { aggregates: ["event", "webhook"], ids: [event.id] }, every: 5000 });
  const columns: Column<Row>[] = [
    { key: "address", title: "Webhook", cell: ({ address }) => <bdi title={address}>{address}</bdi> },
    { key: "state", title: "State", width: "9rem", cell: ({ delivery }) => <Badge state={stateOf(delivery)} /> },
    { key: "action", title: "Told", width: "8rem", secondary: true, cell: ({ delivery }) => delivery.action },
    { key: "created", title: "Created", width: "12rem", value: ({ delivery }) => delivery.position, cell: ({ delivery }) => <Time at={delivery.createdAt} /> },
    { key: "tries", title: "Tries", width: "5rem", secondary: true, align: "end", cell: ({ delivery }) => delivery.attempts.length },
  ];
  return (
    <Panel title="Deliveries" actions={may("operator") && <Button onClick={() => setAsked(true)}>Notify now</Button>}>
      <Answered query={deliveries}>
        {({ rows, webhooks }) => (
          <DataTable
            caption="Deliveries about this Event"
            columns={columns}
            rows={rows}
            rowKey={({ delivery }) => delivery.id}
            onRow={setOpened}
            stale={deliveries.stale.value}
            empty={<EmptyState title="No deliveries">{webhooks === 0 ? "There are no webhooks of the system or of this Event." : "No notification about this Event has been sent yet."}</EmptyState>}
          />
        )}
      </Answered>
      {opened && <DeliveryDrawer key={opened.delivery.id} row={opened} onClose={() => setOpened(null)} done={deliveries.refresh} />}
      <Confirm
        title="Notify now"
        action="Notify"
        open={asked}
        onClose={() => setAsked(false)}
        onConfirm={async () => {
          await answered(api.POST("/api/webhook/notify/{eventId}", { params: { path: { eventId: event.id } } }));
          toast("All webhooks are notified");
          deliveries.refresh();
        }}
      >
        <p>All webhooks of the system and of this Event receive its current state, marked as forced.</p>
      </Confirm>
    </Panel>
  );
}

async function read(eventId: string, signal: AbortSignal): Promise<{ rows: Row[]; webhooks: number }> {
  const [system, own] = await Promise.all([
    dataOf(api.GET("/api/webhook/", { signal })),
    dataOf(api.GET("/api/webhook/event/{eventId}", { params: { path: { eventId } }, signal })),
  ]);
  const webhooks = [...(own ?? []), ...(system ?? [])];
  const found = await Promise.all(
    webhooks.map(async ({ id, webhookUrl }) => {
      const page = await dataOf(api.GET("/api/webhook/{id}/deliveries/", { params: { path: { id }, query: { eventId, pageSize: MOST } }, signal }));
      return page.results.map((delivery) => ({ delivery, address: webhookUrl }));
    }),
  );
  return { rows: found.flat().sort((one, other) => other.delivery.position - one.delivery.position), webhooks: webhooks.length };
}

const stateOf = (delivery: Delivery) => stateWord(DELIVERY_STATES, NUMBERS[delivery.state] ?? delivery.state);

function DeliveryDrawer({ row: { delivery, address }, onClose, done }: { row: Row; onClose: () => void; done: () => void }) {
  const [busy, setBusy] = useState(false);
  const here = useHere();
  const resend = async (): Promise<void> => {
    setBusy(true);
    try {
      const path = { id: delivery.webhookId, deliveryId: delivery.id };
      await answered(api.POST("/api/webhook/{id}/deliveries/{deliveryId}/resend", { params: { path } }));
      toast("It is sent again");
      done();
      if (here()) onClose();
    } catch (thrown) {
      toastFailure("It is not sent again", thrown);
    } finally {
      setBusy(false);
    }
  };
  const actions = may("operator") && delivery.state !== "PENDING" && (
    <Button kind="primary" busy={busy} onClick={() => void resend()}>
      Send again
    </Button>
  );
  return (
    <Drawer title="Delivery" open onClose={onClose} actions={actions}>
      <div class="stack">
        <Facts
          facts={[
            ["Webhook", <bdi>{address}</bdi>],
            ["State", <Badge state={stateOf(delivery)} />],
            ["Created", <Time at={delivery.createdAt} as="full" />],
            ["Next try", <Time at={delivery.dueAt} />],
            ["Error", delivery.error && <bdi>{delivery.error}</bdi>],
          ]}
        />
        <h3 class="part-title">Tries</h3>
        {delivery.attempts.length === 0 && <p class="faint">It has not been attempted yet.</p>}
        <ol class="attempts">
          {delivery.attempts.map((each) => (
            <li key={each.number}>
              <Time at={each.startedAt} as="full" />, {each.seconds.toFixed(2)} s, {each.status === null ? "no answer" : `status ${each.status}`}
              {each.error && (
                <>
                  : <bdi>{each.error}</bdi>
                </>
              )}
              {each.response && <pre tabIndex={0}>{each.response}</pre>}
            </li>
          ))}
        </ol>
        <h3 class="part-title">Content</h3>
        <JsonView value={delivery.payload} label="Notification as JSON" />
      </div>
    </Drawer>
  );
}
