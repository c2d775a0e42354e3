import { type AnyWriter, type Database, writerFor } from '../../kernel/database/index.ts';
import { jsonFacts, type Publish, Stream } from '../../kernel/streams/index.ts';
import type { Erasures } from './erasures.ts';
import { type ErasureTables, insertErasedUser, readErasedUsers } from './store.ts';

/**
 * The local users who requested erasure when they deactivated their accounts. They are few, so all of them are cached.
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
        // Reading the erased users failed; the next call of `positions` reads them again, this user included.
        () => undefined,
      );
    });
  }

  /** Returns the erased users, each with the position of the request on the stream. */
  positions(): Promise<ReadonlyMap<string, number>> {
    this.#positions ??= readErasedUsers(this.#database.reader()).catch((error: unknown) => {
      this.#positions = undefined;
      throw error;
    });
    return this.#positions;
  }

  /** Stores that a user requested erasure, if `erase` is true, in the transaction that deactivates the account. */
  async deactivated(
    writer: AnyWriter,
    publish: Publish,
    { userId, erase }: { userId: string; erase: boolean },
  ): Promise<void> {
    if (!erase) return;
    await insertErasedUser(writerFor<ErasureTables>(writer), userId, publish(this.stream, userId));
  }
}
