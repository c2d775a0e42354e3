import { Readable } from 'node:stream';
import type { Database, Reader, Writer } from '../../kernel/database/index.ts';
import { invalidParam, type JsonObject, MatrixError, notFound, tooLarge } from '../../protocol/index.ts';
import type { E2eeTables } from '../tables.ts';
import { deleteKeys, findKeys, type KeyRange, readKeys, writeKeys } from './key-store.ts';
import { isBetter, keyText, type SessionKey } from './room-keys.ts';
import {
  type Backup,
  countBackups,
  deleteBackup,
  insertBackup,
  readBackup,
  readLastVersion,
  updateAuthData,
  updateKeyCount,
} from './version-store.ts';

/** The fields of a backup that a client sets. */
export interface BackupDescription {
  readonly algorithm: string;
  readonly authData: JsonObject;
}

/** The ETag and the key count of a backup after a change of its keys. */
export interface BackupState {
  readonly etag: string;
  readonly count: number;
}

/** Maximum number of backups of a user. */
const maxBackups = 100;

/** Maximum number of keys in a backup. */
const maxKeys = 1_000_000;

/** Maximum number of UTF-16 units in the description of a backup. */
const maxDescriptionLength = 65_536;

/** How many keys one query reads. */
const pageSize = 1_000;

const noBackup = () => notFound('Unknown backup version');

/** Stores backups of encrypted room keys. Source: client-server API, "Server-side key backups". */
export class KeyBackups {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Creates a backup.
   * @returns the version of the backup
   * @throws MatrixError M_TOO_LARGE, M_INVALID_PARAM
   */
  create(userId: string, { algorithm, authData }: BackupDescription): Promise<string> {
    checkSize({ algorithm, authData });
    return this.#write(async (writer) => {
      const version = (await readLastVersion(writer, userId)) + 1;
      if ((await countBackups(writer, userId)) >= maxBackups) {
        throw tooLarge(`You have ${maxBackups} backups, which is the maximum: delete one first`);
      }
      await insertBackup(writer, userId, { version, algorithm, authData });
      return String(version);
    });
  }

  /**
   * Returns a backup.
   * @param version absent: the current version
   * @throws MatrixError M_NOT_FOUND
   */
  async get(userId: string, version?: string): Promise<Backup> {
    const parsed = version === undefined ? undefined : parseVersion(version);
    const backup = await readBackup(this.#reader, userId, parsed);
    if (!backup) throw noBackup();
    return backup;
  }

  /**
   * Replaces the auth data of a backup.
   * @throws MatrixError M_NOT_FOUND, M_INVALID_PARAM for a changed algorithm, M_TOO_LARGE
   */
  async update(userId: string, version: string, { algorithm, authData }: BackupDescription): Promise<void> {
    checkSize({ algorithm, authData });
    await this.#write(async (writer) => {
      const backup = await findBackup(writer, userId, version);
      if (backup.algorithm !== algorithm)
        throw invalidParam('The algorithm differs from the algorithm of the backup');
      await updateAuthData(writer, userId, backup.version, authData);
    });
  }

  /**
   * Deletes a backup with its keys. Does nothing when the backup was deleted before.
   * @throws MatrixError M_NOT_FOUND for a version that the user has never created
   */
  async delete(userId: string, version: string): Promise<void> {
    const parsed = parseVersion(version);
    await this.#write(async (writer) => {
      if (parsed > (await readLastVersion(writer, userId))) throw noBackup();
      await deleteBackup(writer, userId, parsed);
    });
  }

  /**
   * Stores the keys that are better than the stored key of the same session, and the keys of sessions that have no
   * stored key.
   * @throws MatrixError M_WRONG_ROOM_KEYS_VERSION with the current version, M_NOT_FOUND without a backup, M_TOO_LARGE
   */
  put(userId: string, version: string, keys: readonly SessionKey[]): Promise<BackupState> {
    return this.#write(async (writer) => {
      const backup = await readBackup(writer, userId);
      if (!backup) throw noBackup();
      if (String(backup.version) !== version) throw wrongVersion(backup);
      const backupId = { userId, version: backup.version };
      const storedKeys = new Map(
        (await findKeys(writer, backupId, keys)).map((key) => [sessionNameOf(key), key] as const),
      );
      const betterKeys = keys.filter((key) => {
        const storedKey = storedKeys.get(sessionNameOf(key));
        return storedKey === undefined || isBetter(key, storedKey);
      });
      if (betterKeys.length === 0) return stateOf(backup);
      const count = backup.count + betterKeys.filter((key) => !storedKeys.has(sessionNameOf(key))).length;
      if (count > maxKeys) throw tooLarge(`A backup has at most ${maxKeys} keys`);
      await writeKeys(writer, backupId, betterKeys);
      return recordKeyChange(writer, userId, backup, count);
    });
  }

  /**
   * Returns one key.
   * @throws MatrixError M_NOT_FOUND
   */
  async key(userId: string, version: string, roomId: string, sessionId: string): Promise<SessionKey> {
    const backup = await findBackup(this.#reader, userId, version);
    const backupId = { userId, version: backup.version };
    const [key] = await findKeys(this.#reader, backupId, [{ roomId, sessionId }]);
    if (!key) throw notFound('The backup has no key of this session');
    return key;
  }

  /**
   * Returns the keys of one room as JSON: `{sessions}`.
   * @throws MatrixError M_NOT_FOUND
   */
  async room(userId: string, version: string, roomId: string): Promise<Readable> {
    const backup = await findBackup(this.#reader, userId, version);
    return Readable.from(this.#sessionsText({ userId, version: backup.version }, { roomId }));
  }

  /**
   * Returns all keys as JSON: `{rooms}`, room id to `{sessions}`. There may be very many keys, so pages are read from
   * the database as the client reads the response.
   * @throws MatrixError M_NOT_FOUND
   */
  async rooms(userId: string, version: string): Promise<Readable> {
    const backup = await findBackup(this.#reader, userId, version);
    return Readable.from(this.#roomsText({ userId, version: backup.version }));
  }

  /**
   * Deletes keys.
   * @throws MatrixError M_NOT_FOUND for an unknown version
   */
  deleteKeys(userId: string, version: string, range: KeyRange): Promise<BackupState> {
    return this.#write(async (writer) => {
      const backup = await findBackup(writer, userId, version);
      const deleted = await deleteKeys(writer, { userId, version: backup.version }, range);
      return deleted === 0
        ? stateOf(backup)
        : recordKeyChange(writer, userId, backup, backup.count - deleted);
    });
  }

  async *#sessionsText(backup: { userId: string; version: number }, range: KeyRange): AsyncGenerator<string> {
    yield '{"sessions":{';
    let comma = '';
    for await (const page of this.#pages(backup, range)) {
      yield comma + page.map((key) => `${JSON.stringify(key.sessionId)}:${keyText(key)}`).join();
      comma = ',';
    }
    yield '}}';
  }

  async *#roomsText(backup: { userId: string; version: number }): AsyncGenerator<string> {
    let room: string | undefined;
    for await (const page of this.#pages(backup, {})) {
      let text = '';
      for (const key of page) {
        const session = `${JSON.stringify(key.sessionId)}:${keyText(key)}`;
        if (key.roomId === room) text += `,${session}`;
        else {
          text += room === undefined ? '{"rooms":{' : '}},';
          text += `${JSON.stringify(key.roomId)}:{"sessions":{${session}`;
        }
        room = key.roomId;
      }
      yield text;
    }
    yield room === undefined ? '{"rooms":{}}' : '}}}}';
  }

  async *#pages(backup: { userId: string; version: number }, range: KeyRange): AsyncGenerator<SessionKey[]> {
    for (let after: SessionKey | undefined; ; ) {
      const page = await readKeys(this.#reader, backup, range, { after, limit: pageSize });
      if (page.length > 0) yield page;
      if (page.length < pageSize) return;
      after = page.at(-1);
    }
  }

  get #reader(): Reader<E2eeTables> {
    return this.#database.reader<E2eeTables>();
  }

  #write<T>(work: (writer: Writer<E2eeTables>) => Promise<T>): Promise<T> {
    return this.#database.transaction<E2eeTables, T>(work);
  }
}

