import { expect, test } from "vitest";
import { csvLine } from "./files";

test("cells are quoted, and none is a formula", () => {
  expect(csvLine(["a", 'say "x", y', null, 3, { a: 1 }, "two\nlines"])).toBe('a,"say ""x"", y",,3,"{""a"":1}","two\nlines"\r\n');
  expect(csvLine(["=1+1", "@x", "-2", -2])).toBe("'=1+1,'@x,'-2,-2\r\n");
});
