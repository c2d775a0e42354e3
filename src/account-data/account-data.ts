import type { AccountLifecycle } from '../accounts/index.ts';
import { type AnyWriter, type Database, writerFor } from '../kernel/database/index.ts';
import { jsonFacts, type Publish, Stream, type StreamWriter } from '../kernel/streams/index.ts';
import { invalidParam, type JsonObject, MatrixError, notFound } from '../protocol/index.ts';
import {
  type AccountDataEntry,
  type AccountDataKey,
  deleteEntries,
  readChanges,
  readEntries,
  readEntry,
  replaceEntry,
  writeEntry,
} from './store.ts';
import type { AccountDataTables } from './tables.ts';

/** What other slices keep for a user that clients read as account data, by its type. */
export type ComputedAccountData = ReadonlyMap<string, (userId: string) => Promise<JsonObject>>;

export interface AccountDataDeps {
  readonly database: Database;
  readonly streams: StreamWriter;
  /** Such as `m.push_rules`. */
  readonly computed?: ComputedAccountData;
}

/** Types that only the server sets. */
const serverControlled: ReadonlySet<string> = new Set(['m.fully_read', 'm.push_rules']);

/** Bytes of a type. */
const longestType = 255;

/** What clients keep on the server for their user. Source: client-server API, "Client Config". */
export class AccountData implements AccountLifecycle {
  /** Facts are the keys of what was set. */
  readonly accountDataStream = new Stream<AccountDataKey>('account_data', jsonFacts({ roomId: undefined }));
  readonly #deps: AccountDataDeps;

  constructor(deps: AccountDataDeps) {
    this.#deps = deps;
  }

  /** @throws MatrixError M_NOT_FOUND */
  async get(key: AccountDataKey): Promise<JsonObject> {
    const compute = key.roomId === undefined ? this.#deps.computed?.get(key.type) : undefined;
    if (compute) return compute(key.userId);
    const content = await this.find(key);
    if (content === undefined) throw notFound('There is no such account data');
    return content;
  }

  /** What was set, `undefined` if nothing was. */
  async find(key: AccountDataKey): Promise<JsonObject | undefined> {
    checkType(key.type);
    return (await readEntry(this.#deps.database.reader<AccountDataTables>(), key))?.content;
  }

  /** Sets what a client asks for. Throws MatrixError 405 M_BAD_JSON for types that only the server sets. */
  async setByClient(key: AccountDataKey, content: JsonObject): Promise<void> {
    if (serverControlled.has(key.type)) {
      throw new MatrixError(405, 'M_BAD_JSON', `${key.type} can not be set this way`);
    }
    await this.set(key, content);
  }

  /** Sets what the server itself says, of types that clients can not set as well. Throws MatrixError M_INVALID_PARAM. */
  async set(key: AccountDataKey, content: JsonObject): Promise<void> {
    checkType(key.type);
    await this.#deps.streams.write<AccountDataTables, void>((writer, publish) =>
      this.setIn(writer, publish, key, content),
    );
  }

  /** `set` inside the caller's transaction. */
  async setIn(writer: AnyWriter, publish: Publish, key: AccountDataKey, content: JsonObject): Promise<void> {
    const position = publish(this.accountDataStream, key);
    await writeEntry(writerFor<AccountDataTables>(writer), key, content, position);
  }

  /**
   * Replaces content by what `change` makes of it, so that two changes at the same time both count.
   * @param change gets `undefined` when there is nothing; returns `undefined` to leave things as they are
   */
  async update(
    key: AccountDataKey,
    change: (content: JsonObject | undefined) => JsonObject | undefined,
  ): Promise<void> {
    checkType(key.type);
    await this.#deps.streams.write<AccountDataTables, void>(async (writer, publish) => {
      let position: number | undefined;
      for (;;) {
        const old = await readEntry(writer, key);
        const content = change(old?.content);
        if (content === undefined) return;
        position ??= publish(this.accountDataStream, key);
        if (await replaceEntry(writer, key, old, { content, position })) return;
      }
    });
  }

  /** Everything that was set for a user, for a first sync. */
  all(userId: string): Promise<AccountDataEntry[]> {
    return readEntries(this.#deps.database.reader<AccountDataTables>(), userId);
  }

  /** What was set last in `(after, upTo]`, in that order; what was set again after `upTo` comes with that. */
  changesSince(userId: string, after: number, upTo: number): Promise<AccountDataEntry[]> {
    return readChanges(this.#deps.database.reader<AccountDataTables>(), userId, after, upTo);
  }

  async deactivated(
    writer: AnyWriter,
    _publish: Publish,
    { userId, erase }: { userId: string; erase: boolean },
  ): Promise<void> {
    if (erase) await deleteEntries(writerFor<AccountDataTables>(writer), userId);
  }
}

function checkType(type: string): void {
  if (type === '' || Buffer.byteLength(type) > longestType || type.includes('\0')) {
    throw invalidParam(`A type has between 1 and ${longestType} bytes, without U+0000`);
  }
}
