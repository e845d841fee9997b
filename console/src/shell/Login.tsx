import { useState } from "preact/hooks";
import { Failure } from "../kernel/failure";
import { hasEnded, login } from "../kernel/session";
import { Button, Field, FormError, useSubmit } from "../parts";
import { Mark } from "./Mark";

/** Asks for an API key at the requested address, so that the requested page is shown afterwards. */
export function Login() {
  const [key, setKey] = useState("");
  document.title = "Sign in · medialedger";
  const { busy, failure, submit } = useSubmit(async () => {
    try {
      await login(key.trim());
    } catch (thrown) {
      if (thrown instanceof Failure && thrown.status === 401) throw new Failure(401, "This key is wrong, expired or revoked.");
      throw thrown;
    }
  });
  return (
    <main class="login">
      <form class="login-card" onSubmit={submit} aria-label="Sign in">
        <div class="login-mark">
          <Mark size={40} />
          <h1>medialedger</h1>
        </div>
        {hasEnded.value && (
          <p class="notice" role="status">
            Your session has ended. Sign in again to continue where you were.
          </p>
        )}
        <Field
          label="API key"
          name="apiKey"
          type="password"
          value={key}
          onInput={setKey}
          failure={failure}
          required
          autoFocus
          autoComplete="current-password"
          hint="It is sent once, for a session cookie that scripts cannot read."
        />
        <FormError failure={failure} shown={["apiKey"]} />
        <Button type="submit" kind="primary" busy={busy} disabled={key.trim() === ""}>
          Sign in
        </Button>
      </form>
    </main>
  );
}
