/** The configuration of an infrastructure profile as the fields of a form. */

import type { Schemas } from "../../kernel/api";

export type Profile = Schemas["InfrastructureProfile"];

export interface ResourceDraft {
  name: string;
  type: string;
  ipAddress: string;
  /** The resource as it was read, whose other members are preserved. */
  before: Readonly<Record<string, unknown>>;
}

export interface ProfileDraft {
  /** `static`: the resources exist already. */
  deploymentType: "static" | "template";
  template: string;
  infrastructureKey: string;
  /** Events share the infrastructure by its key; otherwise each has its own. */
  shared: boolean;
  allowUpdates: boolean;
  callbackUrls: string;
  resources: readonly ResourceDraft[];
}

export const RESOURCE_TYPES = ["origin", "encoder", "router", "source", "convertor", "unspecified"] as const;
export const EMPTY = '{"request": {"options": {"deploymentType": "static"}, "resources": []}, "workflow": {}}';
/** The template of a profile that names none. */
const DEFAULT = "default";

type Members = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Members => typeof value === "object" && value !== null && !Array.isArray(value);
const object = (value: unknown): Members => (isObject(value) ? value : {});
const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** Parses the object in a text; null if there is none. */
export function parsed(json: string): Members | null {
  try {
    const found: unknown = JSON.parse(json);
    return isObject(found) ? found : null;
  } catch {
    return null;
  }
}

/** Returns the fields; null if the text holds no JSON object. Enumerations of the API ignore case. */
export function draftOf(json: string): ProfileDraft | null {
  const whole = parsed(json);
  if (whole === null) return null;
  const request = object(whole["request"]);
  const options = object(request["options"]);
  const resources = Array.isArray(request["resources"]) ? request["resources"] : [];
  return {
    deploymentType: text(options["deploymentType"]).toLowerCase() === "template" ? "template" : "static",
    template: text(object(request["settings"])["template"]),
    infrastructureKey: text(request["infrastructureKey"]),
    shared: isShared(options),
    allowUpdates: options["allowUpdates"] === true,
    callbackUrls: (Array.isArray(request["callbackUrls"]) ? request["callbackUrls"] : []).map(text).join("\n"),
    resources: resources.map(object).map((each) => ({ name: text(each["name"]), type: text(each["type"]).toLowerCase(), ipAddress: text(each["ipAddress"]), before: each })),
  };
}

/** Returns `json` with the values of the form. Unknown members are preserved, and absent members stay absent while their field is empty. */
export function written(json: string, draft: ProfileDraft): string {
  const whole = parsed(json) ?? {};
  const request = object(whole["request"]);
  const options = object(request["options"]);
  const { template: _, ...others } = object(request["settings"]);
  const template = draft.deploymentType === "template" ? draft.template.trim() : "";
  const settings = template ? { ...others, template } : others;
  const urls = draft.callbackUrls.split("\n").map((each) => each.trim()).filter(Boolean);
  const written = {
    ...set(request, "infrastructureKey", draft.infrastructureKey.trim()),
    ...(Object.keys(settings).length > 0 || request["settings"] !== undefined ? { settings } : {}),
    ...(urls.length > 0 || request["callbackUrls"] !== undefined ? { callbackUrls: urls } : {}),
    options: { ...options, ...mode(options, draft.shared), ...flag(options, draft.allowUpdates), deploymentType: draft.deploymentType },
    resources: draft.resources.map(({ name, type, ipAddress, before }) => ({ ...before, name: name.trim(), type, ...set(pick(before), "ipAddress", ipAddress.trim()) })),
  };
  return JSON.stringify({ ...whole, request: written, workflow: object(whole["workflow"]) });
}

/** Returns the template and the number of resources; null if the text holds no JSON object. */
export function templateOf(json: string): { template: string | null; resources: number } | null {
  const draft = draftOf(json);
  if (draft === null) return null;
  return { template: draft.deploymentType === "template" ? draft.template || DEFAULT : null, resources: draft.resources.length };
}

/** Sets a member. An empty value becomes null if the member existed, and stays absent otherwise. */
function set(members: Members, name: string, value: string): Members {
  if (value) return { ...members, [name]: value };
  return name in members ? { ...members, [name]: null } : members;
}

const pick = (before: Members): Members => ("ipAddress" in before ? { ipAddress: before["ipAddress"] } : {});
const isShared = (options: Members): boolean => text(options["isolationMode"]).toLowerCase() === "byinfrastructure";
const mode = (options: Members, shared: boolean): Members => (shared === isShared(options) ? {} : { isolationMode: shared ? "byInfrastructure" : "byEvent" });
const flag = (options: Members, on: boolean): Members => (on || options["allowUpdates"] === true ? { allowUpdates: on } : {});
