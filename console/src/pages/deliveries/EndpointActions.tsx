import { useState } from "preact/hooks";
import { answered, api, asFailure, found, ifMatch, type Schemas } from "../../kernel/api";
import { may } from "../../kernel/session";
import { toast, toastFailure } from "../../kernel/toasts";
import { Button, Confirm, CopyButton, Dialog, Facts, TimeField } from "../../parts";
import type { WebhookHealth } from "./columns";

interface EndpointActionsProps {
  endpoint: WebhookHealth;
  onDone: () => void;
}

type Asked = "recover" | "secret" | "enable" | "disable";

const NEEDS = "This needs the role operator or admin.";

/** The actions on an endpoint. */
export function EndpointActions({ endpoint, onDone }: EndpointActionsProps) {
  const [asked, setAsked] = useState<Asked | null>(null);
  const [since, setSince] = useState("");
  const [tested, setTested] = useState<Schemas["WebhookTest"] | null>(null);
  const [testing, setTesting] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  const path = { id: endpoint.webhookId };
  const refused = may("operator") ? null : NEEDS;
  const close = (): void => setAsked(null);

  const test = async (): Promise<void> => {
    setTesting(true);
    try {
      setTested((await answered(api.POST("/api/webhook/{id}/test/", { params: { path } }))).data);
    } catch (thrown) {
      toastFailure("Not tested", thrown);
    } finally {
      setTesting(false);
    }
  };
  const recover = async (): Promise<void> => {
    const at = new Date(since);
    if (since === "" || Number.isNaN(at.getTime())) throw asFailure(new Error("Enter a time."));
    const made = await answered(api.POST("/api/webhook/{id}/recover/", { params: { path, query: { since: at.toISOString() } } }));
    toast(made.data.requeued === 1 ? "1 delivery is sent again" : `${made.data.requeued} deliveries are sent again`);
    onDone();
  };
  const renew = async (): Promise<void> => {
    const made = await answered(api.POST("/api/webhook/{id}/secret/", { params: { path } }));
    setSecret(made.data.secret ?? "");
    onDone();
  };
  const enable = async (enabled: boolean): Promise<void> => {
    const { etag } = await found(api.GET("/api/webhook/{id}", { params: { path } }));
    const body = { disabledAt: enabled ? null : new Date().toISOString() } as Schemas["UpdateWebhookRequest"];
    await answered(api.PUT("/api/webhook/{id}", { params: { path }, headers: ifMatch(etag), body }));
    toast(enabled ? "The webhook is enabled" : "The webhook is disabled");
    onDone();
  };
  const off = (word: string, why: string | null): { disabled: boolean; label?: string } => (why ? { disabled: true, label: `${word}: ${why}` } : { disabled: false });
  const sends = refused ?? (endpoint.disabledAt ? "The webhook is disabled: enable it first." : null);
  return (
    <div class="page-actions">
      <Button busy={testing} {...off("Test", refused)} onClick={() => void test()}>
        Test
      </Button>
      <Button
        {...off("Recover", sends)}
        onClick={() => {
          setSince(local(endpoint.failingSince ?? endpoint.oldestPendingAt ?? null));
          setAsked("recover");
        }}
      >
        Recover
      </Button>
      <Button {...off("New secret", refused)} onClick={() => setAsked("secret")}>
        New secret
      </Button>
      <Button {...off(endpoint.disabledAt ? "Enable" : "Disable", refused)} onClick={() => setAsked(endpoint.disabledAt ? "enable" : "disable")}>
        {endpoint.disabledAt ? "Enable" : "Disable"}
      </Button>

      {asked === "recover" && (
        <Confirm title="Send failed deliveries again" action="Send again" open onClose={close} onConfirm={recover}>
          <p>
            All deliveries to <bdi>{endpoint.webhookUrl}</bdi> that failed since then are sent again, in order, including those omitted while it was disabled.
          </p>
          <TimeField label="Since" name="since" value={since} onInput={setSince} />
        </Confirm>
      )}
      {asked === "secret" && (
        <Confirm title="Make a new secret?" action="Make a new secret" danger open onClose={close} onConfirm={renew}>
          <p>
            Requests to <bdi>{endpoint.webhookUrl}</bdi> are signed with the new and the old secret for 24 hours, then with the new secret only. It is shown once.
          </p>
        </Confirm>
      )}
      {asked === "enable" && (
        <Confirm title="Enable the webhook?" action="Enable" open onClose={close} onConfirm={() => enable(true)}>
          <p>
            <bdi>{endpoint.webhookUrl}</bdi> is notified again from now on. “Recover” sends the omitted notifications.
          </p>
        </Confirm>
      )}
      {asked === "disable" && (
        <Confirm title="Disable the webhook?" action="Disable" danger open onClose={close} onConfirm={() => enable(false)}>
          <p>
            Nothing is sent to <bdi>{endpoint.webhookUrl}</bdi> until it is enabled again.
          </p>
        </Confirm>
      )}
      <Dialog title="The new secret" open={secret !== null} onClose={() => setSecret(null)} actions={<Button onClick={() => setSecret(null)}>I have stored it</Button>}>
        <p>It is not shown again. Give it to the receiver within 24 hours.</p>
        <p class="text">
          <code class="secret">{secret}</code>
          <CopyButton text={secret ?? ""} label="Copy the secret" />
        </p>
      </Dialog>
      <Dialog title={tested?.delivered ? "The receiver answered" : "The test was not delivered"} open={tested !== null} onClose={() => setTested(null)} actions={<Button onClick={() => setTested(null)}>Close</Button>}>
        {tested && (
          <div class="delivery">
            <Facts
              facts={[
                ["Answer", tested.status === null ? "none" : `HTTP ${tested.status}`],
                ["Error", tested.error && <bdi>{tested.error}</bdi>],
                ["Took", `${Math.round(tested.seconds * 1000)} ms`],
                ["Address", tested.address && <code>{tested.address}</code>],
              ]}
            />
            {tested.response && (
              <pre class="answer" tabIndex={0} aria-label="Answer of the receiver">
                {tested.response}
              </pre>
            )}
          </div>
        )}
      </Dialog>
    </div>
  );
}

/** Formats a time for a field of the browser, in its zone. */
function local(at: string | null): string {
  const when = at ? new Date(at) : new Date(Date.now() - 24 * 3600 * 1000);
  return new Date(when.getTime() - when.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
