import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, it } from 'node:test';
import { silentLogger } from '../../observability/index.ts';
import { type Database, openDatabase } from '../index.ts';
import { copySqliteFile } from './copy.ts';

describe('copySqliteFile', () => {
  let folder = '';
  let database: Database;
  const source = () => join(folder, 'source.db');
  let lastId = 0;
  const insert = async (text: string) => {
    lastId += 1;
    const id = lastId;
    await database.batch([{ sql: 'insert into t (id, text) values (?, ?)', rows: [[id, text]] }]);
    return id;
  };
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'hearth-copy-'));
    database = await openDatabase({ kind: 'sqlite', path: source(), flush: 'never' }, { log: silentLogger });
    await database.batch([{ sql: 'create table t (id bigint primary key, text text)', rows: [[]] }]);
    const rows = Array.from({ length: 6_000 }, (_, index) => [index + 1, 'x'.repeat(4_000)]);
    await database.batch([{ sql: 'insert into t (id, text) values (?, ?)', rows }]);
    lastId = rows.length;
  });
  after(async () => {
    await database.close();
    rmSync(folder, { recursive: true });
  });

  it('completes although the server writes after each of its steps, and the copy contains everything that was committed before it began', async () => {
    const target = join(folder, 'copy.db');
    const committed = await insert('before');
    let writing: Promise<unknown> = Promise.resolve();
    let steps = 0;
    let written = 0;
    await copySqliteFile({ source: source(), target }, ({ copied, total }) => {
      steps += 1;
      assert.ok(copied <= total);
      writing = writing
        .then(() => insert('meanwhile'))
        .then(() => {
          written += 1;
        });
    });
    const writtenMeanwhile = written;
    await writing;
    assert.ok(steps > 10, `${steps} steps`);
    assert.ok(writtenMeanwhile > 0, 'writes were committed during the copy');
    const copy = new DatabaseSync(target, { readOnly: true });
    assert.deepEqual({ ...copy.prepare('pragma integrity_check').get() }, { integrity_check: 'ok' });
    const ids = copy.prepare('select id from t where id <= ?').all(committed);
    assert.equal(ids.length, committed);
    copy.close();
    assert.equal(statSync(target).mode & 0o077, 0);
    assert.deepEqual(
      readdirSync(folder).filter((name) => name.startsWith('copy')),
      ['copy.db'],
    );
  });

  it('leaves no file when the copy is cancelled or cannot be written', async () => {
    const target = join(folder, 'cancelled.db');
    const cancelling = new AbortController();
    await assert.rejects(
      copySqliteFile(
        { source: source(), target },
        ({ copied }) => copied > 500 && cancelling.abort(),
        cancelling.signal,
      ),
      /cancelled/,
    );
    assert.equal(existsSync(target), false);
    await assert.rejects(
      copySqliteFile({ source: source(), target: join(folder, 'no', 'x.db') }, () => {}),
      /ENOENT/,
    );
  });

  it('never overwrites an existing file', async () => {
    const target = join(folder, 'precious');
    writeFileSync(target, 'mine');
    await assert.rejects(
      copySqliteFile({ source: source(), target }, () => {}),
      /EEXIST/,
    );
    assert.equal(statSync(target).size, 4);
  });
});
