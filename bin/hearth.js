#!/usr/bin/env node
/**
 * Starts the command line: the built program, or the source files where they have changed since the build. Plain
 * JavaScript, because the compile cache must be enabled before the first TypeScript file is loaded: it halves the time of a
 * start, and the compiler need not be in memory.
 */
// Imported as a namespace, because importing a missing name would fail where Node is too old.
import * as nodeModule from 'node:module';
import { pathToFileURL } from 'node:url';
import { builtProgram } from './built-program.js';
import { restartWithMemorySettings } from './memory-settings.js';

if (Number.parseInt(process.versions.node, 10) < 24) {
  process.stderr.write(`hearth: Node.js 24 or newer is required; this is ${process.versions.node}\n`);
  process.exit(1);
}
if (process.argv.includes('serve')) restartWithMemorySettings();
const { directory } = nodeModule.enableCompileCache();
// Enables the cache in the threads that this process starts.
if (directory !== undefined) process.env['NODE_COMPILE_CACHE'] ??= directory;
const built = builtProgram();
await import(built === undefined ? '../src/main.ts' : pathToFileURL(built).href);
