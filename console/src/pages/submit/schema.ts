/** Fields of a form, generated from a JSON Schema of parameters, and their typed values. */

import { Failure, type FieldProblem } from "../../kernel/failure";

export type Kind = "text" | "number" | "flag" | "list" | "json" | "choice";

export interface FormField {
  name: string;
  label: string;
  kind: Kind;
  required: boolean;
  about: string;
  /** An example of the value. */
  example: string;
  options: readonly string[];
  /** The default value. */
  initial: unknown;
  /** A list of numbers. */
  ofNumbers: boolean;
}

interface Schema {
  type?: string;
  description?: string;
  default?: unknown;
  examples?: unknown[];
  enum?: unknown[];
  anyOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
}

/** Returns the fields: required fields first, rarely needed fields of all workflows last. */
export function fieldsOf(given: unknown): FormField[] {
  const schema = (given ?? {}) as Schema;
  const example = (schema.examples?.[0] ?? {}) as Record<string, unknown>;
  const fields = Object.entries(schema.properties ?? {}).map(([name, property]) => fieldOf(name, property, schema.required?.includes(name) ?? false, example[name]));
  const rank = (field: FormField): number => (field.required ? 0 : RARE.includes(field.name) ? 2 : 1);
  return fields.sort((one, other) => rank(one) - rank(other));
}

const RARE = ["custom_data", "callback_urls"];

function fieldOf(name: string, given: Schema, required: boolean, example: unknown): FormField {
  const property = { ...given, ...given.anyOf?.find((each) => each.type !== "null") };
  const shown = example ?? property.examples?.[0];
  return {
    name,
    label: name.replaceAll("_", " ").replace(/^./, (first) => first.toUpperCase()),
    kind: kindOf(property),
    required,
    about: given.description ?? "",
    example: shown === undefined ? "" : typed(shown, kindOf(property)),
    options: (property.enum ?? []).map(String),
    initial: given.default,
    ofNumbers: property.items?.type === "integer" || property.items?.type === "number",
  };
}

function kindOf(property: Schema): Kind {
  if (property.enum) return "choice";
  switch (property.type) {
    case "string":
      return "text";
    case "integer":
    case "number":
      return "number";
    case "boolean":
      return "flag";
    case "array":
      return ["string", "integer", "number"].includes(property.items?.type ?? "") ? "list" : "json";
    default:
      return "json";
  }
}

/** Formats a value as it is typed. */
export function typed(value: unknown, kind: Kind): string {
  if (value === null || value === undefined) return "";
  if (kind === "list") return (value as unknown[]).join("\n");
  return kind === "json" ? JSON.stringify(value, null, 2) : String(value);
}

/** Returns the typed parameters without empty ones. An invalid value is a problem of its field. */
export function parametersOf(fields: readonly FormField[], texts: Readonly<Record<string, string>>): { value: Record<string, unknown>; problems: FieldProblem[] } {
  const value: Record<string, unknown> = {};
  const problems: FieldProblem[] = [];
  for (const field of fields) {
    const text = (texts[field.name] ?? "").trim();
    if (text === "") continue;
    try {
      value[field.name] = read(field, text);
    } catch (thrown) {
      problems.push({ field: `parameters.${field.name}`, message: (thrown as Error).message });
    }
  }
  return { value, problems };
}

function read(field: FormField, text: string): unknown {
  switch (field.kind) {
    case "number":
      return number(text);
    case "flag":
      return text === "true";
    case "list": {
      const lines = text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
      return field.ofNumbers ? lines.map(number) : lines;
    }
    case "json":
      try {
        return JSON.parse(text);
      } catch {
        throw new Error("is not JSON; put a text in double quotes");
      }
    default:
      return text;
  }
}

function number(text: string): number {
  const found = Number(text);
  if (!Number.isFinite(found)) throw new Error(`${text.slice(0, 40)} is not a number`);
  return found;
}

/** Splits the sentence of the engine, which lists all problems: `parameters.url: is required; job.priority: 1 to 10`. */
export function withFields(failure: Failure): Failure {
  if (failure.fields.length > 0) return failure;
  const found = [...`; ${failure.detail}`.matchAll(/; ((?:parameters|job)\.[\w.[\]]+): (.*?)(?=; (?:parameters|job)\.|$)/g)];
  if (found.length === 0) return failure;
  const fields = found.map((each) => ({ field: fieldName(each[1]!), message: each[2]! }));
  return new Failure(failure.status, "The request is invalid.", fields, failure.transactionId);
}

/** Maps a problem of a part of a value to the value. */
const fieldName = (path: string): string => path.split(".").slice(0, 2).join(".").replace(/\[.*/, "");
