import { openSync } from 'node:fs';
import { pino } from 'pino';
import type { LogOutput } from './log-config.ts';
import { LogDestination } from './log-destination.ts';

/** The symbol under which pino looks up the requirements of a stream. */
const pinoMetadata = Symbol.for('pino.metadata');

interface OpenOutput {
  readonly minLevel: number;
  readonly destination: LogDestination;
  /** Whether the output is a file. A file is closed when it is replaced; standard streams stay open. */
  readonly isFile: boolean;
}

/**
 * A stream for pino that writes each line to all outputs whose minimum level it reaches. The outputs can be replaced at
 * run time.
 */
export class LogOutputs {
  /** Makes pino set `lastLevel`. Source: pino's documentation, "pino.destination", `pino.metadata`. */
  readonly [pinoMetadata] = true;
  lastLevel = 0;
  #open: readonly OpenOutput[];

  /** @throws Error when a file cannot be opened */
  constructor(outputs: readonly LogOutput[]) {
    this.#open = openAll(outputs);
  }

  write(line: string): void {
    for (const { minLevel, destination } of this.#open) {
      if (this.lastLevel >= minLevel) destination.write(line);
    }
  }

  /**
   * Replaces the outputs and opens their files again: after a log rotation has renamed a file, lines are written to a
   * new file.
   * @throws Error when a file cannot be opened; the old outputs then stay
   */
  replace(outputs: readonly LogOutput[]): void {
    const before = this.#open;
    this.#open = openAll(outputs);
    closeFiles(before);
  }
}

/** Opens all outputs, or none when one of them cannot be opened. */
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
    minLevel: level === 'silent' ? Number.POSITIVE_INFINITY : pino.levels.values[level]!,
    destination: new LogDestination(fd, isFile ? to.file : to),
    isFile,
  };
}
