import { expect, it } from "vitest";
import { EMPTY, draftOf, templateOf, written } from "./profile";

it("keeps what the form does not know, and adds nothing that nobody typed", () => {
  const json = '{"a": 1, "request": {"settings": {"zone": "eu"}, "resources": [{"name": "o", "type": "Origin", "size": "L"}], "options": {"x": true}}, "workflow": {"termination": []}}';
  const draft = draftOf(json)!;
  expect(JSON.parse(written(json, draft))).toEqual({
    a: 1,
    request: { settings: { zone: "eu" }, resources: [{ name: "o", type: "origin", size: "L" }], options: { x: true, deploymentType: "static" } },
    workflow: { termination: [] },
  });
  const changed = { ...draft, deploymentType: "template" as const, template: "aws", allowUpdates: true, callbackUrls: " https://a.example \n", infrastructureKey: "k" };
  expect(JSON.parse(written(json, changed)).request).toMatchObject({
    settings: { zone: "eu", template: "aws" },
    options: { deploymentType: "template", allowUpdates: true },
    callbackUrls: ["https://a.example"],
    infrastructureKey: "k",
  });
});

it("says how a profile is made", () => {
  expect(templateOf(EMPTY)).toEqual({ template: null, resources: 0 });
  expect(templateOf('{"request": {"options": {"deploymentType": "TEMPLATE"}, "resources": [{}]}}')).toEqual({ template: "default", resources: 1 });
  expect([templateOf("[]"), templateOf("no")]).toEqual([null, null]);
});
