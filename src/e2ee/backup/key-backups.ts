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
  updateKeys,
} from './version-store.ts';

/** What a client says about a backup. */
export interface BackupDescription {
  readonly algorithm: string;
  readonly authData: JsonObject;
}

/** The state of a backup after its keys have changed. */
export interface BackupState {
  readonly etag: string;
  readonly count: number;
}

/** Backups that a user may have at a time, keys in each, and UTF-16 units of what describes one. */
const [maxBackups, maxKeys, largestDescription] = [100, 1_000_000, 65_536];

/** How many keys are read at a time. */
const pageSize = 1_000;

const noBackup = () => notFound('There is no such backup');

/** Encrypted keys that users keep on the server. Source: client-server API, "Server-side key backups". */
export class KeyBackups {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Begins a new backup. @returns its version */
  create(userId: string, { algorithm, authData }: BackupDescription): Promise<string> {
    checkSize({ algorithm, authData });
    return this.#write(async (writer) => {
      const version = (await readLastVersion(writer, userId)) + 1;
      if ((await countBackups(writer, userId)) >= maxBackups) {
        throw tooLarge(`You have ${maxBackups} backups: delete one first`);
      }
      await insertBackup(writer, userId, { version, algorithm, authData });
      return String(version);
    });
  }

  /** @param version the current one when absent. @throws MatrixError M_NOT_FOUND */
  async get(userId: string, version?: string): Promise<Backup> {
    const number = version === undefined ? undefined : numberOf(version);
    const backup = await readBackup(this.#reader, userId, number);
    if (!backup) throw noBackup();
    return backup;
  }

  /** Replaces what describes a backup. Throws MatrixError M_NOT_FOUND, M_INVALID_PARAM for another algorithm. */
  async update(userId: string, version: string, { algorithm, authData }: BackupDescription): Promise<void> {
    checkSize({ algorithm, authData });
    await this.#write(async (writer) => {
      const backup = await find(writer, userId, version);
      if (backup.algorithm !== algorithm) throw invalidParam('The algorithm does not match');
      await updateAuthData(writer, userId, backup.version, authData);
    });
  }

  /** Deletes a backup with its keys; one that was deleted before is fine. @throws MatrixError M_NOT_FOUND */
  async delete(userId: string, version: string): Promise<void> {
    const number = numberOf(version);
    await this.#write(async (writer) => {
      if (number > (await readLastVersion(writer, userId))) throw noBackup();
      await deleteBackup(writer, userId, number);
    });
  }

  /**
   * Stores those keys that are better than the ones that are there.
   * @throws MatrixError M_WRONG_ROOM_KEYS_VERSION with the current one, M_NOT_FOUND when there is no backup
   */
  put(userId: string, version: string, keys: readonly SessionKey[]): Promise<BackupState> {
    return this.#write(async (writer) => {
      const backup = await readBackup(writer, userId);
      if (!backup) throw noBackup();
      if (String(backup.version) !== version) throw wrongVersion(backup);
      const name = { userId, version: backup.version };
      const present = new Map<string, SessionKey>();
      for (const [roomId, ofRoom] of Map.groupBy(keys, ({ roomId }) => roomId)) {
        const ids = ofRoom.map(({ sessionId }) => sessionId);
        for (const key of await findKeys(writer, name, roomId, ids)) present.set(nameOf(key), key);
      }
      const better = keys.filter((key) => {
        const known = present.get(nameOf(key));
        return known === undefined || isBetter(key, known);
      });
      if (better.length === 0) return stateOf(backup);
      const count = backup.count + better.filter((key) => !present.has(nameOf(key))).length;
      if (count > maxKeys) throw tooLarge(`A backup has at most ${maxKeys} keys`);
      await writeKeys(writer, name, better);
      return changed(writer, userId, backup, count);
    });
  }

  /** One key. @throws MatrixError M_NOT_FOUND */
  async key(userId: string, version: string, roomId: string, sessionId: string): Promise<SessionKey> {
    const backup = await find(this.#reader, userId, version);
    const name = { userId, version: backup.version };
    const [key] = await findKeys(this.#reader, name, roomId, [sessionId]);
    if (!key) throw notFound('There is no such key');
    return key;
  }

  /** The keys of one room as JSON: `{sessions}`. @throws MatrixError M_NOT_FOUND */
  async room(userId: string, version: string, roomId: string): Promise<Readable> {
    const backup = await find(this.#reader, userId, version);
    return Readable.from(this.#sessionsText({ userId, version: backup.version }, { roomId }));
  }

  /** All keys as JSON: `{rooms}` to `{sessions}`. There may be very many: they are read as the client takes them. */
  async rooms(userId: string, version: string): Promise<Readable> {
    const backup = await find(this.#reader, userId, version);
    return Readable.from(this.#roomsText({ userId, version: backup.version }));
  }

  /** Deletes keys. @throws MatrixError M_NOT_FOUND when there is no such backup */
  deleteKeys(userId: string, version: string, range: KeyRange): Promise<BackupState> {
    return this.#write(async (writer) => {
      const backup = await find(writer, userId, version);
      const deleted = await deleteKeys(writer, { userId, version: backup.version }, range);
      return deleted === 0 ? stateOf(backup) : changed(writer, userId, backup, backup.count - deleted);
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

async function find(reader: Reader<E2eeTables>, userId: string, version: string): Promise<Backup> {
  const backup = await readBackup(reader, userId, numberOf(version));
  if (!backup) throw noBackup();
  return backup;
}

async function changed(
  writer: Writer<E2eeTables>,
  userId: string,
  backup: Backup,
  count: number,
): Promise<BackupState> {
  await updateKeys(writer, userId, backup, count);
  return stateOf({ ...backup, etag: backup.etag + 1, count });
}

const stateOf = ({ etag, count }: Backup): BackupState => ({ etag: String(etag), count });

const nameOf = ({ roomId, sessionId }: SessionKey) => `${roomId}\0${sessionId}`;

function wrongVersion({ version }: Backup): MatrixError {
  const extra = { current_version: String(version) };
  return new MatrixError(403, 'M_WRONG_ROOM_KEYS_VERSION', 'This is not the current backup', extra);
}

function numberOf(version: string): number {
  if (!/^[1-9]\d{0,14}$/.test(version)) throw noBackup();
  return Number(version);
}

function checkSize({ algorithm, authData }: BackupDescription): void {
  if (JSON.stringify([algorithm, authData]).length > largestDescription) {
    throw tooLarge('The description of the backup is too large');
  }
  if (algorithm.includes('\0')) throw invalidParam('An algorithm must not hold U+0000');
}
