import type { Clock } from '../../../kernel/clock.ts';
import { type AnyWriter, afterCommit, type Database, writerFor } from '../../../kernel/database/index.ts';
import { Sequence } from '../../../kernel/streams/index.ts';
import { canonicalJson } from '../../../protocol/index.ts';
import { insertOutgoing } from '../store.ts';
import type { SenderTables } from '../tables.ts';
import type { Edu } from '../transactions/edu.ts';

export interface EduOutboxDeps {
  readonly database: Database;
  readonly clock: Clock;
  /** Whether this server federates with a server. */
  readonly isDestination: (serverName: string) => boolean;
}

/**
 * EDUs that must arrive: to-device messages and device list updates. They are stored in the database transaction of
 * the change that causes them, and deleted when the destination has acknowledged them. Each destination receives its
 * EDUs in the order in which they were added.
 */
export class EduOutbox {
  readonly #deps: EduOutboxDeps;
  readonly #ids: Sequence;
  readonly #listeners = new Set<(destination: string) => void>();

  private constructor(deps: EduOutboxDeps, ids: Sequence) {
    this.#deps = deps;
    this.#ids = ids;
  }

  /** Opens the outbox with the sequence that numbers its EDUs. */
  static async open(deps: EduOutboxDeps): Promise<EduOutbox> {
    return new EduOutbox(deps, await Sequence.open(deps.database, 'federation_outbox'));
  }

  /**
   * Adds an EDU for a server in the transaction of `writer`; it is sent after the commit. After a crash, it may be sent
   * again: its content needs an id where duplicates matter.
   */
  async add(writer: AnyWriter, destination: string, edu: Edu): Promise<void> {
    await this.addForAll(writer, [destination], edu);
  }

  /** Adds the same EDU for several servers, except for servers that `federation_domain_whitelist` excludes. */
  async addForAll(writer: AnyWriter, destinations: Iterable<string>, { type, content }: Edu): Promise<void> {
    const { clock, isDestination } = this.#deps;
    const shared = { type, content: canonicalJson(content, 'as written'), added_ts: clock.now() };
    const rows = [...new Set(destinations)].filter(isDestination).map((destination) => ({
      destination,
      id: this.#ids.next(),
      ...shared,
    }));
    if (rows.length === 0) return;
    await insertOutgoing(writerFor<SenderTables>(writer), rows);
    afterCommit(writer, () => {
      for (const { destination } of rows) for (const listener of this.#listeners) listener(destination);
    });
  }

  /**
   * Calls `listener` with each server for which EDUs were added. It must be fast and must not throw.
   * @returns a function that removes the listener
   */
  onAdded(listener: (destination: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
