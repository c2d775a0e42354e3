import { sleep } from '../kernel/clock.ts';
import type { Environment } from './kernel.ts';
import { type FactBus, openReader, type Reader } from './reader.ts';
import { Shutdown } from './shutdown.ts';

/** Milliseconds between attempts to open the reader after a failure. */
const retryInterval = 1_000;

/**
 * A reader process: it answers requests that only read, and follows the facts (changes) that the main process
 * publishes. When facts were lost, or when another main process has taken over, it opens a new reader with empty caches
 * and closes the old one. Until the new reader is open, the old one answers requests with the data up to the last fact
 * that it received.
 */
export class RestartingReader {
  readonly #environment: Environment;
  readonly #bus: FactBus;
  readonly #closing = new AbortController();
  #shutdown!: Shutdown;
  #reader!: Reader;
  #restarting: Promise<void> | undefined;

  private constructor(environment: Environment, bus: FactBus) {
    this.#environment = environment;
    this.#bus = bus;
  }

  static async open(environment: Environment, bus: FactBus): Promise<RestartingReader> {
    const reader = new RestartingReader(environment, bus);
    await reader.#open();
    return reader;
  }

  /** The open reader. */
  get reader(): Reader {
    return this.#reader;
  }

  /** Resolves when the facts that the bus brought before the call have been delivered, or read again from the database. */
  async caughtUp(): Promise<void> {
    await this.#reader.caughtUp();
    await this.#restarting;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#restarting;
    await this.#shutdown.run();
  }

  async #open(): Promise<void> {
    const shutdown = new Shutdown(this.#environment.log);
    let lost: Error | undefined;
    const onLost = (error: Error) => {
      lost = error;
      if (shutdown === this.#shutdown) this.#restarting ??= this.#restart(error);
    };
    try {
      const reader = await openReader(this.#environment, this.#bus, shutdown, onLost);
      if (lost) throw lost;
      this.#reader = reader;
    } catch (error) {
      await shutdown.run();
      throw error;
    }
    this.#shutdown = shutdown;
  }

  async #restart(reason: Error): Promise<void> {
    const { log, clock } = this.#environment;
    log.warn({ err: reason }, 'The reader opens again with empty caches');
    const old = this.#shutdown;
    while (!this.#closing.signal.aborted) {
      try {
        await this.#open();
        await old.run();
        break;
      } catch (error) {
        log.error({ err: error }, 'The reader could not be opened again');
        await sleep(clock, retryInterval, this.#closing.signal);
      }
    }
    this.#restarting = undefined;
  }
}
