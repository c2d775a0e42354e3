import { type AnyWriter, type Database, type Writer, writerFor } from '../kernel/database/index.ts';
import { jsonFacts, type Publish, Stream, type StreamWriter } from '../kernel/streams/index.ts';
import { invalidParam, type JsonObject, MatrixError, notFound, tooLarge } from '../protocol/index.ts';
import { checkContentBounds } from './content-bounds.ts';
import {
  type AccountDataEntry,
  type AccountDataKey,
  bytesOf,
  bytesOfPiece,
  readChanges,
  readEntries,
  readEntry,
  readGlobalTypes,
  readStoredBytes,
  replaceEntry,
  writeEntry,
} from './store.ts';
import type { AccountDataTables } from './tables.ts';

/** Account data that other slices compute for a user, by type. */
export type ComputedAccountData = ReadonlyMap<string, (userId: string) => Promise<JsonObject>>;

export interface AccountDataDeps {
  readonly database: Database;
  readonly streams: StreamWriter;
  /** For instance `m.push_rules`. */
  readonly computed?: ComputedAccountData;
}

/** Types that clients cannot set. */
const serverControlled: ReadonlySet<string> = new Set(['m.fully_read', 'm.push_rules']);

/** Prefixes of the types with the notification settings of a device. The device id follows the prefix. */
const notificationSettings = [
  'm.local_notification_settings.',
  'org.matrix.msc3890.local_notification_settings.',
];

/** Whether content stands for deleted account data. */
const isDeleted = (content: JsonObject) => Object.keys(content).length === 0;

/** Maximum bytes of one piece of account data that a client sets. */
export const maxPieceBytes = 1024 * 1024;

/** Maximum bytes of all account data of a user, as counted by `bytesOfPiece`: an initial sync reads all of it. */
const maxTotalBytes = 10 * 1024 * 1024;

/** Maximum bytes of a type. */
const maxTypeBytes = 255;

/**
 * Account data: what clients store on the server for their user. Source: client-server API, "Client Config".
 */
export class AccountData {
  /** Publishes the key of each piece of account data that is set. */
  readonly accountDataStream = new Stream<AccountDataKey>('account_data', jsonFacts({ roomId: undefined }));
  readonly #deps: AccountDataDeps;

  constructor(deps: AccountDataDeps) {
    this.#deps = deps;
  }

  /** Returns computed or stored content. @throws MatrixError M_NOT_FOUND when there is none, M_INVALID_PARAM for an invalid type */
  async get(key: AccountDataKey): Promise<JsonObject> {
    const compute = key.roomId === undefined ? this.#deps.computed?.get(key.type) : undefined;
    if (compute) return compute(key.userId);
    const content = await this.find(key);
    if (content === undefined) throw notFound('Account data not found');
    return content;
  }

  /** Returns the stored content; `undefined` when there is none, or it was deleted. */
  async find(key: AccountDataKey): Promise<JsonObject | undefined> {
    return (await this.findWithPosition(key)).content;
  }

