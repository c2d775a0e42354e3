import { hearthGoal } from '../goals.ts';
import { type Account, registerAccounts } from '../load/account.ts';
import type { Scenario } from '../scenario.ts';
import type { OwnProcess } from '../target.ts';
import { sampleText } from './sample-text.ts';

interface Setup {
  readonly server: OwnProcess;
  readonly client: Account;
}

const messageCount = 5_000;

/**
 * Growth of the database per message, compared with the size of the message's event in the federation format.
 */
export const storage: Scenario<Setup> = {
  name: 'storage',
  targets: ['hearth'],
  async prepare(target) {
    const [client] = await registerAccounts(target, 1);
    if (!target.process)
      throw new Error('the database size of a server that the bench did not start is unknown');
    return { server: target.process, client: client! };
  },
  loads: [
    {
      name: 'storage',
      title: 'database bytes per message event',
      operation: 'sends',
      runsOnce: true,
      goals: [
        hearthGoal(
          "times the event's own JSON",
          { atMost: 1.5 },
          ({ figures }) => figures['databaseBytes']! / figures['eventBytes']!,
        ),
      ],
      async run({ server, client }) {
        const room = await client.createPublicRoom();
        const before = await server.databaseBytes();
        const startedAt = performance.now();
        for (let count = 0; count < messageCount; count++) await client.send(room, sampleText);
        const seconds = (performance.now() - startedAt) / 1000;
        const after = await server.databaseBytes();
        const databaseBytes = (after - before) / messageCount;
        return {
          operations: messageCount,
          seconds,
          latencies: [],
          figures: { databaseBytes, eventBytes: await eventBytes(client, room) },
        };
      },
    },
  ],
  dispose({ client }) {
    client.connection.close();
  },
};

/**
 * Returns the size in bytes of the room's last event in the format that is signed and sent to other servers.
 */
async function eventBytes(client: Account, room: string): Promise<number> {
  const filter = JSON.stringify({
    event_format: 'federation',
    room: { rooms: [room], timeline: { limit: 1 } },
  });
  const answer = JSON.parse((await client.sync({ filter, timeout: '0' })).toString()) as SyncAnswer;
  const event = answer.rooms.join[room]?.timeline.events.at(-1);
  if (!event?.['signatures']) throw new Error('the server does not support the event format "federation"');
  const { unsigned, ...signedEvent } = event;
  return Buffer.byteLength(JSON.stringify(signedEvent));
}

/** The part of a sync response that `eventBytes` reads. */
interface SyncAnswer {
  readonly rooms: {
    readonly join: Record<string, { timeline: { events: Record<string, unknown>[] } }>;
  };
}
