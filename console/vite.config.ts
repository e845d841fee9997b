import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

/** Writes each text file compressed beside itself, so that the server compresses nothing. */
function compressed(): Plugin {
  return {
    name: "compressed",
    apply: "build",
    writeBundle({ dir }) {
      for (const name of readdirSync(dir!, { recursive: true, encoding: "utf8" })) {
        if (!/\.(html|js|css|svg)$/.test(name)) continue;
        const path = join(dir!, name);
        const plain = readFileSync(path);
        writeFileSync(`${path}.gz`, gzipSync(plain, { level: 9 }));
        writeFileSync(`${path}.br`, brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }));
      }
    },
  };
}

export default defineConfig({
  base: "/console/",
  plugins: [compressed()],
  build: {
    target: "es2023",
    outDir: "dist",
    emptyOutDir: true,
    assetsInlineLimit: 0, // the page's policy allows no data: URL but for pictures
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
