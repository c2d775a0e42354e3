import { federationPath } from '../../src/federation-client/index.ts';
import {
  type DatabaseOptions,
  type Migration,
  migrate,
  openDatabase,
} from '../../src/kernel/database/index.ts';
import { silentLogger } from '../../src/kernel/observability/index.ts';
import { makeTestDatabase, type OpenDatabase } from '../../test/support/databases/databases.ts';
import { SenderUnderTest, until } from '../../test/support/other-servers/federation-sender.ts';
import { alice } from '../../test/support/rooms/rooms.ts';
import { compare } from '../compare.ts';

/** Number of other servers in the room. */
const servers = 200;

/** Returns the body of a transaction with one event. */
const transactionText = (body: string) =>
  `{"edus":[],"origin":"test","origin_server_ts":1,"pdus":[{"body":"${body}"}]}`;

/**
 * Sends one message to all servers of a room, compared with the bare requests: discovery, signature, TLS. The
 * servers and the sender share this process.
 */
export async function fanOut(kind: DatabaseOptions['kind']): Promise<void> {
  const test = await SenderUnderTest.open(openerOf(kind));
  const names = Array.from({ length: servers }, (_, index) => `s${index}.example`);
  const recipient = await test.recipient(names[0]!, ...names.slice(1));
  const roomId = await test.rooms.room(alice, ...names.map((name) => `@user:${name}`));
  await test.sender.eventsQueued();
  let sent = 0;
  /** Returns a function that waits until `count` further transactions have arrived. */
  const arrivalOf = async (count: number) => {
    const before = recipient.arrived.length;
    return () => until(() => recipient.arrived.length >= before + count);
  };
  await until(() => test.sender.status.pendingPdus === 0);
  await compare({
    name: `one event to ${servers} servers`,
    count: servers,
    unit: 'deliveries',
    work: async () => {
      const allArrived = await arrivalOf(servers);
      await test.rooms.say(alice, roomId, `message ${++sent}`);
      await allArrived();
    },
    plain: async () => {
      const text = transactionText(`plain ${++sent}`.padEnd(600, '.'));
      await Promise.all(
        names.map((destination) =>
          test.client.requests.request({
            destination,
            method: 'PUT',
            path: federationPath`/_proto/federation/v1/send/${`plain${sent}`}`,
            bodyText: text,
            retry: 'none',
          }),
        ),
      );
    },
  });
  await test.close();
}

/** Returns a function that opens a new database. */
function openerOf(kind: DatabaseOptions['kind']): OpenDatabase {
  const unsupported = () => {
    throw new Error('the bench does not need this');
  };
  const open = async (migrations: readonly Migration[] = []) => {
    const testDatabase = await makeTestDatabase(kind);
    const database = await openDatabase(testDatabase.options, { log: silentLogger });
    await migrate(database, migrations);
    return database;
  };
  return Object.assign(open, { kind, restart: unsupported, openAgain: unsupported, optionsOf: unsupported });
}
