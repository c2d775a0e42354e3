import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../clients/eventually.ts';
import { LoginRole } from './login-role.ts';
import { PostgresDatabases, type ServerOnDatabases, twoDatabases } from './server-on-databases.ts';

/** Sends a request whose response is not cached, so that it reads from the database. */
const readDevices = async (server: ServerOnDatabases, token: string) =>
  assert.equal((await server.api('GET', 'devices', token)).status, 200);

/** Sends a message to a device of another server: its transaction must need no second connection. */
const sendToRemoteDevice = async (server: ServerOnDatabases, token: string) => {
  const messages = { '@x:elsewhere.test': { '*': {} } };
  const sent = await server.api('PUT', 'sendToDevice/org.example/1', token, { messages });
  assert.equal(sent.status, 200);
};

/**
 * Checks that a server with `cp_min: 12` and `cp_max: 12` keeps its connections. Scans and the lease use up to three
 * more.
 */
async function assertConnectionsKept(role: LoginRole, server: ServerOnDatabases, token: string) {
  const first = await role.connections();
  for (let round = 0; round < 3; round += 1)
    await Promise.all(Array.from({ length: 12 }, () => readDevices(server, token)));
  const later = await role.connections();
  assert.ok(later.length <= 15, `${later.length} connections`);
  const kept = first.filter((pid) => later.includes(pid)).length;
  assert.ok(kept >= 12, `${kept} of ${first.length} connections are left`);
}

/** Checks that a server with `cp_max: 1` and `txn_limit: 3` replaces its connections while it does the work. */
async function assertConnectionsReplaced(role: LoginRole, work: () => Promise<unknown>) {
  const sessionsBefore = await role.sessions();
  await work();
  const { length } = await role.connections();
  assert.ok(length <= 4, `${length} connections with cp_max: 1`);
  await eventually('new connections', async () => (await role.sessions()) >= sessionsBefore + 4);
}

describe('the connections of a server to PostgreSQL', () => {
  let databases: PostgresDatabases;
  before(async () => {
    databases = await PostgresDatabases.open();
  });
  after(() => databases.close());

  it('connects to each of two databases with the configured user and password, keeps from cp_min to cp_max connections open, and renews them after txn_limit transactions [option: databases.*.name, databases.*.txn_limit, databases.*.args.database, databases.*.args.user, databases.*.args.password, databases.*.args.dbname, databases.*.args.host, databases.*.args.port, databases.*.args.cp_min, databases.*.args.cp_max]', async () => {
    const main = await databases.empty();
    const state = await databases.empty();
    let server = await databases.start(twoDatabases(main, state));
    const token = await server.register('ann');
    const room = await server.createRoom(token);
    await server.stop();
    const mainRole = await LoginRole.create(main, 'two_main');
    const stateRole = await LoginRole.create(state, 'two_state');
    try {
      const first = mainRole.entry({ cp_min: 12, cp_max: 12 }, 0);
      const { dbname, ...fewArgs } = stateRole.entry({ cp_min: 0, cp_max: 1 }, 0).args;
      const configured = (password: string) => ({
        database: null,
        databases: {
          first: { ...first, args: { ...first.args, password }, data_stores: ['main'] },
          second: { ...first, txn_limit: 3, args: { ...fewArgs, database: dbname }, data_stores: ['state'] },
        },
      });
      await assert.rejects(
        databases.start(configured('wrong')),
        /password authentication failed for user "two_main"/,
      );
      server = await databases.start(configured(mainRole.password));
      await assertConnectionsKept(mainRole, server, token);
      await assertConnectionsReplaced(stateRole, async () => {
        for (let number = 0; number < 12; number += 1) await server.setTopic(token, room, `Again ${number}`);
      });
      await server.stop();
    } finally {
      await databases.stopServer();
      await mainRole.remove();
      await stateRole.remove();
    }
  });

  it('connects to a single database with the configured user and password, keeps from cp_min to cp_max connections open, and renews them after txn_limit transactions [option: database.txn_limit, database.args.user, database.args.password, database.args.dbname, database.args.host, database.args.port, database.args.cp_min, database.args.cp_max]', async () => {
    const onlyDatabase = await databases.migrated();
    const role = await LoginRole.create(onlyDatabase, 'two_only');
    try {
      const configured = (args: object, limit = 0) => ({ database: role.entry(args, limit), databases: {} });
      await assert.rejects(
        databases.start(configured({ password: 'wrong' })),
        /password authentication failed/,
      );
      let server = await databases.start(configured({ cp_min: 12, cp_max: 12 }));
      const user = await server.register('ann');
      await assertConnectionsKept(role, server, user);
      await server.stop();
      server = await databases.start(configured({ cp_max: 1 }, 3));
      await assertConnectionsReplaced(role, () =>
        Promise.all(Array.from({ length: 30 }, () => readDevices(server, user))),
      );
      await sendToRemoteDevice(server, user);
      await server.stop();
    } finally {
      await databases.stopServer();
      await role.remove();
    }
  });
});
