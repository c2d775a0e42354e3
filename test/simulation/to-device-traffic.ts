import { attempt } from './attempt.ts';
import type { Dice } from './random.ts';
import type { SimulatedServer } from './server.ts';
import type { Run } from './server-process.ts';
import type { World } from './world.ts';

/** A to-device message. */
interface SentMessage {
  readonly id: string;
  /** User id of the sender. */
  readonly from: string;
  /** The server of the sender. */
  readonly server: SimulatedServer;
  /** User id of the recipient. */
  readonly to: string;
  /** When it was sent, in simulated milliseconds. */
  readonly sentAt: number;
  /** When the server first acknowledged it, in simulated milliseconds. */
  acceptedAt: number | undefined;
}

/** The device that every user has during the whole simulation. */
export const homeDeviceId = 'HOME';

/** A limit above the number of messages in any queue. */
const allMessages = { upTo: Number.MAX_SAFE_INTEGER, limit: 10_000 };

/**
 * To-device messages: checks that each acknowledged message arrives, that none arrives twice, and that two messages
 * from one server to a user arrive in their order if the second was sent after the first was acknowledged.
 */
export class ToDeviceTraffic {
  readonly #world: World;
  readonly #dice: Dice;
  readonly #sent: SentMessage[] = [];

  constructor(world: World, dice: Dice) {
    this.#world = world;
    this.#dice = dice;
  }

  async send(server: SimulatedServer, from: string, to: string): Promise<void> {
    const sentAt = this.#world.scheduler.now;
    const id = `message ${this.#sent.length}`;
    const message: SentMessage = { id, from, server, to, sentAt, acceptedAt: undefined };
    this.#sent.push(message);
    await this.#submit(message);
    // Clients sometimes retry a send with the same transaction id.
    if (this.#dice.chance(0.2)) await this.#submit(message);
  }

  /** Retries the sends that were not acknowledged. */
  async repeat(): Promise<void> {
    for (const message of this.#sent) if (message.acceptedAt === undefined) await this.#submit(message);
  }

  async check(): Promise<void> {
    const { servers } = this.#world;
    for (const server of servers) {
      const { run } = server;
      if (run) for (const userId of server.users) await this.#checkQueue(run, userId);
    }
  }

  async #submit(message: SentMessage): Promise<void> {
    const { id, from, server, to } = message;
    const what = `${from} sends ${id} to ${to}`;
    const answer = await attempt(this.#world, server, what, ({ services }) =>
      services.toDevice.send({
        sender: from,
        origin: { name: from, deviceId: homeDeviceId },
        txnId: id,
        type: 'sim.message',
        messages: new Map([[to, new Map([[homeDeviceId, { id }]])]]),
      }),
    );
    if (typeof answer === 'string') return;
    this.#world.trace.note(server.name, what);
    message.acceptedAt ??= this.#world.scheduler.now;
  }

  async #checkQueue({ services }: Run, userId: string): Promise<void> {
    const { messages } = await services.queues.pending(userId, homeDeviceId, allMessages);
    const arrived = messages.map((text) => (JSON.parse(text) as { content: { id: string } }).content.id);
    const fail = (what: string) => this.#world.fail(`${what} (queue of ${userId}: ${arrived.join(', ')})`);
    if (new Set(arrived).size !== arrived.length) fail('A to-device message arrived more than once');
    const sentToUser = this.#sent.filter(({ to }) => to === userId);
    for (const { id, acceptedAt } of sentToUser) {
      if (acceptedAt !== undefined && !arrived.includes(id))
        fail(`${id} was acknowledged and has not arrived`);
    }
    for (const later of sentToUser) {
      for (const earlier of sentToUser) {
        const hasOrder = earlier.acceptedAt !== undefined && earlier.acceptedAt < later.sentAt;
        if (earlier.server !== later.server || !hasOrder || !arrived.includes(later.id)) continue;
        if (arrived.indexOf(earlier.id) > arrived.indexOf(later.id)) {
          fail(`${later.id} arrived before ${earlier.id}, which was sent first`);
        }
      }
    }
  }
}
