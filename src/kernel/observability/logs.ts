import type { LogConfig } from './log-config.ts';
import { LogOutputs } from './log-outputs.ts';
import { createLogger, type Logger, type LoggerOptions } from './logger.ts';

/** The loggers of a process: the root logger, and named loggers that can have their own levels. */
export class Logs {
  readonly root: Logger;
  readonly #named = new Map<string, Logger>();
  readonly #outputs: LogOutputs;
  #config: LogConfig;

  /** @throws Error when a log file cannot be opened */
  constructor(config: LogConfig, options: Pick<LoggerOptions, 'context' | 'loggedErrors'> = {}) {
    this.#config = config;
    this.#outputs = new LogOutputs(config.outputs);
    this.root = createLogger({ ...options, level: config.level, destination: this.#outputs });
  }

  /** Returns the logger of a part of the server. Its lines carry the name. */
  named(name: string): Logger {
    const known = this.#named.get(name);
    if (known) return known;
    const logger = this.root.child({ logger: name }, { level: this.#levelOf(name) });
    this.#named.set(name, logger);
    return logger;
  }

  /**
   * Applies new levels and outputs, and opens log files again.
   * @throws Error when a log file cannot be opened; everything then stays unchanged
   */
  configure(config: LogConfig): void {
    this.#outputs.replace(config.outputs);
    this.#config = config;
    this.root.level = config.level;
    for (const [name, logger] of this.#named) logger.level = this.#levelOf(name);
  }

  #levelOf(name: string): string {
    return this.#config.levels.get(name) ?? this.#config.level;
  }
}
