import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { sql } from 'kysely';
import { type Database, DatabaseOverloaded, openDatabase } from '../kernel/database/index.ts';
import { silentLogger } from '../kernel/observability/index.ts';
import { describeOutage, outageForClient, startFailureOf } from './outages.ts';

describe('outages', () => {
  let folder = '';
  let database: Database;
  let diskFullError: unknown;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'hearth-outages-'));
    const path = join(folder, 'small.db');
    database = await openDatabase({ kind: 'sqlite', path, flush: 'never' }, { log: silentLogger });
    await database.batch([{ sql: 'create table t (text text)', rows: [[]] }]);
    await database.transaction((writer) => sql.raw('pragma max_page_count = 10').execute(writer));
    diskFullError = await database
      .batch([{ sql: 'insert into t values (?)', rows: [['x'.repeat(200_000)]] }])
      .catch((error: unknown) => error);
  });
  after(async () => {
    await database.close();
    rmSync(folder, { recursive: true });
  });
  /** Returns the error of a connection to a port where no database listens. */
  const connectionError = () =>
    openDatabase({ kind: 'postgres', host: '127.0.0.1', port: 1 }, { log: silentLogger }).catch(
      (error: Error) => error.cause,
    );

  it('outageForClient returns 507 for a full disk: M_RESOURCE_LIMIT_EXCEEDED with the configured admin contact, or M_UNKNOWN when none is configured', () => {
    const error = outageForClient(diskFullError, 'mailto:a@example.org');
    assert.deepEqual([error?.status, error?.errcode], [507, 'M_RESOURCE_LIMIT_EXCEEDED']);
    assert.equal(error?.extra['admin_contact'], 'mailto:a@example.org');
    const plain = outageForClient(new Error('wrapped', { cause: diskFullError }), null);
    assert.deepEqual([plain?.status, plain?.errcode], [507, 'M_UNKNOWN']);
    assert.match(plain?.message ?? '', /disk of this server is full/);
    const file = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
    assert.equal(outageForClient(file, null)?.status, 507);
    assert.equal(describeOutage(diskFullError), 'the disk is full');
  });

  it('outageForClient returns 503 with a message and Retry-After while the database is not available or overloaded', async () => {
    for (const error of [await connectionError(), new DatabaseOverloaded('too many')]) {
      const found = outageForClient(error, null);
      assert.equal(found?.status, 503, String(error));
      assert.match(found?.message ?? '', /database of this server is not available/);
      assert.equal(found?.headers['Retry-After'], '5');
      assert.equal(describeOutage(error), 'the database is not available');
    }
  });

  it('outageForClient returns undefined for programming errors', () => {
    assert.equal(outageForClient(new TypeError('x is not a function'), null), undefined);
  });

  it('startFailureOf names the database whose disk is full, and returns programming errors unchanged', async () => {
    const options = { kind: 'sqlite' as const, path: '/var/lib/hearth/homeserver.db' };
    assert.match(
      String(startFailureOf(diskFullError, options)),
      /the database \/var\/lib\/hearth\/homeserver\.db cannot be written because its disk is full/,
    );
    const mistake = new TypeError('x');
    assert.equal(startFailureOf(mistake, options), mistake);
  });
});
