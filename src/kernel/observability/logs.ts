import type { LogConfig } from './log-config.ts';
import { LogOutputs } from './log-outputs.ts';
import { createLogger, type Logger } from './logger.ts';

/** The loggers of a process: one for everything, and named ones that can have levels of their own. */
export class Logs {
  readonly root: Logger;
  readonly #named = new Map<string, Logger>();
  readonly #outputs: LogOutputs;
  #config: LogConfig;

  /** @throws Error when a file can not be opened */
  constructor(config: LogConfig) {
    this.#config = config;
    this.#outputs = new LogOutputs(config.outputs);
    this.root = createLogger({ level: config.level, destination: this.#outputs });
  }

  /** The logger of a part of the server; its lines say its name. */
  named(name: string): Logger {
    const known = this.#named.get(name);
    if (known) return known;
    const logger = this.root.child({ logger: name }, { level: this.#levelOf(name) });
    this.#named.set(name, logger);
    return logger;
  }

  /** Takes over other levels and outputs, and opens files anew. @throws Error; everything then stays as it is */
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
