import assert from 'node:assert/strict';
import { it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { migrate } from '../../kernel/database/index.ts';
import { keyMigrations } from './migrations.ts';
import { readKey, readKeysInResponses, readTexts } from './store.ts';
import type { KeyTables } from './tables.ts';

const publicKey = 'IlPCPkArrFbnZVE/rQlVFe8FlX1qbFgBcJFfVu7aGDw';

forSelectedDatabases(import.meta.url, (open) => {
  it('keyMigrations move the newest stored responses of each server into rows of their own, and keep all keys', async () => {
    const database = await open(keyMigrations.slice(0, 1));
    const rows = [
      ...['a', 'b', 'c'].map((key) => ['a.example', key, 'shared', 50]),
      ['a.example', 'd', 'own', 60],
      ['b.example', 'a', 'shared', 10],
      ['b.example', 'long', '.'.repeat(100_000), 20],
      ...[1, 2, 3, 4, 5, 6].map((time) => ['c.example', `${time}`, `text ${time}`, time]),
    ];
    await database.batch([
      {
        sql: `insert into server_keys (server_name, key_id, public_key, valid_until_ts, expired_ts, fetched_ts, response)
          values (?, ?, ?, 9, null, ?, ?)`,
        rows: rows.map(([server, key, text, time]) => [server!, `ed25519:${key}`, publicKey, time!, text!]),
      },
    ]);
    await migrate(database, keyMigrations);
    const reader = database.reader<KeyTables>();
    const textsOf = async (server: string) => {
      const keys = await readKeysInResponses(reader, server);
      const ids = [...new Set(keys.map(({ responseId }) => responseId))];
      return [keys.map(({ keyId }) => keyId), await readTexts(reader, server, ids)];
    };
    assert.deepEqual(await textsOf('a.example'), [
      ['ed25519:d', 'ed25519:a', 'ed25519:b', 'ed25519:c'],
      ['own', 'shared'],
    ]);
    assert.deepEqual(await textsOf('b.example'), [['ed25519:a'], ['shared']]);
    assert.deepEqual(await textsOf('c.example'), [
      ['ed25519:6', 'ed25519:5', 'ed25519:4', 'ed25519:3'],
      ['text 6', 'text 5', 'text 4', 'text 3'],
    ]);
    for (const [server, key] of rows) {
      assert.equal((await readKey(reader, `${server}`, `ed25519:${key}`))?.key.base64, publicKey);
    }
  });
});
