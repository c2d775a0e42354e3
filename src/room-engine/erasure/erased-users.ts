import { type AnyWriter, type Database, writerFor } from '../../kernel/database/index.ts';
import { jsonFacts, type Publish, Stream } from '../../kernel/streams/index.ts';
import type { Erasures } from './erasures.ts';
import { type ErasureTables, insertErasedUser, readErasedUsers } from './store.ts';

/**
 * The users of this server who have asked that what they sent is forgotten as far as possible when they closed their
 * accounts. They are few, and so all of them are in memory.
 * Source: client-server API, `POST /account/deactivate`, "erase".
 */
export class ErasedUsers implements Erasures {
  readonly #database: Database;
  readonly stream = new Stream<string>('erased_users', jsonFacts());
  #positions: Promise<Map<string, number>> | undefined;

  constructor(database: Database) {
    this.#database = database;
    this.stream.subscribe((userId, position) => {
      this.#positions?.then(
        (positions) => positions.set(userId, position),
        // Whoever asks next reads it.
        () => undefined,
      );
    });
  }

  /** Erased users, and the position of the stream at which each asked for it. */
  positions(): Promise<ReadonlyMap<string, number>> {
    this.#positions ??= readErasedUsers(this.#database.reader()).catch((error: unknown) => {
      this.#positions = undefined;
      throw error;
    });
    return this.#positions;
  }

  /** In the transaction in which an account is closed. */
  async deactivated(
    writer: AnyWriter,
    publish: Publish,
    { userId, erase }: { userId: string; erase: boolean },
  ): Promise<void> {
    if (!erase) return;
    await insertErasedUser(writerFor<ErasureTables>(writer), userId, publish(this.stream, userId));
  }
}
