import { expect, it } from "vitest";
import { configurationOf, targetOf, written } from "./targets";

it("keeps members that the form does not know, and stored secrets", () => {
  const before = configurationOf('{"bucket": "a", "password": null, "region": "eu", "prefix": "p"}');
  expect(written(before, { bucket: "b", prefix: " ", secretAccessKey: "" }, targetOf(5))).toEqual({ bucket: "b", password: null, region: "eu", secretAccessKey: null });
  expect(written({}, { port: "2222", password: "s" }, targetOf(6))).toEqual({ port: 2222, password: "s" });
  expect([configurationOf("[1]"), configurationOf("no")]).toEqual([{}, {}]);
});
