#!/usr/bin/env node
/**
 * Starts the command line: from `dist/` if that was built, from source otherwise. Plain JavaScript, because
 * the compile cache must be enabled before the first TypeScript file is loaded: it halves the time of a
 * start, and the compiler need not be in memory.
 */
import { existsSync } from 'node:fs';
// Imported as a namespace, because importing a missing name would fail where Node is too old.
import * as nodeModule from 'node:module';

if (Number.parseInt(process.versions.node, 10) < 24) {
  process.stderr.write(`hearth: Node.js 24 or newer is required; this is ${process.versions.node}\n`);
  process.exit(1);
}
const { directory } = nodeModule.enableCompileCache();
// Enables the cache in the threads that this process starts.
if (directory !== undefined) process.env['NODE_COMPILE_CACHE'] ??= directory;
const built = new URL('../dist/main.js', import.meta.url);
await import(existsSync(built) ? built.href : '../src/main.ts');
