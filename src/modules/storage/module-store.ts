import type { Clock } from '../../kernel/clock.ts';
import type { Database, Reader, Writer } from '../../kernel/database/index.ts';
import { KeyedMutex } from '../../kernel/keyed-mutex.ts';
import type { JsonValue } from '../../protocol/index.ts';
import type { ModuleStore, StoreChange, StoreEntry, StoreMigration } from '../api/index.ts';
import type { ModuleTables } from '../tables.ts';

/** Maximum bytes of a key. */
const maxKeyBytes = 500;

/** Maximum bytes of a value as JSON. */
const maxValueBytes = 1024 * 1024;

/** Maximum number of changes of one call, and of listed values. */
const maxEntries = 1_000;

const storeName = /^[a-z0-9._-]{1,64}$/;

export interface ModuleStoresDeps {
  readonly database: Database;
  readonly clock: Clock;
}

/** Opens the stores of modules. */
export class ModuleStores {
  readonly #deps: ModuleStoresDeps;
  /** Runs the migrations of one store, or its changes, one at a time. */
  readonly #mutex = new KeyedMutex();

  constructor(deps: ModuleStoresDeps) {
    this.#deps = deps;
  }

  /** @throws Error for an invalid name, and the errors of migrations */
  async open(name: string, migrations: readonly StoreMigration[] = []): Promise<ModuleStore> {
    if (!storeName.test(name))
      throw new Error(`'${name}' is not a name of a store, which must match ${storeName.source}`);
    const store = new DatabaseStore(name, this.#deps.database, this.#mutex);
    await this.#mutex.run(`migrations ${name}`, async () => {
      const applied = await this.#appliedMigrations(name);
      for (const migration of migrations) {
        if (applied.has(migration.name)) continue;
        await migration.up(store);
        await this.#recordMigration(name, migration.name);
        applied.add(migration.name);
      }
    });
    return store;
  }

  async #appliedMigrations(store: string): Promise<Set<string>> {
    const rows = await this.#deps.database
      .reader<ModuleTables>()
      .selectFrom('module_store_migrations')
      .select('name')
      .where('store', '=', store)
      .execute();
    return new Set(rows.map(({ name }) => name));
  }

  async #recordMigration(store: string, name: string): Promise<void> {
    const { database, clock } = this.#deps;
    await database.transaction<ModuleTables, void>(async (writer) => {
      await writer
        .insertInto('module_store_migrations')
        .values({ store, name, applied_ts: clock.now() })
        .execute();
    });
  }
}

class DatabaseStore implements ModuleStore {
  readonly #name: string;
  readonly #database: Database;
  readonly #mutex: KeyedMutex;

  constructor(name: string, database: Database, mutex: KeyedMutex) {
    this.#name = name;
    this.#database = database;
    this.#mutex = mutex;
  }

  get(key: string): Promise<JsonValue | undefined> {
    return readEntry(this.#database.reader<ModuleTables>(), this.#name, encodeKey(key));
  }

  set(key: string, value: JsonValue): Promise<void> {
    return this.write([{ key, value }]);
  }

  delete(key: string): Promise<void> {
    return this.write([{ key, value: undefined }]);
  }

  async write(changes: readonly StoreChange[]): Promise<void> {
    if (changes.length > maxEntries) throw new Error(`A store makes at most ${maxEntries} changes at once`);
    const encoded = changes.map(({ key, value }) => [encodeKey(key), encodeValue(value)] as const);
    await this.#change(async (writer) => {
      for (const [key, value] of encoded) await writeEntry(writer, this.#name, key, value);
    });
  }

  async update(
    key: string,
    change: (value: JsonValue | undefined) => JsonValue | undefined,
  ): Promise<JsonValue | undefined> {
    const encoded = encodeKey(key);
    return this.#mutex.run(this.#name, async () => {
      const reader = this.#database.reader<ModuleTables>();
      const value = change(await readEntry(reader, this.#name, encoded));
      const text = encodeValue(value);
      await this.#database.transaction<ModuleTables, void>((writer) =>
        writeEntry(writer, this.#name, encoded, text),
      );
      return value;
    });
  }

  async list({
    prefix = '',
    after = '',
    limit = 100,
  }: Parameters<ModuleStore['list']>[0] = {}): Promise<StoreEntry[]> {
    const [firstKey, lastKnown] = [hexOf(prefix), hexOf(after)];
    const rows = await this.#database
      .reader<ModuleTables>()
      .selectFrom('module_entries')
      .select(['entry_key', 'value'])
      .where('store', '=', this.#name)
      .where('entry_key', '>=', firstKey)
      // `g` comes after all hexadecimal digits.
      .where('entry_key', '<', `${firstKey}g`)
      .where('entry_key', '>', lastKnown)
      .orderBy('entry_key')
      .limit(Math.min(Math.max(1, limit), maxEntries))
      .execute();
    return rows.map(({ entry_key, value }) => ({
      key: Buffer.from(entry_key, 'hex').toString(),
      value: JSON.parse(value) as JsonValue,
    }));
  }

  /** Runs a change, one at a time in each store. */
  #change(work: (writer: Writer<ModuleTables>) => Promise<void>): Promise<void> {
    return this.#mutex.run(this.#name, () => this.#database.transaction<ModuleTables, void>(work));
  }
}

async function readEntry(
  reader: Reader<ModuleTables>,
  store: string,
  key: string,
): Promise<JsonValue | undefined> {
  const row = await reader
    .selectFrom('module_entries')
    .select('value')
    .where('store', '=', store)
    .where('entry_key', '=', key)
    .executeTakeFirst();
  return row && (JSON.parse(row.value) as JsonValue);
}

/** @param value as JSON; `undefined` deletes the entry */
async function writeEntry(
  writer: Writer<ModuleTables>,
  store: string,
  key: string,
  value: string | undefined,
): Promise<void> {
  if (value === undefined) {
    await writer
      .deleteFrom('module_entries')
      .where('store', '=', store)
      .where('entry_key', '=', key)
      .execute();
    return;
  }
  await writer
    .insertInto('module_entries')
    .values({ store, entry_key: key, value })
    .onConflict((conflict) => conflict.columns(['store', 'entry_key']).doUpdateSet({ value }))
    .execute();
}

const hexOf = (text: string) => Buffer.from(text).toString('hex');

function encodeKey(key: string): string {
  const bytes = Buffer.byteLength(key);
  if (bytes === 0 || bytes > maxKeyBytes) throw new Error(`A key has between 1 and ${maxKeyBytes} bytes`);
  return hexOf(key);
}

function encodeValue(value: JsonValue | undefined): string | undefined {
  if (value === undefined) return undefined;
  const text: string | undefined = JSON.stringify(value);
  if (text === undefined) throw new TypeError('The value is not JSON');
  if (Buffer.byteLength(text) > maxValueBytes) {
    throw new Error(`A value has at most ${maxValueBytes} bytes as JSON`);
  }
  return text;
}
