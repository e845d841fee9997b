import type { Failure } from "../../kernel/failure";
import { Button, Check, Field } from "../../parts";
import { RESOURCE_TYPES, type ProfileDraft, type ResourceDraft } from "./profile";

interface ProfileFieldsProps {
  draft: ProfileDraft;
  set: (draft: ProfileDraft) => void;
  editable: boolean;
  failure: Failure | null;
}

const KINDS = [
  ["static", "They already exist"],
  ["template", "A template makes them"],
] as const;
const NEW: ResourceDraft = { name: "", type: "origin", ipAddress: "", before: {} };

/** The configuration of a profile as fields. */
export function ProfileFields({ draft, set, editable, failure }: ProfileFieldsProps) {
  const change = (changed: Partial<ProfileDraft>): void => set({ ...draft, ...changed });
  const shared = { failure, disabled: !editable };
  const at = "configurationJson.request";
  return (
    <>
      <div class="pair">
        <Field label="Source of the resources" name={`${at}.options.deploymentType`} value={draft.deploymentType} onInput={(value) => change({ deploymentType: value as "static" })} options={KINDS} {...shared} />
        {draft.deploymentType === "template" && (
          <Field label="Template" name={`${at}.settings.template`} value={draft.template} onInput={(template) => change({ template })} autoComplete="off" hint="Empty: default" {...shared} />
        )}
        <Field label="Key" name={`${at}.infrastructureKey`} value={draft.infrastructureKey} onInput={(infrastructureKey) => change({ infrastructureKey })} autoComplete="off" hint="The key of the infrastructure. Empty: chosen by the product." {...shared} />
      </div>
      {editable && <Check label="Events share it" checked={draft.shared} onChange={(next) => change({ shared: next })} hint="By its key. Otherwise each Event has its own." />}
      {editable && <Check label="Change what exists" checked={draft.allowUpdates} onChange={(allowUpdates) => change({ allowUpdates })} hint="Otherwise only missing resources are provisioned." />}
      <fieldset class="resource-fields">
        <legend>Resources</legend>
        {draft.resources.map((each, index) => (
          <Resource
            key={index}
            of={each}
            place={index}
            editable={editable}
            failure={failure}
            set={(next) => change({ resources: draft.resources.map((other, place) => (place === index ? next : other)) })}
            remove={() => change({ resources: draft.resources.filter((_, place) => place !== index) })}
          />
        ))}
        {draft.resources.length === 0 && <p class="hint">Without resources nothing can be provisioned.</p>}
        {editable && (
          <p>
            <Button onClick={() => change({ resources: [...draft.resources, NEW] })}>Add resource</Button>
          </p>
        )}
      </fieldset>
      <Field label="Callback addresses" name={`${at}.callbackUrls`} lines={2} value={draft.callbackUrls} onInput={(callbackUrls) => change({ callbackUrls })} hint="One per line. They are called with the result of provisioning." {...shared} />
    </>
  );
}

interface ResourceProps {
  of: ResourceDraft;
  place: number;
  editable: boolean;
  failure: Failure | null;
  set: (next: ResourceDraft) => void;
  remove: () => void;
}

function Resource({ of, place, editable, failure, set, remove }: ResourceProps) {
  const at = `configurationJson.request.resources[${place}]`;
  const types = RESOURCE_TYPES.some((each) => each === of.type) ? RESOURCE_TYPES : [of.type, ...RESOURCE_TYPES];
  const shared = { failure, disabled: !editable };
  return (
    <div class="resource-line">
      <Field label={`Name of resource ${place + 1}`} name={`${at}.name`} value={of.name} onInput={(name) => set({ ...of, name })} required autoComplete="off" {...shared} />
      <Field label="Type" name={`${at}.type`} value={of.type} onInput={(type) => set({ ...of, type })} options={types.map((each) => [each, each] as const)} {...shared} />
      <Field label="IP address" name={`${at}.ipAddress`} value={of.ipAddress} onInput={(ipAddress) => set({ ...of, ipAddress })} autoComplete="off" {...shared} />
      {editable && <Button kind="quiet" icon="close" label={`Remove resource ${place + 1}`} onClick={remove} />}
    </div>
  );
}
