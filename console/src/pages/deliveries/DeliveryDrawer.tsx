import { api, answered, found, type Schemas } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { eventPath, jobPath } from "../../kernel/router";
import { may } from "../../kernel/session";
import { DELIVERY_STATES, stateWord } from "../../kernel/states";
import { toast, toastFailure } from "../../kernel/toasts";
import { Answered, Badge, Button, CopyButton, Drawer, Facts, JsonView, Time } from "../../parts";
import { titleOr, useTitles } from "../events/titles";
import type { Delivery, WebhookHealth } from "./columns";

type Attempt = Schemas["DeliveryAttempt"];

interface DeliveryDrawerProps {
  endpoint: Pick<WebhookHealth, "webhookId" | "webhookUrl" | "disabledAt">;
  id: string;
  onClose: () => void;
  onDone: () => void;
}

const NUMBERS: Readonly<Record<string, number>> = { PENDING: 0, DELIVERED: 1, FAILED: 2 };

/** A delivery: its content, and every attempt with its answer. */
export function DeliveryDrawer({ endpoint, id, onClose, onDone }: DeliveryDrawerProps) {
  const path = { id: endpoint.webhookId, deliveryId: id };
  const delivery = useQuery(
    `delivery ${id}`,
    async (signal) => (await found(api.GET("/api/webhook/{id}/deliveries/{deliveryId}", { params: { path }, signal }))).data,
    { every: 2000 },
  );
  const resend = async (): Promise<void> => {
    try {
      await answered(api.POST("/api/webhook/{id}/deliveries/{deliveryId}/resend", { params: { path } }));
      toast("The delivery is sent again");
      delivery.refresh();
      onDone();
    } catch (thrown) {
      toastFailure("Not sent again", thrown);
    }
  };
  const known = delivery.data.value;
  const why = !may("operator")
    ? "This needs the role operator or admin."
    : endpoint.disabledAt
      ? "The webhook is disabled: enable it first."
      : known?.state === "PENDING"
        ? "It is already pending."
        : null;
  return (
    <Drawer
      title="Delivery"
      open
      onClose={onClose}
      actions={
        <>
          {why && <span class="faint">{why}</span>}
          <Button kind="primary" icon="refresh" disabled={why !== null || known === undefined} onClick={() => void resend()}>
            Resend
          </Button>
        </>
      }
    >
      <Answered query={delivery}>{(shown) => <Content delivery={shown} url={endpoint.webhookUrl} />}</Answered>
    </Drawer>
  );
}

function Content({ delivery, url }: { delivery: Delivery; url: string }) {
  const titles = useTitles(delivery.eventId === null ? [] : [delivery.eventId]);
  return (
    <div class="delivery">
      <Facts
        facts={[
          ["State", <Badge state={stateWord(DELIVERY_STATES, NUMBERS[delivery.state] ?? delivery.state)} />],
          ["Action", <bdi>{delivery.action}</bdi>],
          ["Event", delivery.eventId && <a href={eventPath(delivery.eventId)} title={delivery.eventId}><bdi>{titleOr(titles, delivery.eventId)}</bdi></a>],
          ["Job", delivery.jobId !== null && <a href={jobPath(delivery.jobId)}>{delivery.jobId}</a>],
          ["To", <bdi>{url}</bdi>],
          [
            "webhook-id",
            <span class="text">
              <code>{delivery.id}</code>
              <CopyButton text={delivery.id} />
            </span>,
          ],
          ["Created", <Time at={delivery.createdAt} as="full" />],
          ["Next try", delivery.dueAt && <Time at={delivery.dueAt} />],
          ["Ended", delivery.finishedAt && <Time at={delivery.finishedAt} as="full" />],
          ["Error", delivery.error && <bdi>{delivery.error}</bdi>],
        ]}
      />
      <h3>{delivery.attempts.length === 0 ? "Not attempted yet" : "Attempts, the latest first"}</h3>
      <ol class="tries">
        {[...delivery.attempts].reverse().map((each) => (
          <Try key={each.number} attempt={each} />
        ))}
      </ol>
      <h3>Request</h3>
      <JsonView value={delivery.payload} label="Request as JSON" />
    </div>
  );
}

function Try({ attempt }: { attempt: Attempt }) {
  return (
    <li>
      <p class="try-line">
        <strong>{attempt.number}</strong>
        <span class={attempt.error === null ? "try-good" : "try-bad"}>{attempt.status === null ? "no answer" : `HTTP ${attempt.status}`}</span>
        <Time at={attempt.startedAt} />
        <span>{attempt.seconds < 1 ? `${Math.round(attempt.seconds * 1000)} ms` : `${attempt.seconds.toFixed(1)} s`}</span>
        {attempt.address && <code>{attempt.address}</code>}
      </p>
      {attempt.error && (
        <p class="try-bad">
          <bdi>{attempt.error}</bdi>
        </p>
      )}
      {attempt.response && (
        <pre class="answer" tabIndex={0} aria-label={`Answer to attempt ${attempt.number}`}>
          {attempt.response}
        </pre>
      )}
    </li>
  );
}