  /** Like `find`, with the stream position of the last change; 0 when there was none. A deletion counts as a change. */
  async findWithPosition(
    key: AccountDataKey,
  ): Promise<{ readonly content: JsonObject | undefined; readonly position: number }> {
    checkType(key.type);
    const entry = await readEntry(this.#deps.database.reader<AccountDataTables>(), key);
    const content = entry && isDeleted(entry.content) ? undefined : entry?.content;
    return { content, position: entry?.position ?? 0 };
  }

  /**
   * Sets content for a client; an empty object deletes it. Source: MSC3391, "Removing account data".
   * @throws MatrixError 405 M_BAD_JSON for server-controlled types, M_INVALID_PARAM for an invalid type, M_TOO_LARGE
   * when all account data of the user would have more than 10 MiB, and the errors of `checkContentBounds`
   */
  async setByClient(key: AccountDataKey, content: JsonObject): Promise<void> {
    if (serverControlled.has(key.type)) {
      throw new MatrixError(405, 'M_BAD_JSON', `Clients cannot set ${key.type}`);
    }
    if (isDeleted(content)) return this.#delete(key);
    checkType(key.type);
    if (key.roomId === undefined) checkContentBounds(key.type, content);
    await this.#deps.streams.write<AccountDataTables, void>(async (writer, publish) => {
      await requireSpace(writer, key, content);
      await this.setIn(writer, publish, key, content);
    });
  }

  /** Stores an empty object. Incremental syncs return it, so that clients learn that the data was deleted. */
  #delete(key: AccountDataKey): Promise<void> {
    return this.update(key, (content) => (content === undefined || isDeleted(content) ? undefined : {}));
  }

  /**
   * Deletes the notification settings of devices in the transaction that deletes the devices. The settings have a
   * stable and an unstable type; both are deleted. Source: MSC3890, "Remotely toggle push notifications".
   */
  async devicesRemoved(
    writer: AnyWriter,
    publish: Publish,
    userId: string,
    deviceIds: readonly string[],
  ): Promise<void> {
    const types = deviceIds.flatMap((deviceId) => notificationSettings.map((prefix) => prefix + deviceId));
    const tables = writerFor<AccountDataTables>(writer);
    for (const type of await readGlobalTypes(tables, userId, types)) {
      await this.setIn(writer, publish, { userId, roomId: undefined, type }, {});
    }
  }

  /**
   * Sets content of any type, including server-controlled types.
   * @throws MatrixError M_INVALID_PARAM for an invalid type
   */
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
   * Replaces content by the result of `change`, atomically, so that concurrent changes are not lost.
   * @param change receives `undefined` when there is no content; returns `undefined` to change nothing
   */
  update(key: AccountDataKey, change: Change): Promise<void> {
    return this.#change(key, change, async () => undefined);
  }

  /**
   * `update` for a client.
   * @throws MatrixError M_INVALID_PARAM for an invalid type, M_TOO_LARGE when the content would have more than 1 MiB, or
   * all account data of the user more than 10 MiB
   */
  updateByClient(key: AccountDataKey, change: Change): Promise<void> {
    return this.#change(key, change, async (writer, content) => {
      if (bytesOf(content) > maxPieceBytes) throw tooLarge('Account data of one type has at most 1 MiB');
      await requireSpace(writer, key, content);
    });
  }

  /** @param check gets the new content before it is stored; throws to refuse it */
  async #change(
    key: AccountDataKey,
    change: Change,
    check: (writer: Writer<AccountDataTables>, content: JsonObject) => Promise<void>,
  ): Promise<void> {
    checkType(key.type);
    await this.#deps.streams.write<AccountDataTables, void>(async (writer, publish) => {
      let position: number | undefined;
      // `replaceEntry` stores nothing when the content was changed after it was read. It is then read again.
      for (;;) {
        const old = await readEntry(writer, key);
        const content = change(old?.content);
        if (content === undefined) return;
        await check(writer, content);
        position ??= publish(this.accountDataStream, key);
        if (await replaceEntry(writer, key, old, { content, position })) return;
      }
    });
  }

  /** Returns all account data of a user, for an initial sync, without deleted data. */
  all(userId: string): Promise<AccountDataEntry[]> {
    return readEntries(this.#deps.database.reader<AccountDataTables>(), userId);
  }

  /** Returns the account data of some types, global and of rooms, without deleted data. */
  ofTypes(userId: string, types: readonly string[]): Promise<AccountDataEntry[]> {
    return readEntries(this.#deps.database.reader<AccountDataTables>(), userId, types);
  }

  /**
   * Returns account data whose last change has a position in `(after, upTo]`, in the order of the positions. Data that
   * changed again after `upTo` is omitted.
   */
  changesSince(userId: string, after: number, upTo: number): Promise<AccountDataEntry[]> {
    return readChanges(this.#deps.database.reader<AccountDataTables>(), userId, after, upTo);
  }
}

/** Returns new content; `undefined` changes nothing. */
type Change = (content: JsonObject | undefined) => JsonObject | undefined;

/**
 * Refuses content that would make all account data of a user exceed 10 MiB. Content that is not longer than the stored
 * content it replaces is always accepted.
 * @throws MatrixError M_TOO_LARGE
 */
async function requireSpace(
  writer: Writer<AccountDataTables>,
  key: AccountDataKey,
  content: JsonObject,
): Promise<void> {
  const { total, ofPiece } = await readStoredBytes(writer, key);
  const added = bytesOfPiece(key, content) - ofPiece;
  if (added > 0 && total + added > maxTotalBytes)
    throw tooLarge('All account data of a user has at most 10 MiB: delete some');
}

function checkType(type: string): void {
  if (type === '' || Buffer.byteLength(type) > maxTypeBytes || type.includes('\0')) {
    throw invalidParam(
      `The type of account data must have between 1 and ${maxTypeBytes} bytes, without U+0000`,
    );
  }
}