async function findBackup(reader: Reader<E2eeTables>, userId: string, version: string): Promise<Backup> {
  const backup = await readBackup(reader, userId, parseVersion(version));
  if (!backup) throw noBackup();
  return backup;
}

async function recordKeyChange(
  writer: Writer<E2eeTables>,
  userId: string,
  backup: Backup,
  count: number,
): Promise<BackupState> {
  await updateKeyCount(writer, userId, backup, count);
  return stateOf({ ...backup, etag: backup.etag + 1, count });
}

const stateOf = ({ etag, count }: Backup): BackupState => ({ etag: String(etag), count });

const sessionNameOf = ({ roomId, sessionId }: SessionKey) => `${roomId}\0${sessionId}`;

function wrongVersion({ version }: Backup): MatrixError {
  const extra = { current_version: String(version) };
  return new MatrixError(403, 'M_WRONG_ROOM_KEYS_VERSION', 'This is not the current backup version', extra);
}

function parseVersion(version: string): number {
  if (!/^[1-9]\d{0,14}$/.test(version)) throw noBackup();
  return Number(version);
}

function checkSize({ algorithm, authData }: BackupDescription): void {
  if (JSON.stringify([algorithm, authData]).length > maxDescriptionLength) {
    throw tooLarge('The algorithm and auth_data of the backup are too large');
  }
  if (algorithm.includes('\0')) throw invalidParam('The algorithm must not contain U+0000');
}
