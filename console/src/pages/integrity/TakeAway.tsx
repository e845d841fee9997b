import { useState } from "preact/hooks";
import { api, dataOf, type Schemas } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { CopyButton, Field, Panel } from "../../parts";
import { save } from "../audit/files";
import { kindWord } from "../audit/words";

/** The files for an auditor, and the three commands that verify them without the product. */
export function TakeAway({ integrity }: { integrity: Schemas["LogIntegrity"] }) {
  const key = integrity.keys.at(-1);
  const commands = [
    ["Two checkpoints are of one history", "python3 verify.py checkpoints older.txt checkpoint.txt proof.json --key \"$(cat key.txt)\""],
    ["The history of one object is complete", "python3 verify.py stream stream.ndjson --key \"$(cat key.txt)\" --kept checkpoint.txt --show"],
    ["The whole log", "python3 verify.py log log.ndjson --key \"$(cat key.txt)\" --kept checkpoint.txt"],
  ] as const;
  return (
    <Panel title="Verify without the product">
      <div class="take-away">
        <ol class="steps">
          <li>
            Download the program once, and review it:{" "}
            <a href="/api/audit/verifier" download="verify.py">
              verify.py
            </a>
          </li>
          <li>
            Download the public key once, and store it where no one in the company can change it:{" "}
            {key ? (
              <button type="button" class="as-link" onClick={() => save([`${key}\n`], "key.txt", "text/plain;charset=utf-8")}>
                key.txt
              </button>
            ) : (
              <span class="faint">there is none before the first checkpoint</span>
            )}
          </li>
          <li>
            Take a checkpoint:{" "}
            <a href="/api/audit/checkpoint" download="checkpoint.txt">
              checkpoint.txt
            </a>
            , and the log:{" "}
            <a href="/api/audit/export" download="log.ndjson">
              log.ndjson
            </a>
            , or the history of one object:
          </li>
        </ol>
        <OneStream />
        <Continuation />
        <dl class="commands">
          {commands.map(([what, command]) => (
            <div key={what}>
              <dt>{what}</dt>
              <dd>
                <code>{command}</code>
                <CopyButton text={command} label={`Copy the command: ${what}`} />
              </dd>
            </div>
          ))}
        </dl>
      </div>
    </Panel>
  );
}

/** The history of one object with its proofs. */
function OneStream() {
  const kinds = useQuery("audit kinds", (signal) => dataOf(api.GET("/api/audit/kinds", { signal })));
  const [kind, setKind] = useState("event");
  const [id, setId] = useState("");
  const options = (kinds.data.value ?? [{ aggregate: "event" }]).map((each) => [each.aggregate, kindWord(each.aggregate)] as const);
  const query = new URLSearchParams({ aggregate: kind, id: id.trim() });
  return (
    <div class="one-stream">
      <Field label="Kind" name="aggregate" value={kind} onInput={setKind} options={options} />
      <Field label="Id" name="id" value={id} onInput={setId} />
      {id.trim() === "" ? (
        <span class="faint">Enter an id for stream.ndjson</span>
      ) : (
        <a href={`/api/audit/export?${query}`} download="stream.ndjson">
          stream.ndjson
        </a>
      )}
    </div>
  );
}

/** The proof that the newest checkpoint continues one that the auditor stored. */
function Continuation() {
  const [size, setSize] = useState("");
  const isSize = /^[1-9]\d*$/.test(size.trim());
  return (
    <div class="one-stream">
      <Field label="Commits of the older checkpoint: its second line" name="from" value={size} onInput={setSize} type="number" />
      {isSize ? (
        <a href={`/api/audit/proof/consistency?from=${size.trim()}`} download="proof.json">
          proof.json
        </a>
      ) : (
        <span class="faint">Enter its size for proof.json</span>
      )}
    </div>
  );
}
