import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { checkConfiguredDatabase } from '../../src/commands/database/check.ts';
import { measureDatabase } from '../../src/commands/database/size.ts';
import { openDatabase } from '../../src/kernel/database/index.ts';
import { silentLogger } from '../../src/kernel/observability/index.ts';
import { openContents } from '../support/databases/database-contents.ts';
import type { Postgres } from './login-role.ts';
import {
  countStateRows,
  databaseEntry,
  oneDatabase,
  PostgresDatabases,
  problems,
  type ServerOnDatabases,
  twoDatabases,
} from './server-on-databases.ts';
import { configure } from './server-process.ts';

describe('a server with two databases', () => {
  let databases: PostgresDatabases;
  let main: Postgres;
  let state: Postgres;
  let server: ServerOnDatabases;
  let token = '';
  let room = '';
  before(async () => {
    databases = await PostgresDatabases.open();
    main = await databases.empty();
    state = await databases.empty();
    server = await databases.start(twoDatabases(main, state));
    token = await server.register('ann');
    room = await server.createRoom(token);
  });
  after(() => databases.close());

  it('stores state groups in the database of the data store state, and events in that of the data store main [option: databases.*.data_stores]', async () => {
    assert.equal((await server.setTopic(token, room, 'First')).status, 200);
    await server.stop();
    assert.deepEqual(await countStateRows(main), [0, 0, 0]);
    assert.ok((await countStateRows(state)).every((count) => count > 0));
    const contents = await openContents(state);
    const tables = [...(await contents.columns()).keys()];
    await contents.close();
    assert.ok(tables.includes('schema_migrations') && tables.includes('jobs') && !tables.includes('events'));

    server = await databases.start(twoDatabases(main, state));
    assert.equal((await server.setTopic(token, room, 'Second')).status, 200);
    const members = await server.api('GET', `rooms/${room}/members`, token);
    assert.equal(members.status, 200, members.raw);
    await assert.rejects(
      databases.start(twoDatabases(await databases.empty(), state)),
      /is in use by another server/,
    );
  });

  it('answers 500 to events while the database of state groups cannot be written, 507 while the disk of PostgreSQL is full, and stores none of them', async () => {
    const connection = await openDatabase(state, { log: silentLogger });
    const run = (text: string) => connection.changeSchema((schema) => schema.run(text));
    await run('alter table state_groups rename to hidden_groups');
    const failed = await server.setTopic(token, room, 'Lost');
    assert.equal(failed.status, 500, failed.raw);
    await run('alter table hidden_groups rename to state_groups');
    await run(
      `create function fill() returns trigger language plpgsql as $$ begin raise exception 'could not extend file' using errcode = 'disk_full'; end $$`,
    );
    await run('create trigger fill before insert on state_groups for each row execute function fill()');
    const full = await server.setTopic(token, room, 'Lost, too');
    assert.equal(full.status, 507, full.raw);
    assert.match(String(full.body['error']), /disk of this server is full/);
    await run('drop trigger fill on state_groups');
    await connection.close();
    assert.equal((await server.setTopic(token, room, 'Stored')).status, 200);
    const topic = await server.api('GET', `rooms/${room}/state/m.room.topic`, token);
    assert.equal(topic.body['topic'], 'Stored');
  });

  it('writes state groups again when their events are written again after a failure', async () => {
    const otherRoom = await server.createRoom(token);
    const connection = await openDatabase(main, { log: silentLogger });
    const run = (text: string) => connection.changeSchema((schema) => schema.run(text));
    // The events of one room cannot be written, so that the batch of both rooms is repeated for each room.
    await run(
      `create function refuse() returns trigger language plpgsql as $$ begin raise exception 'unwanted'; end $$`,
    );
    await run(
      `create trigger refuse before insert on events for each row when (new.json like '%unwanted%') execute function refuse()`,
    );
    const answers = await Promise.all([
      server.setTopic(token, room, 'unwanted'),
      server.setTopic(token, otherRoom, 'wanted'),
    ]);
    assert.deepEqual(
      answers.map(({ status }) => status),
      [500, 200],
    );
    await run('drop trigger refuse on events');
    await connection.close();
    assert.deepEqual(await problems(main, state), []);
  });

  it('refuses to start on two databases that do not belong together, and on a single database of a pair', async () => {
    await server.stop();
    const mismatch = /do not belong together/;
    await assert.rejects(databases.start(twoDatabases(state, main)), mismatch);
    await assert.rejects(databases.start(twoDatabases(main, await databases.empty())), mismatch);
    await assert.rejects(databases.start(oneDatabase(main)), /has only the data store main/);
    await assert.rejects(databases.start(oneDatabase(state)), /has only the data store state/);
  });

  it('hearth database refuses to check or measure two databases that do not belong together', async () => {
    const exchanged = { config: configure(join(databases.folder, 'exchanged'), twoDatabases(state, main)) };
    const alone = { config: configure(join(databases.folder, 'alone'), { database: databaseEntry(main) }) };
    for (const command of [checkConfiguredDatabase, measureDatabase]) {
      await assert.rejects(command(exchanged), /do not belong together/);
      await assert.rejects(command(alone), /has only the data store main/);
    }
  });
});
