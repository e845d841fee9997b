import { expect, test } from "vitest";
import { Failure } from "../../kernel/failure";
import { fieldsOf, parametersOf, withFields } from "./schema";

const SCHEMA = {
  properties: {
    custom_data: { default: null },
    size: { anyOf: [{ minimum: 0, type: "integer" }, { type: "null" }], default: null, description: "Bytes." },
    url: { type: "string" },
    sides: { anyOf: [{ items: { type: "integer" }, type: "array" }, { type: "null" }], examples: [[720, 360]] },
    exact: { type: "boolean", default: false },
    way: { enum: ["fast", "slow"] },
  },
  required: ["url"],
  examples: [{ url: "https://a.example/b.mp4" }],
};

test("a form is made of the schema, what is required first", () => {
  const fields = fieldsOf(SCHEMA);
  expect(fields.map((field) => [field.name, field.kind])).toEqual([
    ["url", "text"], ["size", "number"], ["sides", "list"], ["exact", "flag"], ["way", "choice"], ["custom_data", "json"],
  ]);
  expect([fields[0]!.example, fields[2]!.example, fields[1]!.about]).toEqual(["https://a.example/b.mp4", "720\n360", "Bytes."]);
});

test("what is typed becomes the parameters, and what is empty is left out", () => {
  const fields = fieldsOf(SCHEMA);
  const read = parametersOf(fields, { url: " https://x ", size: "7", sides: "720\n\n360", exact: "true", custom_data: '{"a": 1}', way: "" });
  expect(read).toEqual({ value: { url: "https://x", size: 7, sides: [720, 360], exact: true, custom_data: { a: 1 } }, problems: [] });
  const wrong = parametersOf(fields, { size: "seven", custom_data: "{" }).problems;
  expect(wrong.map((each) => each.field)).toEqual(["parameters.size", "parameters.custom_data"]);
});

test("the sentence of the engine is shown at its fields", () => {
  const said = "parameters.url: must be http; or https; parameters.sides[1]: is too small; job.priority: 1 to 10";
  const failure = withFields(new Failure(400, said));
  expect(failure.fields).toEqual([
    { field: "parameters.url", message: "must be http; or https" },
    { field: "parameters.sides", message: "is too small" },
    { field: "job.priority", message: "1 to 10" },
  ]);
  expect(withFields(new Failure(400, "there is no such workflow")).detail).toBe("there is no such workflow");
});
