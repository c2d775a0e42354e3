import { openSync } from 'node:fs';
import { pino } from 'pino';
import type { LogOutput } from './log-config.ts';
import { LogDestination } from './log-destination.ts';

/** The symbol under which pino looks for what a stream wants. */
const pinoMetadata = Symbol.for('pino.metadata');

interface OpenOutput {
  readonly least: number;
  readonly destination: LogDestination;
  /** Standard streams stay open. */
  readonly isFile: boolean;
}

/** A stream for pino that writes each line wherever its level is wanted, and can be turned elsewhere. */
export class LogOutputs {
  /** Asks pino for `lastLevel`. Source: its documentation, "pino.destination", `pino.metadata`. */
  readonly [pinoMetadata] = true;
  lastLevel = 0;
  #open: readonly OpenOutput[];

  /** @throws Error when a file can not be opened */
  constructor(outputs: readonly LogOutput[]) {
    this.#open = openAll(outputs);
  }

  write(line: string): void {
    for (const { least, destination } of this.#open) {
      if (this.lastLevel >= least) destination.write(line);
    }
  }

  /** Opens files anew, so that those that were moved away are left alone. @throws Error; the old ones then stay */
  replace(outputs: readonly LogOutput[]): void {
    const before = this.#open;
    this.#open = openAll(outputs);
    closeFiles(before);
  }
}

/** All of them, or none when one can not be opened. */
function openAll(outputs: readonly LogOutput[]): readonly OpenOutput[] {
  const opened: OpenOutput[] = [];
  try {
    for (const output of outputs) opened.push(open(output));
    return opened;
  } catch (error) {
    closeFiles(opened);
    throw error;
  }
}

function closeFiles(outputs: readonly OpenOutput[]): void {
  for (const { destination, isFile } of outputs) destination.end(isFile);
}

function open({ to, level }: LogOutput): OpenOutput {
  const isFile = typeof to === 'object';
  const fd = isFile ? openSync(to.file, 'a', 0o600) : to === 'stdout' ? 1 : 2;
  return {
    least: level === 'silent' ? Number.POSITIVE_INFINITY : pino.levels.values[level]!,
    destination: new LogDestination(fd, isFile ? to.file : to),
    isFile,
  };
}
