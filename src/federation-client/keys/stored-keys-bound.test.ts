import assert from 'node:assert/strict';
import { it } from 'node:test';
import { forEachDatabase } from '../../../test/support/databases/databases.ts';
import { newSigningKey } from '../../../test/support/inputs/signing-key.ts';
import type { Database } from '../../kernel/database/index.ts';
import { keyMigrations } from './migrations.ts';
import { markForEvents, saveResponse } from './store.ts';
import { StoredKeysBound } from './stored-keys-bound.ts';
import type { KeyTables } from './tables.ts';

const { publicKey } = newSigningKey('a');
const keyId = 'ed25519:a';

/** Stores the key of a server from a response of `bytes` bytes that arrived at `time`. */
const save = (database: Database, serverName: string, time: number, bytes = 10) =>
  database.transaction<KeyTables, unknown>((writer) => {
    const keys = new Map([[keyId, { key: publicKey, validUntilTs: 9, expiredTs: undefined }]]);
    return saveResponse(writer, { serverName, keys, text: 'ü'.repeat(bytes / 2) }, true, time);
  });

forEachDatabase((open) => {
  it('StoredKeysBound deletes keys above the bound, beginning with the oldest that have verified no event', async () => {
    const database = await open(keyMigrations);
    const bound = new StoredKeysBound(database, { maxKeys: 40, maxTextBytes: 1_000_000 });
    const stored = async () => {
      const rows = await database
        .reader<KeyTables>()
        .selectFrom('server_keys')
        .select('server_name')
        .execute();
      return rows.map(({ server_name }) => server_name).sort();
    };
    for (let time = 10; time < 50; time++) await save(database, `${time}.test`, time);
    await database.batch([{ sql: markForEvents, rows: [['10.test', keyId]] }]);
    await bound.added(1, 10);
    assert.equal((await stored()).length, 40);
    await save(database, '50.test', 50);
    await bound.added(2, 10);
    assert.equal((await stored()).length, 41, 'the rows are not counted for each response');
    await bound.added(1, 10);
    const remaining = Array.from({ length: 37 }, (_, index) => `${index + 14}.test`);
    assert.deepEqual(await stored(), ['10.test', ...remaining]);
  });

  it('StoredKeysBound deletes the oldest responses above the bound of bytes, and no keys', async () => {
    const database = await open(keyMigrations);
    const bound = new StoredKeysBound(database, { maxKeys: 1_000, maxTextBytes: 1_000 });
    for (let time = 10; time < 21; time++) await save(database, `${time}.test`, time, 100);
    await bound.added(1, 100);
    const tables = database.reader<KeyTables>();
    const texts = await tables.selectFrom('server_key_responses').select('server_name').execute();
    assert.deepEqual(
      texts.map(({ server_name }) => server_name).sort(),
      Array.from({ length: 9 }, (_, index) => `${index + 12}.test`),
    );
    assert.equal((await tables.selectFrom('server_keys').select('key_id').execute()).length, 11);
  });
});
