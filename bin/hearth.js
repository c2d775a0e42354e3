#!/usr/bin/env node
/**
 * Starts the command line: from `dist/` where it was built, from source otherwise. Plain JavaScript, because the
 * compile cache must be on before the first TypeScript file is loaded: with it a start takes half the time, and the
 * compiler need not be in memory.
 */
import { existsSync } from 'node:fs';
import { enableCompileCache } from 'node:module';

const { directory } = enableCompileCache();
// For the threads that this process starts.
if (directory !== undefined) process.env['NODE_COMPILE_CACHE'] ??= directory;
const built = new URL('../dist/main.js', import.meta.url);
await import(existsSync(built) ? built.href : '../src/main.ts');
