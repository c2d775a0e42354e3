#!/usr/bin/env node
/** The command line: see `hearth --help`. */
import { enableCompileCache } from 'node:module';

// Enabled before anything is imported: makes the second start faster than the first.
enableCompileCache();

const { allowClosedPipes } = await import('./commands/closed-pipes.ts');
const { createProgram } = await import('./commands/program.ts');
const { fail } = await import('./commands/failure.ts');

allowClosedPipes([process.stdout, process.stderr]);
await createProgram().parseAsync().catch(fail);
