import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Client } from 'pg';
import type { Migration } from '../../../src/kernel/database/index.ts';
import { forPostgres, portVariable } from './databases.ts';
import { lendPostgres } from './migrated-databases.ts';
import { connectionTo } from './postgres-server.ts';

const fruits: Migration = {
  name: 'test/0001-fruits',
  async up({ run }) {
    await run('create table fruits (name text not null)');
    await run('create index fruits_by_name on fruits (name)');
    await run("insert into fruits values ('apple')");
  },
};

forPostgres(() => {
  async function lend() {
    const port = Number(process.env[portVariable]);
    const { name, giveBack } = await lendPostgres([fruits], port);
    const client = new Client(connectionTo(port, name));
    await client.connect();
    return {
      name,
      run: (statement: string) => client.query(statement),
      async giveBack() {
        await client.end();
        await giveBack();
      },
    };
  }

  it('a database that a test gives back is lent to the next test with only the rows that its migrations wrote', async () => {
    const first = await lend();
    await first.run("insert into fruits values ('pear')");
    await first.run("update fruits set name = 'plum' where name = 'apple'");
    await first.giveBack();
    const second = await lend();
    const { rows } = await second.run('select name from fruits');
    await second.giveBack();
    assert.equal(second.name, first.name);
    assert.deepEqual(rows, [{ name: 'apple' }]);
  });

  for (const change of [
    'create table trees (name text)',
    'alter table fruits add colour text',
    'create index fruits_name on fruits (name)',
    'drop table fruits',
  ]) {
    it(`a database that a test gives back is not lent again after ${change}`, async () => {
      const first = await lend();
      await first.run(change);
      await first.giveBack();
      const second = await lend();
      await second.giveBack();
      assert.notEqual(second.name, first.name);
    });
  }

  it('a database that a test gives back is lent again after changes of its schema that were rolled back or had no effect', async () => {
    const first = await lend();
    await first.run('begin');
    await first.run('drop table fruits');
    await first.run('rollback');
    await first.run('create table if not exists fruits (name text)');
    await first.run('create index if not exists fruits_by_name on fruits (name)');
    await first.giveBack();
    const second = await lend();
    await second.giveBack();
    assert.equal(second.name, first.name);
  });
});
