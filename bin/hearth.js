#!/usr/bin/env node
/**
 * Starts the command line: from `dist/` where it was built, from source otherwise. Plain JavaScript, because the
 * compile cache must be on before the first TypeScript file is loaded: with it a start takes half the time, and the
 * compiler need not be in memory.
 */
import { existsSync } from 'node:fs';
// By its name it could not even be asked for where Node is too old.
import * as nodeModule from 'node:module';

if (Number.parseInt(process.versions.node, 10) < 24) {
  process.stderr.write(`hearth: Node 24 or newer is needed, and this is ${process.versions.node}\n`);
  process.exit(1);
}
const { directory } = nodeModule.enableCompileCache();
// For the threads that this process starts.
if (directory !== undefined) process.env['NODE_COMPILE_CACHE'] ??= directory;
const built = new URL('../dist/main.js', import.meta.url);
await import(existsSync(built) ? built.href : '../src/main.ts');
