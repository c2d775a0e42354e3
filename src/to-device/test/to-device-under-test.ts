import type { OpenDatabase } from '../../../test/support/databases/databases.ts';
import { AccountsServer, type LoggedInUser } from '../../../test/support/servers/accounts-server.ts';
import { OwnedRows } from '../../kernel/slices/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { toDeviceManifest, toDeviceMigrations, toDeviceRoutes } from '../index.ts';
import { MessageQueues } from '../queues.ts';
import { type OutgoingMessages, ToDevice } from '../to-device.ts';

type RemoteMessage = { messageId: string; messages: OutgoingMessages['messages'] };

/** A server with to-device messages. Collects the messages for remote users. */
export class ToDeviceUnderTest {
  readonly remote: RemoteMessage[] = [];
  server!: AccountsServer;
  queues!: MessageQueues;
  toDevice!: ToDevice;
  #transactions = 0;

  static async start(
    open: OpenDatabase,
    bounds?: { maxQueueLength: number; checkEvery: number },
  ): Promise<ToDeviceUnderTest> {
    const fixture = new ToDeviceUnderTest();
    fixture.server = await AccountsServer.start(open, {
      migrations: toDeviceMigrations,
      extensions: ({ database, caches }) => {
        fixture.queues = new MessageQueues(database, caches, bounds);
        return { devices: { cleanups: [new OwnedRows([toDeviceManifest])] } };
      },
      routes: ({ devices }, { streams, clock, caches }) => {
        const { queues, remote } = fixture;
        const enqueue = async (_writer: unknown, _publish: unknown, message: RemoteMessage) => {
          remote.push(message);
        };
        fixture.toDevice = new ToDevice({
          streams,
          clock,
          caches,
          devices,
          queues,
          serverName: 'test',
          remote: { enqueue },
        });
        return toDeviceRoutes(fixture.toDevice);
      },
    });
    return fixture;
  }

  /** Sends messages with a request. */
  readonly put = (
    { token }: LoggedInUser,
    messages: unknown,
    { type = 'm.x', txnId = `t${this.#transactions++}` } = {},
  ) =>
    this.server.call('PUT', `/sendToDevice/${encodeURIComponent(type)}/${txnId}`, {
      token,
      body: { messages },
    });

  /** Sends the message `{ n }` to all devices of a user, without a request. */
  readonly sendOne = (to: LoggedInUser, n: number) =>
    this.toDevice.send({
      sender: to.userId,
      origin: { name: to.userId, deviceId: to.deviceId },
      txnId: `n${n}`,
      type: 'm.x',
      messages: new Map([[to.userId, new Map([['*', { n }]])]]),
    });

  /** Returns the queued messages of a device after a position, and the position up to which they were read. */
  readonly pending = async ({ userId, deviceId }: LoggedInUser, limit = 100, after = 0) => {
    const { messages, position } = await this.queues.pending(userId, deviceId, {
      after,
      upTo: this.server.streams.current,
      limit,
    });
    return { position, events: messages.map((text) => JSON.parse(text) as Record<string, JsonObject>) };
  };

  /** Returns the `n` of the queued messages of a device. */
  readonly queuedNumbers = async (user: LoggedInUser) =>
    (await this.pending(user)).events.map(({ content }) => content!['n']);

  /** Counts the rows of a table. */
  readonly rows = async (table: 'to_device_messages' | 'to_device_transactions') => {
    const reader = this.server.database.reader<Record<typeof table, { n: number }>>();
    const counted = await reader
      .selectFrom(table)
      .select(({ fn }) => fn.countAll().as('n'))
      .executeTakeFirstOrThrow();
    return Number(counted.n);
  };
}
