#!/usr/bin/env node
/** The command line: see `hearth --help`. */
import { enableCompileCache } from 'node:module';

// Must run before all imports: the compiled code is kept on disk, so that later starts are faster.
enableCompileCache();

const { allowClosedPipes } = await import('./commands/closed-pipes.ts');
const { createProgram } = await import('./commands/program.ts');
const { fail } = await import('./commands/failure.ts');

allowClosedPipes([process.stdout, process.stderr]);
await createProgram().parseAsync().catch(fail);
